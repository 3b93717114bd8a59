/** A Working Contract as its initiator proposes it, and the rules that depend on the caller and the time. */

import { formatDecimal } from "@working-contracts/protocol/amounts";
import { LIMITS } from "@working-contracts/protocol/limits";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { movedClockHint } from "../../chain/clients.js";
import { AppError } from "../../errors.js";

/** A parsed Create body; amounts in base units, times in whole seconds. */
export interface ContractDraft {
  initiator: "client" | "worker";
  title: string;
  taskDescription: string;
  acceptanceCriteria: string[];
  supplementaryMaterials: string | null;
  application: "usageticket" | null;
  applicationTerms: Record<string, unknown> | null;
  awardMethod: "direct_award" | "open_tender";
  worker: Address | null;
  /** Reserved Buyer of a worker-initiated listing. */
  client: Address | null;
  budgetOrPrice: bigint;
  matchDeadline: number;
  withdrawalDeadline: number;
  deliveryDeadline: number;
  reviewDeadline: number;
}

interface Fault {
  path: string;
  message: string;
}

const DEADLINES = ["matchDeadline", "withdrawalDeadline", "deliveryDeadline", "reviewDeadline"] as const;

/** Throws `invalid_request` if the draft names the wrong parties for this caller, or if its price is too low. */
export function checkDraft(draft: ContractDraft, caller: Address, minimumPrice: bigint): void {
  refuse([...partyFaults(draft, caller), ...priceFaults(draft, minimumPrice)]);
}

/** Throws `invalid_request` if the deadlines are out of order, in the past, or too far ahead of `now`. */
export function checkDeadlines(draft: ContractDraft, now: number): void {
  const faults: Fault[] = [];
  const latest = now + LIMITS.reviewDeadlineHorizon;
  if (draft.matchDeadline <= now) {
    const step =
      'Count deadlines from the time of GET /v1/network (client library: deadlines(), with clock "service"; wcontract: --clock service)';
    const message = [`must be later than the chain's time, ${isoTime(now)}`, movedClockHint(now, step)];
    faults.push({ path: "matchDeadline", message: message.filter((part) => part !== null).join(". ") });
  }
  for (const [i, path] of DEADLINES.entries()) {
    const previous = DEADLINES[i - 1];
    if (previous === undefined) continue;
    const strict = path === "reviewDeadline";
    if (draft[path] < draft[previous] || (strict && draft[path] === draft[previous])) {
      const order = strict ? "must be later than" : "must not be earlier than";
      faults.push({ path, message: `${order} ${previous}, ${isoTime(draft[previous])}` });
    }
  }
  if (draft.reviewDeadline > latest) {
    faults.push({ path: "reviewDeadline", message: `must be at most 365 days ahead, by ${isoTime(latest)}` });
  }
  refuse(faults);
}

/** The only address that can accept, if the draft names one. */
export function counterpartyOf(draft: ContractDraft): Address | null {
  return draft.initiator === "worker" ? draft.client : draft.worker;
}

function partyFaults({ initiator, awardMethod, worker, client }: ContractDraft, caller: Address): Fault[] {
  if (initiator === "worker") {
    const faults: Fault[] = [];
    if (worker !== null && worker !== caller) {
      faults.push({
        path: "worker",
        message: "must be absent or your own address: in a worker-initiated listing you are the worker",
      });
    }
    if (client === caller) faults.push({ path: "client", message: "must not be your own address" });
    return faults;
  }
  if (awardMethod === "open_tender") {
    return worker === null
      ? []
      : [{ path: "worker", message: "must be absent with open_tender; name a worker with direct_award" }];
  }
  if (worker === null) return [{ path: "worker", message: "is required with direct_award" }];
  return worker === caller ? [{ path: "worker", message: "must not be your own address" }] : [];
}

function priceFaults({ budgetOrPrice }: ContractDraft, minimum: bigint): Fault[] {
  return budgetOrPrice >= minimum
    ? []
    : [{ path: "budgetOrPrice", message: `must be at least ${formatDecimal(minimum)}` }];
}

function refuse(details: Fault[]): void {
  const [first] = details;
  if (first === undefined) return;
  throw new AppError("invalid_request", { message: `${first.path}: ${first.message}`, details });
}
