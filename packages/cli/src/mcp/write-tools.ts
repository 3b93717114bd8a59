import { randomUUID } from "node:crypto";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Agent, type Contract, type Duration, OutcomeUnknown } from "@working-contracts/client/index";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { z } from "zod";
import { ContractIdSchema, refusal, toolResult } from "./tool-result.js";

const CHANGES = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
const duration = (fallback: string) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?[smhd]$/)
    .default(fallback)
    .describe("Time from now, such as 90m, 36h or 2d");

/** Tools that sign, pay or change something. */
export function addWriteTools(server: McpServer, agent: Agent): void {
  const tool = addingTools(server);
  addPost(tool, agent);
  const actions: [name: string, description: string, perform: (id: string) => Promise<Contract>][] = [
    ["accept_contract", "Accept a contract; pays the Worker Stake, or the price of a listing", agent.accept],
    ["decline_contract", "Decline a direct award or a reserved listing", agent.decline],
    ["approve_delivery", "Accept the delivery; the worker is paid, which is final", agent.approve],
    ["dispute_delivery", "Reject the delivery; pays the Dispute Bond", agent.dispute],
    ["withdraw", "Abandon the work, at the cost of part of the stake", agent.withdraw],
    ["cancel_contract", "Cancel a contract that no one has accepted", agent.cancel],
  ];
  for (const [name, description, perform] of actions) {
    tool(name, { description, inputSchema: { id: ContractIdSchema } }, ({ id }) => perform(id));
  }
  tool(
    "deliver",
    {
      description: "Deliver a reference (a hash or URI); it is encrypted for the client",
      inputSchema: { id: ContractIdSchema, reference: z.string() },
    },
    ({ id, reference }) => agent.deliver(id, reference),
  );
  tool(
    "submit_checkpoint",
    {
      description: "Report progress of continuous work; does not end the contract",
      inputSchema: {
        id: ContractIdSchema,
        fromSequence: z.number().int(),
        toSequence: z.number().int(),
        merkleRoot: z.string(),
        lastReceiptHash: z.string(),
        teeMeasurement: z.string(),
        teeSignature: z.string(),
        data: z.record(z.string(), z.unknown()),
        checkpointedAt: z.string().describe("ISO 8601, not later than the chain's time"),
      },
    },
    ({ id, ...checkpoint }) => agent.checkpoint(id, checkpoint),
  );
  tool(
    "vote",
    {
      description:
        "Vote on a disputed contract, one outcome per criterion; pays the bond. Only you can open the vote, after voting has ended: this server does so while it runs, unless you entrust the vote to the service",
      inputSchema: {
        id: ContractIdSchema,
        outcomes: z.array(z.enum(OUTCOMES)).min(1).max(10),
        entrust: z.boolean().default(false).describe("Lets the service read the vote, and open it"),
      },
    },
    ({ id, outcomes, entrust }) => agent.vote(id, outcomes, { entrust }),
  );
  tool(
    "open_votes",
    { description: "Open each of your sealed votes that can be opened now", inputSchema: {} },
    () => agent.openVotes({ wait: false }),
  );
  tool(
    "stake",
    {
      description: "Stake protocol tokens as a Backup Agent; by default the required amount",
      inputSchema: { amount: z.string().optional() },
    },
    ({ amount }) => agent.stake(amount),
  );
  tool("unstake", { description: "Withdraw the whole stake", inputSchema: {} }, () => agent.unstake());
  tool(
    "file_complaint",
    {
      description: "File a complaint about the other party of a contract; moves no money",
      inputSchema: { id: ContractIdSchema, evidence: z.record(z.string(), z.unknown()) },
    },
    ({ id, evidence }) => agent.complain(id, evidence),
  );
  tool(
    "set_profile",
    {
      description: "Change your own display name or bio; null clears a field",
      inputSchema: { displayName: z.string().nullable().optional(), bio: z.string().nullable().optional() },
    },
    ({ displayName, bio }) =>
      agent.setProfile({
        ...(displayName === undefined ? {} : { displayName }),
        ...(bio === undefined ? {} : { bio }),
      }),
  );
}

type Shape = Record<string, z.ZodType>;
type AddTool = <Input extends Shape>(
  name: string,
  config: { description: string; inputSchema: Input },
  perform: (input: z.infer<z.ZodObject<Input>>) => Promise<unknown>,
) => void;

/**
 * Adds tools that sign each payment only once. If the outcome of a call is unknown, or its caller cancelled it before
 * the result, the same tool with the same input resumes the call instead of paying again. `resume_call` resumes a
 * call of unknown outcome by its id.
 */
function addingTools(server: McpServer): AddTool {
  const open = new Map<string, Unfinished>();
  /** Keyed by tool and input. */
  const unfinished = new Map<string, Unfinished>();

  const follow = async (call: Unfinished, signal: AbortSignal): Promise<CallToolResult> => {
    const keep = (): void => void unfinished.set(call.key, call);
    signal.addEventListener("abort", keep, { once: true });
    try {
      const result = await call.outcome();
      if (!signal.aborted) open.delete(call.resumeId);
      return toolResult(async () => result);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) {
        if (!signal.aborted) open.delete(call.resumeId);
        return refusal(error as Error);
      }
      call.outcome = once(error.resume);
      open.set(call.resumeId, call);
      keep();
      return refusal(error, { hint: "Call resume_call with this resumeId.", resumeId: call.resumeId });
    } finally {
      signal.removeEventListener("abort", keep);
    }
  };

  server.registerTool(
    "resume_call",
    {
      description: "Resume a paid call whose outcome is not known yet; signs nothing new",
      inputSchema: { resumeId: z.uuid() },
      annotations: CHANGES,
    },
    async ({ resumeId }, { signal }) => {
      const call = open.get(resumeId);
      if (call === undefined) return refusal(new Error("No unfinished call has this resumeId."));
      unfinished.delete(call.key);
      return follow(call, signal);
    },
  );

  return (name, config, perform) => {
    const schema = z.object(config.inputSchema);
    const run = (input: unknown, { signal }: { signal: AbortSignal }): Promise<CallToolResult> => {
      const key = JSON.stringify([name, input]);
      const earlier = unfinished.get(key);
      unfinished.delete(key);
      const fresh = () => perform(schema.parse(input));
      return follow(earlier ?? { key, resumeId: randomUUID(), outcome: once(fresh) }, signal);
    };
    server.registerTool(name, { ...config, annotations: CHANGES } as never, run as never);
  };
}

/** A tool call whose outcome its caller does not know. */
interface Unfinished {
  key: string;
  resumeId: string;
  /** Starts the call if needed; every invocation returns the same outcome. */
  outcome: () => Promise<unknown>;
}

function once(begin: () => Promise<unknown>): () => Promise<unknown> {
  let begun: Promise<unknown> | undefined;
  return () => {
    begun ??= begin();
    return begun;
  };
}

function addPost(tool: AddTool, agent: Agent): void {
  tool(
    "post_contract",
    {
      description: "Post a contract; pays its price (for a listing: the Worker Stake) into its escrow",
      inputSchema: {
        title: z.string(),
        taskDescription: z.string(),
        acceptanceCriteria: z.array(z.string()).min(1).max(10),
        price: z.string().describe("Decimal, in the stablecoin"),
        worker: z.string().optional().describe("Awards it directly to this address"),
        listing: z.boolean().default(false).describe("Offers work: you are the worker and pay the stake"),
        client: z.string().optional().describe("With listing: reserves it for this Buyer"),
        supplementaryMaterials: z.string().optional(),
        match: duration("1d"),
        withdrawal: duration("2d"),
        delivery: duration("3d"),
        review: duration("4d"),
      },
    },
    async ({
      price,
      worker,
      listing,
      client,
      supplementaryMaterials,
      match,
      withdrawal,
      delivery,
      review,
      ...text
    }) => {
      const after = { match, withdrawal, delivery, review } as Record<
        "match" | "withdrawal" | "delivery" | "review",
        Duration
      >;
      return agent.create({
        ...text,
        budgetOrPrice: price,
        ...(worker === undefined ? {} : { worker }),
        ...(listing ? { initiator: "worker" as const } : {}),
        ...(client === undefined ? {} : { client }),
        ...(supplementaryMaterials === undefined ? {} : { supplementaryMaterials }),
        ...(await agent.deadlines(after)),
      });
    },
  );
}
