/** Tools that sign, pay or change something, and their calls, none of which pays twice. */
import { randomBytes, randomUUID } from "node:crypto";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Contract, type Draft, type Duration, NotOnChain } from "@working-contracts/client/index";
import { toHex } from "@working-contracts/protocol/hex";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { z } from "zod";
import {
  ContractIdSchema,
  definedOf,
  type Fields,
  refusal,
  type Served,
  type Tool,
  toolResult,
} from "./results.js";

const CHANGES = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
const DURATION = /^\d+(\.\d+)?[smhd]$/;
const deadline = (fallback: string) =>
  z
    .union([z.string().regex(DURATION), z.iso.datetime({ offset: true })])
    .default(fallback)
    .describe("Time from now, such as 90m, 36h or 2d, or an ISO 8601 time");

const isExact = (value: unknown): boolean =>
  typeof value === "number"
    ? Math.abs(value) <= Number.MAX_SAFE_INTEGER
    : typeof value !== "object" || value === null || Object.values(value).every(isExact);
/** A longer integer was changed before it came here, and the service could not refuse it. */
const ExactJson = z
  .record(z.string(), z.unknown())
  .refine(isExact, "a number in it cannot be represented exactly; send it as a string");

type AddTool = <Input extends Fields>(
  tool: Tool<Input> & { perform(input: z.infer<z.ZodObject<Input>>): Promise<object> },
) => void;

/** Adds one tool per action, and `resume_call` for calls of unknown outcome. */
export function addWriteTools(
  server: McpServer,
  { agent, outputs, unfinished }: Served & { unfinished: UnfinishedCalls },
): void {
  const tool = addingTools(server, unfinished);
  addPost(tool, { agent, outputs, unfinished });
  addPartyTools(tool, { agent, outputs });
  addBackupAgentTools(tool, { agent, outputs });
  tool({
    name: "file_complaint",
    description:
      "File a complaint about the other party of a contract; moves no money, and the same evidence is filed once",
    input: { id: ContractIdSchema, evidence: ExactJson },
    output: outputs("POST /v1/contracts/{id}/complaints"),
    perform: ({ id, evidence }) => agent.complain(id, evidence),
  });
  tool({
    name: "set_profile",
    description: "Change your own display name or bio; null clears a field",
    input: { displayName: z.string().nullable().optional(), bio: z.string().nullable().optional() },
    output: outputs("POST /v1/agents/me/profile"),
    perform: (changes) => agent.setProfile(definedOf(changes)),
  });
}

function addPartyTools(tool: AddTool, { agent, outputs }: Served): void {
  const contract = outputs("GET /v1/contracts/{id}");
  const actions: [name: string, description: string, perform: (id: string) => Promise<Contract>][] = [
    ["accept_contract", "Accept a contract; pays the Worker Stake, or the price of a listing", agent.accept],
    ["decline_contract", "Decline a direct award or a reserved listing", agent.decline],
    ["approve_delivery", "Accept the delivery; the worker is paid, which is final", agent.approve],
    ["dispute_delivery", "Reject the delivery; pays the Dispute Bond", agent.dispute],
    ["withdraw", "Abandon the work, at the cost of part of the stake", agent.withdraw],
    ["cancel_contract", "Cancel a contract that no one has accepted", agent.cancel],
  ];
  for (const [name, description, perform] of actions) {
    const input = { id: ContractIdSchema };
    tool({ name, description, input, output: contract, perform: ({ id }) => perform(id) });
  }
  tool({
    name: "deliver",
    description: "Deliver a reference (a hash or URI), sealed to the client's key if it has published one",
    input: {
      id: ContractIdSchema,
      reference: z.string(),
      seal: z
        .boolean()
        .optional()
        .describe("true: refuse to deliver if the service could read the reference; false: do not seal it"),
    },
    output: contract,
    perform: ({ id, reference, ...options }) => agent.deliver(id, reference, definedOf(options)),
  });
  tool({
    name: "submit_checkpoint",
    description: "Report progress of continuous work; does not end the contract",
    input: {
      id: ContractIdSchema,
      fromSequence: z.number().int(),
      toSequence: z.number().int(),
      merkleRoot: z.string(),
      lastReceiptHash: z.string(),
      teeMeasurement: z.string(),
      teeSignature: z.string(),
      data: ExactJson,
      checkpointedAt: z.string().describe("ISO 8601, not later than the chain's time"),
    },
    output: outputs("POST /v1/contracts/{id}/checkpoint"),
    perform: ({ id, ...checkpoint }) => agent.checkpoint(id, checkpoint),
  });
}

function addBackupAgentTools(tool: AddTool, { agent, outputs }: Served): void {
  tool({
    name: "vote",
    description:
      "Vote on a disputed contract, one outcome per criterion; pays the bond. Only you can open the vote, after voting has ended: this server does so while it runs, unless you entrust the vote to the service",
    input: {
      id: ContractIdSchema,
      outcomes: z.array(z.enum(OUTCOMES)).min(1).max(10),
      entrust: z.boolean().default(false).describe("Lets the service read the vote, and open it"),
    },
    output: z.object({ votes: outputs("POST /v1/contracts/{id}/votes"), salt: z.string().nullable() }),
    async perform({ id, outcomes, entrust }) {
      if (!entrust) return agent.vote(id, outcomes);
      const salt = toHex(randomBytes(32));
      // The vote may be cast, and then only this salt opens it.
      const withSalt = (error: Error & { resume?: () => Promise<object> }): never => {
        error.message += ` The vote's salt: ${salt}`;
        const { resume } = error;
        if (resume !== undefined) error.resume = () => resume().catch(withSalt);
        throw error;
      };
      return agent.vote(id, outcomes, { entrust, salt }).catch(withSalt);
    },
  });
  tool({
    name: "open_votes",
    description: "Open each of your sealed votes that can be opened now",
    input: { id: ContractIdSchema.optional().describe("Only the vote on this contract") },
    output: z.object({ opened: z.array(z.string()).describe("Contract ids") }),
    perform: async (options) => ({ opened: await agent.openVotes({ ...definedOf(options), wait: false }) }),
  });
  const stake = outputs("GET /v1/agents/{address}/stake");
  tool({
    name: "stake",
    description: "Stake protocol tokens as a Backup Agent; by default the required amount",
    input: { amount: z.string().optional() },
    output: stake,
    perform: ({ amount }) => agent.stake(amount),
  });
  tool({
    name: "unstake",
    description: "Withdraw the whole stake",
    input: {},
    output: stake,
    perform: () => agent.unstake(),
  });
}

/**
 * Adds tools that sign each payment only once. If the outcome of a call is unknown or not on chain, or its caller
 * cancelled it before the result, the same tool with the same input resumes the call instead of paying again.
 * `resume_call` resumes such a call by its id.
 */
function addingTools(server: McpServer, unfinished: UnfinishedCalls): AddTool {
  const follow = async (
    call: UnfinishedCall,
    signal: AbortSignal,
    outputSchema?: z.ZodType,
  ): Promise<CallToolResult> => {
    const abandon = (): void => {
      call.isAbandoned = true;
    };
    /** Keeps the outcome of a call that can have paid for a repeat, while that could pay again. */
    const end = (isKept: boolean): void => {
      if (isKept && call.pays) {
        abandon();
        call.expiry ??= setTimeout(unfinished.forget, KEPT_MS, call).unref();
      } else unfinished.forget(call);
    };
    signal.addEventListener("abort", abandon, { once: true });
    try {
      const result = await call.outcome();
      // The SDK would replace it by an error, without its id.
      const isOdd = outputSchema?.safeParse(result).success === false;
      end(isOdd || signal.aborted);
      if (isOdd)
        return refusal(
          new Error("The call succeeded; do not repeat it. Its result does not match the documented schema."),
          {
            result: JSON.stringify(result),
          },
        );
      return toolResult(async () => result);
    } catch (error) {
      const failure = error as Error & { payment?: object; resume?: () => Promise<object> };
      if (failure.resume === undefined) {
        end(failure.payment !== undefined && signal.aborted);
        return refusal(failure);
      }
      call.outcome = once(failure.resume);
      if (failure instanceof NotOnChain) end(true);
      else abandon();
      return refusal(failure, { hint: "Call resume_call with this resumeId.", resumeId: call.resumeId });
    } finally {
      signal.removeEventListener("abort", abandon);
    }
  };

  server.registerTool(
    "resume_call",
    {
      description: "Resume a paid call whose outcome is unknown or not yet on chain; signs nothing new",
      inputSchema: { resumeId: z.uuid() },
      annotations: CHANGES,
    },
    async ({ resumeId }, { signal }) => {
      signal.throwIfAborted();
      const call = unfinished.resume(resumeId);
      if (call === undefined) return refusal(new Error("No unfinished call has this resumeId."));
      return follow(call, signal);
    },
  );

  return ({ name, description, input: inputSchema, output: outputSchema, perform }) => {
    const schema = z.object(inputSchema);
    const run = async (input: unknown, { signal }: { signal: AbortSignal }): Promise<CallToolResult> => {
      try {
        // Once aborted, the signal reports no cancellation: the call would pay, and its repeat again.
        signal.throwIfAborted();
        const begin = () => perform(schema.parse(input));
        const call = unfinished.enter(JSON.stringify([name, input]), begin, PAYING.has(name));
        return await follow(call, signal, outputSchema);
      } catch (error) {
        return refusal(error as Error);
      }
    };
    const config = { description, inputSchema, outputSchema, annotations: CHANGES };
    server.registerTool(name, config as never, run as never);
  };
}

function addPost(
  tool: AddTool,
  { agent, outputs, unfinished: { drafts } }: Served & { unfinished: UnfinishedCalls },
): void {
  tool({
    name: "post_contract",
    description: "Post a contract; pays its price (for a listing: the Worker Stake) into its escrow",
    input: {
      title: z.string(),
      taskDescription: z.string(),
      acceptanceCriteria: z.array(z.string()).min(1).max(10),
      price: z.string().describe("Decimal, in the stablecoin"),
      worker: z.string().optional().describe("Awards it directly to this address"),
      listing: z.boolean().default(false).describe("Offers work: you are the worker and pay the stake"),
      client: z.string().optional().describe("With listing: reserves it for this Buyer"),
      supplementaryMaterials: z.string().optional(),
      application: z.enum(["usageticket"]).optional().describe("Continuous work, reported by checkpoints"),
      applicationTerms: ExactJson.optional(),
      verificationMode: z.enum(["privacy-preserving"]).optional(),
      idempotencyKey: z
        .string()
        .optional()
        .describe(
          "Calls with the same key, options and ISO 8601 times post only one contract; random by default",
        ),
      match: deadline("1d"),
      withdrawal: deadline("2d"),
      delivery: deadline("3d"),
      review: deadline("4d"),
    },
    output: outputs("GET /v1/contracts/{id}"),
    async perform(input) {
      const { price, listing, match, withdrawal, delivery, review, ...rest } = input;
      const at = (time: string) => (DURATION.test(time) ? (time as Duration) : new Date(time));
      const times = { withdrawal: at(withdrawal), delivery: at(delivery), review: at(review) };
      const key = JSON.stringify(input);
      for (const [old, { until }] of drafts) if (until < Date.now()) drafts.delete(old);
      const earlier = [...drafts].find(([, kept]) => kept.key === key)?.[0];
      const draft: Draft = earlier ?? {
        ...definedOf(rest),
        budgetOrPrice: price,
        ...(listing && { initiator: "worker" as const }),
        ...(await agent.deadlines({ match: at(match), ...times })),
      };
      const posted = (contract: object): object => {
        drafts.delete(draft);
        return contract;
      };
      // Counted from the repeat's time, the deadlines would lead to another escrow, and both payments could be used.
      const failed = (
        error: Error & { payment?: { until: Date }; resume?: () => Promise<object> },
      ): never => {
        const { payment, resume } = error;
        if (payment !== undefined) drafts.set(draft, { key, until: payment.until.getTime() + LATE_MS });
        if (resume !== undefined) error.resume = () => resume().then(posted, failed);
        throw error;
      };
      return agent.create(draft).then(posted, failed);
    },
  });
}

const PAYING = new Set(["post_contract", "accept_contract", "dispute_delivery", "vote", "stake"]);
const MAX_CALLS = 1_000;
/** Longer than a signed payment is valid. */
const KEPT_MS = 15 * 60_000;
/** A payment ends by the chain's time, which can be this far behind. */
const LATE_MS = 5 * 60_000;

interface UnfinishedCall {
  /** Tool and input. */
  key: string;
  resumeId: string;
  /** Starts the call if needed; every invocation returns the same outcome. */
  outcome: () => Promise<object>;
  /** No caller waits for it: the next one with the same input gets its outcome. */
  isAbandoned: boolean;
  /** Set once it has ended: forgets it. */
  expiry?: NodeJS.Timeout | undefined;
  pays: boolean;
}

/** Calls whose caller has not seen the outcome. None is forgotten while a repeat of it could pay again. */
export type UnfinishedCalls = ReturnType<typeof createUnfinishedCalls>;

/** Keeps at most `max` calls, in memory. */
export function createUnfinishedCalls(max = MAX_CALLS) {
  const calls = new Set<UnfinishedCall>();
  const taken = (isWanted: (call: UnfinishedCall) => boolean): UnfinishedCall | undefined => {
    const call = [...calls].find(isWanted);
    if (call !== undefined) {
      clearTimeout(call.expiry);
      call.expiry = undefined;
      call.isAbandoned = false;
    }
    return call;
  };
  return {
    /** Drafts that a payment was signed for and that are not posted, as far as the service says, with their input. */
    drafts: new Map<Draft, { key: string; until: number }>(),
    /** The abandoned call with this key, or a new one. Of too many, forgets the oldest that has ended, and throws if none has. */
    enter(key: string, begin: () => Promise<object>, pays = false): UnfinishedCall {
      const earlier = taken((call) => call.isAbandoned && call.key === key);
      if (earlier !== undefined) return earlier;
      if (calls.size >= max) {
        const ended = [...calls].find(({ expiry }) => expiry);
        if (ended === undefined)
          throw new Error(`${max} calls are pending. Repeat or resume some of them, then try again.`);
        calls.delete(ended);
      }
      const outcome = once(begin);
      const call: UnfinishedCall = { key, resumeId: randomUUID(), outcome, pays, isAbandoned: false };
      calls.add(call);
      return call;
    },
    resume: (resumeId: string) => taken((call) => call.resumeId === resumeId),
    /** Its outcome is of no use to a repeat. */
    forget: (call: UnfinishedCall) => calls.delete(call),
  };
}

function once(begin: () => Promise<object>): () => Promise<object> {
  let begun: Promise<object> | undefined;
  return () => {
    begun ??= begin();
    return begun;
  };
}
