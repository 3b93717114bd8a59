import { randomUUID } from "node:crypto";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { type Agent, type Contract, type Duration, OutcomeUnknown } from "@working-contracts/client/index";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { z } from "zod";
import { answer, ContractIdSchema, refusal } from "./tool.js";

const CHANGES = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
const duration = (fallback: string) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?[smhd]$/)
    .default(fallback)
    .describe("From now, such as 90m, 36h or 2d");

/** Tools that sign, pay or change something. */
export function addWriteTools(server: McpServer, agent: Agent): void {
  const tool = addingTools(server);
  addPost(tool, agent);
  const acts: [name: string, description: string, perform: (id: string) => Promise<Contract>][] = [
    ["accept_contract", "Take a contract; pays the Worker Stake, or a listing's price", agent.accept],
    ["decline_contract", "Say no to a direct award or a reserved listing", agent.decline],
    ["approve_delivery", "Accept the delivery; the worker is paid, for good", agent.approve],
    ["dispute_delivery", "Reject the delivery; pays the Dispute Bond", agent.dispute],
    ["withdraw", "Give the work up, for a part of the stake", agent.withdraw],
    ["cancel_contract", "Cancel a contract that nobody has accepted", agent.cancel],
  ];
  for (const [name, description, perform] of acts) {
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
        checkpointedAt: z.string().describe("ISO 8601; not ahead of the chain's time"),
      },
    },
    ({ id, ...checkpoint }) => agent.checkpoint(id, checkpoint),
  );
  tool(
    "vote",
    {
      description: "Judge a disputed contract, one outcome for each criterion; pays the bond",
      inputSchema: { id: ContractIdSchema, outcomes: z.array(z.enum(OUTCOMES)).min(1).max(10) },
    },
    ({ id, outcomes }) => agent.vote(id, outcomes),
  );
  tool(
    "stake",
    {
      description: "Stake protocol tokens as a Backup Agent; by default as many as that takes",
      inputSchema: { amount: z.string().optional() },
    },
    ({ amount }) => agent.stake(amount),
  );
  tool("unstake", { description: "Withdraw the whole stake", inputSchema: {} }, () => agent.unstake());
  tool(
    "file_complaint",
    {
      description: "Complain about the other party of a contract; moves no money",
      inputSchema: { id: ContractIdSchema, evidence: z.record(z.string(), z.unknown()) },
    },
    ({ id, evidence }) => agent.complain(id, evidence),
  );
  tool(
    "set_profile",
    {
      description: "Change your own display name or bio; null clears",
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
 * Adds tools whose payments are signed once: one whose outcome is not known can be followed up by `resume_call`, and
 * goes on where the same is asked for again; so does a call that its caller gave up before the answer.
 */
function addingTools(server: McpServer): AddTool {
  const open = new Map<string, Unfinished>();
  /** By tool and input. */
  const unfinished = new Map<string, Unfinished>();

  const follow = async (call: Unfinished, signal: AbortSignal): Promise<CallToolResult> => {
    const keep = (): void => void unfinished.set(call.key, call);
    signal.addEventListener("abort", keep, { once: true });
    try {
      const result = await call.outcome();
      if (!signal.aborted) open.delete(call.resumeId);
      return answer(async () => result);
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
      description: "Ask again for the outcome of a paid call that is not known yet; signs nothing new",
      inputSchema: { resumeId: z.uuid() },
      annotations: CHANGES,
    },
    async ({ resumeId }, { signal }) => {
      const call = open.get(resumeId);
      if (call === undefined) return refusal(new Error("There is no such call."));
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

/** A call of a tool whose caller does not know its outcome. */
interface Unfinished {
  key: string;
  resumeId: string;
  /** Begins it where it has not begun, and gives its one outcome. */
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
      description: "Post a contract; pays its price (a listing: the Worker Stake) into its escrow",
      inputSchema: {
        title: z.string(),
        taskDescription: z.string(),
        acceptanceCriteria: z.array(z.string()).min(1).max(10),
        price: z.string().describe("Decimal, in the stablecoin"),
        worker: z.string().optional().describe("Awards it directly to this address"),
        listing: z.boolean().default(false).describe("Offer work: you are the worker, and pay the stake"),
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
