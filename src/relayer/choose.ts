/** Chooses which waiting operations go into the next batch, and in which order. Pure. */
import { type OperationKind, PAYS_OUT } from "./operations.js";
import { MAX_BATCH_BYTES, operationBytes, operationGas } from "./transaction.js";

export interface Candidate {
  id: bigint;
  kind: OperationKind;
  escrow: string | null;
  caller: string | null;
  gasLimit: number;
  dataLength: number;
  notAfter: number | null;
  /** Seconds on the chain's clock, like `notAfter`. */
  createdAt: number;
  tries: number;
  /** Whether it carries its caller's signature, which a contract wallet judges by its own code. */
  signed: boolean;
  /** Whether it was ever signed for broadcast, in any batch. */
  published: boolean;
}

/** An operation whose result is not known yet. */
export type BusyOperation = Pick<Candidate, "kind" | "escrow" | "caller">;

/** At most one at a time per escrow; only a settlement can share the batch of the operation that ends its contract. */
const EXCLUSIVE: ReadonlySet<OperationKind> = new Set([
  "create",
  "accept",
  "decline",
  "cancel",
  "deliver",
  "withdraw",
  "approve",
  "dispute",
  "draw",
  "tally",
  "settle",
]);

/** They end a contract, so that a settlement can follow in the same batch. */
const ENDING: ReadonlySet<OperationKind> = new Set(["approve", "cancel", "decline", "withdraw"]);

/** Seconds until an operation counts as urgent even without a deadline, so that nothing waits forever. */
const PATIENCE = 120;

/** After this many tries an operation is sent alone, so that it cannot make another batch fail. */
const SUSPECT_TRIES = 3;

interface Choice {
  candidates: readonly Candidate[];
  busy: readonly BusyOperation[];
  /** Escrows with an operation that was reported as applied and has to be applied again: its rivals wait. */
  reportedEscrows?: ReadonlySet<string>;
  /** Maximum signed operations per batch, of each caller that has several. */
  signedQuotas?: ReadonlyMap<string, number>;
  batchGasLimit: number;
  maxOperations: number;
}

/**
 * Chooses by urgency and returns the ids in ascending order, which is the order of execution: an agent's delegation
 * runs before the action that needs it. On an escrow, operations that failed before come after rivals that did not.
 * Otherwise a contract wallet whose signature is valid only in simulations could block its rivals until their deadline.
 */
export function chooseOperations(choice: Choice): bigint[] {
  const urgent = byUrgency(choice.candidates);
  const selection = emptySelection(choice, urgent);
  for (const candidate of urgent) {
    if (isBlocked(candidate, selection)) {
      passOver(candidate, selection);
      continue;
    }
    take(candidate, selection);
    if (isSuspect(candidate)) break;
  }
  return selection.chosen.map(({ id }) => id).sort(compareIds);
}

type Selection = ReturnType<typeof emptySelection>;

function emptySelection(
  { busy, reportedEscrows = new Set(), signedQuotas, batchGasLimit, maxOperations }: Choice,
  urgent: readonly Candidate[],
) {
  return {
    reportedEscrows,
    batchGasLimit,
    maxOperations,
    untried: escrowsWithUntried(urgent),
    /** Escrows with a busy operation, with a busy exclusive one, and with a waiting exclusive one. */
    busyEscrows: new Set(busy.map(({ escrow }) => escrow)),
    closedEscrows: withExclusive(busy),
    awaited: withExclusive(urgent),
    chosen: [] as Candidate[],
    gas: 0,
    bytes: 0,
    /** The newest exclusive operation chosen on each escrow. */
    taken: new Map<string, OperationKind>(),
    /** Escrows with an exclusive operation that is not chosen. A settlement could depend on it. */
    passedOver: new Set<string>(),
    /** Callers with a busy operation, or with one that is not chosen. */
    closedCallers: new Set(busy.map(({ caller }) => caller)),
    /** Callers with an operation behind a reported one. Their sent ones must not wait: that one can need them. */
    waitingCallers: new Set<string>(),
    /** Signed operations left of each caller that has several. */
    quotas: new Map(signedQuotas),
  };
}

const withExclusive = (operations: readonly BusyOperation[]): Set<string | null> =>
  new Set(operations.filter(({ kind }) => EXCLUSIVE.has(kind)).map(({ escrow }) => escrow));

const isSuspect = ({ tries }: Candidate): boolean => tries >= SUSPECT_TRIES;
/** Whether rivals on its escrow that have failed come behind it. */
const isUntried = ({ tries, kind }: Candidate): boolean =>
  tries === 0 && EXCLUSIVE.has(kind) && kind !== "settle";

function isBlocked(candidate: Candidate, selection: Selection): boolean {
  const { kind, escrow, caller } = candidate;
  const { chosen, batchGasLimit, maxOperations } = selection;
  const isExclusive = EXCLUSIVE.has(kind);
  if (isBehindReported(candidate, selection)) return true;
  const hasRivals = isExclusive && selection.untried.has(escrow);
  if (hasRivals && candidate.tries > 0 && !isOnReported(candidate, selection)) return true;
  if (escrow !== null) {
    if (selection.closedEscrows.has(escrow)) return true;
    // Strangers can have refunds fail as often as they like. Each is sent behind whatever else waits for the escrow.
    const yields = PAYS_OUT.has(kind) && selection.awaited.has(escrow);
    if ((isExclusive || yields) && selection.busyEscrows.has(escrow)) return true;
    const before = selection.taken.get(escrow);
    const canFollow = before === undefined || (kind === "settle" && ENDING.has(before));
    if (isExclusive && !canFollow) return true;
    if (kind === "settle" && selection.passedOver.has(escrow)) return true;
  }
  if (caller !== null && selection.closedCallers.has(caller)) return true;
  if (candidate.signed && selection.quotas.get(caller ?? "") === 0) return true;
  if (chosen.length >= maxOperations) return true;
  if (chosen.length === 0) return false;
  if (isSuspect(candidate)) return true;
  if (selection.bytes + operationBytes(candidate) > MAX_BATCH_BYTES) return true;
  return selection.gas + operationGas(candidate) > batchGasLimit;
}

function isOnReported({ escrow }: Candidate, { reportedEscrows }: Selection): boolean {
  return escrow !== null && reportedEscrows.has(escrow);
}

function isBehindReported(candidate: Candidate, selection: Selection): boolean {
  const { published, caller } = candidate;
  const isReported = isOnReported(candidate, selection);
  return !published && (isReported || (caller !== null && selection.waitingCallers.has(caller)));
}

/** Has what depends on this operation wait with it. */
function passOver(candidate: Candidate, selection: Selection): void {
  const { kind, escrow, caller } = candidate;
  const { waitingCallers, closedCallers, passedOver } = selection;
  // The agent's later operations can depend on this one.
  if (caller !== null) (isBehindReported(candidate, selection) ? waitingCallers : closedCallers).add(caller);
  if (escrow !== null && EXCLUSIVE.has(kind)) passedOver.add(escrow);
}

function take(candidate: Candidate, selection: Selection): void {
  const { kind, escrow, caller, signed } = candidate;
  selection.chosen.push(candidate);
  selection.gas += operationGas(candidate);
  selection.bytes += operationBytes(candidate);
  if (escrow !== null && EXCLUSIVE.has(kind)) selection.taken.set(escrow, kind);
  const quota = signed ? selection.quotas.get(caller ?? "") : undefined;
  if (quota !== undefined) selection.quotas.set(caller ?? "", quota - 1);
}

/**
 * Escrows with a waiting operation that has not failed and is its agent's first: a later one would wait for a failed one of
 * the same agent, and that in turn for it. So would a settlement, which waits for the more urgent ones on its escrow.
 */
function escrowsWithUntried(urgent: readonly Candidate[]): Set<string | null> {
  const escrows = new Set<string | null>();
  const callers = new Set<string>();
  for (const candidate of urgent) {
    const { escrow, caller } = candidate;
    if (isUntried(candidate) && (caller === null || !callers.has(caller))) escrows.add(escrow);
    if (caller !== null) callers.add(caller);
  }
  return escrows;
}

/**
 * Soonest deadline first. Earlier operations of an agent, or that have not failed on an escrow, are at least as urgent as
 * later ones: otherwise a rival would go first because it expires soon.
 */
function byUrgency(candidates: readonly Candidate[]): Candidate[] {
  const deadlines = new Map<bigint, number>();
  const soonest = new Map<string | null, number>();
  for (const candidate of [...candidates].sort((a, b) => compareIds(b.id, a.id))) {
    const { id, escrow, caller, notAfter, createdAt } = candidate;
    const lines = [caller, isUntried(candidate) ? escrow : null].filter((line) => line !== null);
    const later = lines.map((line) => soonest.get(line) ?? Number.POSITIVE_INFINITY);
    const deadline = Math.min(notAfter ?? Number.POSITIVE_INFINITY, createdAt + PATIENCE, ...later);
    for (const line of lines) soonest.set(line, deadline);
    deadlines.set(id, deadline);
  }
  const deadlineOf = ({ id }: Candidate) => deadlines.get(id) ?? 0;
  return [...candidates].sort((a, b) => deadlineOf(a) - deadlineOf(b) || compareIds(a.id, b.id));
}

function compareIds(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
