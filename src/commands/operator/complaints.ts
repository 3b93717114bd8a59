import { parseArgs } from "node:util";
import {
  COMPLAINT_STATUSES,
  type ComplaintRow,
  type ComplaintStatus,
  findComplaints,
  resolveComplaint,
  toComplaint,
} from "../../features/complaints/complaints.js";
import { OperatorError, withDatabase } from "./settings.js";

const LIST_LIMIT = "100";
/** The limit of a complaint's own text. The note is just as public. */
const NOTE_LENGTH = 4_096;

/** `complaint list`: prints one JSON object per line, oldest first. */
export async function complaintList(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      status: { type: "string" },
      contract: { type: "string" },
      limit: { type: "string", default: LIST_LIMIT },
    },
  });
  const { status, contract, limit } = values;
  if (status !== undefined && !isStatus(status)) {
    throw new OperatorError(`--status must be one of: ${COMPLAINT_STATUSES.join(", ")}`);
  }
  if (!/^[1-9]\d{0,5}$/.test(limit))
    throw new OperatorError("--limit must be a whole number from 1 to 999999");
  const filter = { status, contractId: contract?.toLowerCase(), limit: Number(limit) };
  const rows = await withDatabase((db) => findComplaints(db, filter));
  for (const row of rows) print(row);
}

/** `complaint resolve <id> upheld|dismissed`: prints the complaint as it is now public. */
export async function complaintResolve(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    options: { note: { type: "string" } },
    allowPositionals: true,
  });
  const [id, status, ...rest] = positionals;
  const note = values.note?.trim() || null;
  if (id === undefined || (status !== "upheld" && status !== "dismissed") || rest.length > 0) {
    throw new OperatorError('Usage: complaint resolve <complaint id> upheld|dismissed [--note "..."]');
  }
  if (note !== null && [...note].length > NOTE_LENGTH) {
    throw new OperatorError(`--note must have at most ${NOTE_LENGTH} characters`);
  }
  const resolution = await withDatabase((db) => resolveComplaint(db, { id, status, note }));
  if (resolution.ok) return print(resolution.complaint);
  if (resolution.reason === "unknown") throw new OperatorError(`Complaint not found: ${id}`);
  throw new OperatorError(
    `The complaint was ${resolution.complaint.status} at ${resolution.complaint.resolvedAt?.toISOString()}. A resolution is public and is never replaced.`,
  );
}

function isStatus(text: string): text is ComplaintStatus {
  return (COMPLAINT_STATUSES as readonly string[]).includes(text);
}

function print(row: ComplaintRow): void {
  console.log(JSON.stringify({ ...toComplaint(row), filedBy: row.filedBy }));
}
