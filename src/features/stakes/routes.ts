/** The stake that makes a Backup Agent eligible (docs/rules.md 44). */
import { z } from "@hono/zod-openapi";
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { tokenUnits } from "@working-contracts/protocol/ledger";
import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { and, desc, eq, inArray, sql } from "drizzle-orm";
import type { Executor } from "../../db/client.js";
import {
  type IndexReader,
  lockedUntil,
  requireIndex,
  stake,
  vote,
  workingContract as w,
} from "../../db/onchain.js";
import { APPLIED, operation as relayed } from "../../db/schema.js";
import type { Deps } from "../../deps.js";
import { conflict } from "../../errors.js";
import { data, endpoints, stored } from "../../http/endpoint.js";
import { AddressParamsSchema, AddressViewSchema, parsed } from "../../http/schemas.js";
import { performPaidCall } from "../../payments/paid-call.js";
import type { PaidAction, StoredResponse } from "../../payments/relayed-call.js";
import type { HeaderReader } from "../../payments/x402.js";
import { requestUnstakeOperation } from "../../relayer/operations.js";
import { enqueue } from "../../relayer/outbox.js";
import { authorize } from "../agents/delegation.js";
import { type ActionRequest, performUnpaidCall } from "../contracts/actions.js";

const AMOUNT = "must be a decimal above 0, with at most 18 decimals and no exponent";

const StakeBodySchema = z
  .object({
    /** Text, because the body parser keeps the digits as sent. */
    amount: parsed((text) => parseDecimal(text, TOKEN_DECIMALS) || null, AMOUNT, AMOUNT)
      .nullish()
      .openapi({
        type: ["number", "string", "null"],
        example: "1000",
        description: "Protocol tokens, as text or number; the current baEligibilityStake by default",
      }),
  })
  .openapi("StakeBody");

const StakeSchema = z
  .object({
    agentId: AddressViewSchema,
    staked: z.string().openapi({ example: "1000.0", description: "Protocol tokens" }),
    stakedSince: z.iso.datetime().nullable().openapi({
      description: "When the stake last grew; it allows votes on contracts that are matched later",
    }),
    eligible: z.boolean().openapi({
      description:
        "Whether the agent can vote on contracts that are matched from now on. After a request to unstake, it can still vote on contracts matched before the request, until the stake is paid out",
    }),
    releasableAt: z.iso.datetime().nullable().openapi({
      description:
        "Time after which it is paid back, later only if a dispute for which the agent was drawn awaits its vote then; null while it is not being withdrawn",
    }),
  })
  .openapi("Stake");

export type StakeView = z.infer<typeof StakeSchema>;

/** Amount in base units, times in seconds; votes can delay the release. Null if nothing is staked. */
async function loadStake(reader: IndexReader, agent: Address) {
  const [row] = await reader.db
    .select({
      amount: stake.amount,
      since: stake.since,
      releasableAt: sql<string | null>`case when ${stake.releasableAt} is not null
        then greatest(${stake.releasableAt}, ${lockedUntil(sql`${agent}`, sql`${stake.releasableAt}`)}) end`,
    })
    .from(stake)
    .where(eq(stake.agent, agent));
  await requireIndex(reader);
  if (row === undefined) return null;
  return { ...row, releasableAt: row.releasableAt === null ? null : BigInt(row.releasableAt) };
}

/** The stake of any address; zero and nulls if it has none. */
export async function viewStake(
  deps: IndexReader & Pick<Deps, "readParameters">,
  agent: Address,
): Promise<StakeView> {
  const row = await loadStake(deps, agent);
  if (row === null) {
    return { agentId: agent, staked: "0.0", stakedSince: null, eligible: false, releasableAt: null };
  }
  const required = tokenUnits((await deps.readParameters()).baEligibilityStake);
  return {
    agentId: agent,
    staked: formatDecimal(row.amount, TOKEN_DECIMALS),
    stakedSince: isoTime(row.since),
    eligible: row.releasableAt === null && row.amount >= required,
    releasableAt: row.releasableAt === null ? null : isoTime(row.releasableAt),
  };
}

/** The EIP-712 domain of contracts/ProtocolToken.sol. */
const TOKEN_DOMAIN = { name: "Working Contract Token", version: "1" } as const;

interface StakeCall {
  caller: Address;
  rawBody: Uint8Array;
  headers: HeaderReader;
  /** Base units; null means the current eligibility stake. */
  amount: bigint | null;
}

/** Quotes in protocol tokens, or adds to the caller's stake. Refuses with 409 while the stake is being withdrawn. */
async function addStake(deps: Deps, call: StakeCall): Promise<StoredResponse> {
  return performPaidCall(deps, {
    ...call,
    path: "/v1/agents/me/stake",
    name: "stake",
    asset: { address: deps.deployment.protocolToken, ...TOKEN_DOMAIN },
    check: () => checkStake(deps, call),
    respond: async () => ({ data: await viewStake(deps, call.caller) }),
  });
}

async function checkStake(deps: Deps, { caller, amount: given }: StakeCall): Promise<PaidAction> {
  const { db, deployment, readParameters } = deps;
  const current = await loadStake(deps, caller);
  if (current !== null && current.releasableAt !== null) {
    throw conflict(`Your stake is being withdrawn. ${payback(current.releasableAt)} Stake again after that.`);
  }
  const amount = given ?? tokenUnits((await readParameters()).baEligibilityStake);
  const newest = await newestStake(db, caller);
  return {
    kind: "stake",
    payTo: deployment.registry,
    amount,
    description: `Backup Agent stake of ${formatDecimal(amount, TOKEN_DECIMALS)} protocol tokens`,
    onceKey: `stake:${caller}:${newest}`,
    alreadyDone: () =>
      conflict(
        "A concurrent request added to your stake; this payment was not used. Read your stake before you add more.",
      ),
  };
}

/** The caller's newest applied stake. The next one's once-key contains it, so only one of several at once is taken. */
async function newestStake(db: Executor, caller: Address): Promise<bigint> {
  const [row] = await newestStakeQuery(db, caller);
  return row?.id ?? 0n;
}

/** At most one row. Exported for the test of its plan: it must stay on one index however many calls the agent made. */
export function newestStakeQuery(db: Executor, caller: Address) {
  const isApplied = inArray(relayed.state, APPLIED);
  return db
    .select({ id: relayed.id })
    .from(relayed)
    .where(and(eq(relayed.caller, caller), eq(relayed.kind, "stake"), isApplied))
    .orderBy(desc(relayed.id))
    .limit(1);
}

/** Starts the withdrawal of the whole stake. Refuses with 409 if there is none, if the withdrawal has begun, or if a vote is open. */
async function requestUnstake(deps: Deps, request: Required<ActionRequest>): Promise<StoredResponse> {
  const { db, deployment } = deps;
  const { caller, actionHeaders } = request;
  const current = await loadStake(deps, caller);
  // A stake made after this one was paid back has a later `since`, and so its own once-key.
  const onceKey = `request-unstake:${caller}:${current?.since}`;
  return performUnpaidCall(deps, {
    ...request,
    name: "unstake",
    subject: { kind: "request-unstake", onceKey },
    store: async (requestHash) => {
      requireBonded(current);
      await requireNoOpenVote(db, caller);
      const operation = requestUnstakeOperation({ deployment, agent: caller, onceKey, requestHash });
      const unstaking = { action: "unstake", headers: actionHeaders } as const;
      return enqueue(db, await authorize(deps, { ...operation, caller }, unstaking));
    },
    respond: async () => ({ data: await viewStake(deps, caller) }),
  });
}

function requireBonded(current: Awaited<ReturnType<typeof loadStake>>): void {
  if (current === null) throw conflict("You have nothing staked.");
  if (current.releasableAt === null) return;
  throw conflict(`Your stake is already being withdrawn. ${payback(current.releasableAt)}`);
}

/** The keeper knows only stakes that passed through this service. */
const payback = (releasableAt: bigint): string =>
  `It is paid back after ${isoTime(releasableAt)} or, if a dispute for which you were drawn awaits your vote then, after your vote or the end of voting. If it is not, anyone can call \`withdrawStake\` of the registry (\`wcontract on-chain withdraw-stake\`).`;

async function requireNoOpenVote(db: Executor, agent: Address): Promise<void> {
  const [open] = await db
    .select({ contractId: vote.contractId })
    .from(vote)
    .innerJoin(w, eq(w.id, vote.contractId))
    .where(and(eq(vote.backupAgent, agent), eq(w.phase, "disputed")))
    .orderBy(desc(vote.sealedAt))
    .limit(1);
  if (open === undefined) return;
  throw conflict(
    `Your vote on the contract ${open.contractId} is still open. Retry the request once the contract is resolved.`,
    { contractId: open.contractId },
  );
}

const { get, post } = endpoints("Stakes");

export const stakeEndpoints = [
  post("/v1/agents/me/stake", {
    operationId: "stake",
    summary: "Stake protocol tokens to be eligible as a Backup Agent",
    description:
      "The quote is in protocol tokens (18 decimals), to the registry. A further stake adds to the first.",
    paid: true,
    body: StakeBodySchema,
    returns: stored("The caller's whole stake", StakeSchema),
    errors: ["conflict"],
    handle: (deps, { body: { amount = null }, caller, rawBody, c }) =>
      addStake(deps, { caller, rawBody, headers: c.req.raw.headers, amount }),
  }),
  post("/v1/agents/me/unstake", {
    operationId: "unstake",
    summary: "Withdraw the whole stake",
    description:
      "It is paid back automatically after 48 hours, or later if the caller is drawn for a dispute before that. Refused while a vote of the caller is open.",
    signable: true,
    returns: stored("The stake, with the time after which it is paid back", StakeSchema),
    errors: ["forbidden", "conflict"],
    handle: (deps, { caller, rawBody, actionHeaders }) =>
      requestUnstake(deps, { caller, rawBody, actionHeaders }),
  }),
  get("/v1/agents/{address}/stake", {
    operationId: "getStake",
    summary: "Read an agent's stake",
    longRead: true,
    params: AddressParamsSchema,
    returns: data("The stake; zero and nulls if nothing is staked", StakeSchema),
    handle: (deps, { params: { address } }) => viewStake(deps, address),
  }),
];
