import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { secondsOf } from "@working-contracts/client/connect";
import { type Agent, type Contract, OutcomeUnknown } from "@working-contracts/client/index";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { z } from "zod";
import type { OutputSchemas } from "./output-schemas.js";
import { ContractIdSchema, given, refusal, toolResult } from "./tool-result.js";
import { once, type UnfinishedCall, type UnfinishedCalls } from "./unfinished-calls.js";

const CHANGES = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
const DURATION = /^\d+(\.\d+)?[smhd]$/;
const deadline = (fallback: string) =>
  z
    .union([z.string().regex(DURATION), z.iso.datetime({ offset: true })])
    .default(fallback)
    .describe("Time from now, such as 90m, 36h or 2d, or an ISO 8601 time");

export interface WriteOptions {
  agent: Agent;
  outputs: OutputSchemas;
  unfinished: UnfinishedCalls;
}

/** Tools that sign, pay or change something. */
export function addWriteTools(server: McpServer, { agent, outputs, unfinished }: WriteOptions): void {
  const tool = addingTools(server, unfinished);
  const contract = outputs("GET /v1/contracts/{id}");
  addPost(tool, { agent, contract });
  const actions: [name: string, description: string, perform: (id: string) => Promise<Contract>][] = [
    ["accept_contract", "Accept a contract; pays the Worker Stake, or the price of a listing", agent.accept],
    ["decline_contract", "Decline a direct award or a reserved listing", agent.decline],
    ["approve_delivery", "Accept the delivery; the worker is paid, which is final", agent.approve],
    ["dispute_delivery", "Reject the delivery; pays the Dispute Bond", agent.dispute],
    ["withdraw", "Abandon the work, at the cost of part of the stake", agent.withdraw],
    ["cancel_contract", "Cancel a contract that no one has accepted", agent.cancel],
  ];
  for (const [name, description, perform] of actions) {
    const config = { description, inputSchema: { id: ContractIdSchema }, outputSchema: contract };
    tool(name, config, ({ id }) => perform(id));
  }
  tool(
    "deliver",
    {
      description: "Deliver a reference (a hash or URI), sealed to the client's key if it has published one",
      inputSchema: {
        id: ContractIdSchema,
        reference: z.string(),
        seal: z
          .boolean()
          .optional()
          .describe("true: refuse to deliver if the service could read the reference; false: do not seal it"),
      },
      outputSchema: contract,
    },
    ({ id, reference, ...options }) => agent.deliver(id, reference, given(options)),
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
      outputSchema: outputs("POST /v1/contracts/{id}/checkpoint"),
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
      outputSchema: z.object({
        votes: outputs("POST /v1/contracts/{id}/votes"),
        salt: z.string().nullable(),
      }),
    },
    ({ id, outcomes, entrust }) => agent.vote(id, outcomes, { entrust }),
  );
  tool(
    "open_votes",
    {
      description: "Open each of your sealed votes that can be opened now",
      inputSchema: {
        id: ContractIdSchema.optional().describe("Only the vote on this contract"),
      },
      outputSchema: z.object({ opened: z.array(z.string()).describe("Contract ids") }),
    },
    async (options) => ({ opened: await agent.openVotes({ ...given(options), wait: false }) }),
  );
  const stake = outputs("GET /v1/agents/{address}/stake");
  tool(
    "stake",
    {
      description: "Stake protocol tokens as a Backup Agent; by default the required amount",
      inputSchema: { amount: z.string().optional() },
      outputSchema: stake,
    },
    ({ amount }) => agent.stake(amount),
  );
  const unstake = { description: "Withdraw the whole stake", inputSchema: {}, outputSchema: stake };
  tool("unstake", unstake, () => agent.unstake());
  tool(
    "file_complaint",
    {
      description: "File a complaint about the other party of a contract; moves no money",
      inputSchema: { id: ContractIdSchema, evidence: z.record(z.string(), z.unknown()) },
      outputSchema: outputs("POST /v1/contracts/{id}/complaints"),
    },
    ({ id, evidence }) => agent.complain(id, evidence),
  );
  tool(
    "set_profile",
    {
      description: "Change your own display name or bio; null clears a field",
      inputSchema: { displayName: z.string().nullable().optional(), bio: z.string().nullable().optional() },
      outputSchema: outputs("POST /v1/agents/me/profile"),
    },
    (changes) => agent.setProfile(given(changes)),
  );
}

type Shape = Record<string, z.ZodType>;
type AddTool = <Input extends Shape>(
  name: string,
  config: { description: string; inputSchema: Input; outputSchema: z.ZodType },
  perform: (input: z.infer<z.ZodObject<Input>>) => Promise<object>,
) => void;

/**
 * Adds tools that sign each payment only once. If the outcome of a call is unknown, or its caller cancelled it before
 * the result, the same tool with the same input resumes the call instead of paying again. `resume_call` resumes a
 * call of unknown outcome by its id.
 */
function addingTools(server: McpServer, unfinished: UnfinishedCalls): AddTool {
  const follow = async (call: UnfinishedCall, signal: AbortSignal): Promise<CallToolResult> => {
    const abandon = (): void => {
      call.isAbandoned = true;
    };
    const end = (): void => {
      call.hasEnded = true;
      if (!signal.aborted) unfinished.forget(call);
    };
    signal.addEventListener("abort", abandon, { once: true });
    try {
      const result = await call.outcome();
      end();
      return toolResult(async () => result);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) {
        end();
        return refusal(error as Error);
      }
      call.outcome = once(error.resume as () => Promise<object>);
      abandon();
      return refusal(error, { hint: "Call resume_call with this resumeId.", resumeId: call.resumeId });
    } finally {
      signal.removeEventListener("abort", abandon);
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
      const call = unfinished.resume(resumeId);
      if (call === undefined) return refusal(new Error("No unfinished call has this resumeId."));
      return follow(call, signal);
    },
  );

  return (name, config, perform) => {
    const schema = z.object(config.inputSchema);
    const run = async (input: unknown, { signal }: { signal: AbortSignal }): Promise<CallToolResult> => {
      try {
        const begin = () => perform(schema.parse(input));
        return await follow(unfinished.enter(JSON.stringify([name, input]), begin), signal);
      } catch (error) {
        return refusal(error as Error);
      }
    };
    server.registerTool(name, { ...config, annotations: CHANGES } as never, run as never);
  };
}

function addPost(tool: AddTool, { agent, contract }: { agent: Agent; contract: z.ZodType }): void {
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
        application: z.enum(["usageticket"]).optional().describe("Continuous work, reported by checkpoints"),
        applicationTerms: z.record(z.string(), z.unknown()).optional(),
        verificationMode: z.enum(["privacy-preserving"]).optional(),
        idempotencyKey: z
          .string()
          .optional()
          .describe(
            "With the same key, options and ISO 8601 times, only one contract is posted; by default random",
          ),
        match: deadline("1d"),
        withdrawal: deadline("2d"),
        delivery: deadline("3d"),
        review: deadline("4d"),
      },
      outputSchema: contract,
    },
    async ({ price, listing, match, withdrawal, delivery, review, ...rest }) => {
      const now = await agent.now();
      const at = (time: string): string =>
        DURATION.test(time) ? new Date((now + secondsOf(time)) * 1000).toISOString() : time;
      return agent.create({
        ...given(rest),
        budgetOrPrice: price,
        ...(listing ? { initiator: "worker" as const } : {}),
        matchDeadline: at(match),
        withdrawalDeadline: at(withdrawal),
        deliveryDeadline: at(delivery),
        reviewDeadline: at(review),
      });
    },
  );
}
