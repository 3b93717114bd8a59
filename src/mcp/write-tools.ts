import { randomUUID } from "node:crypto";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import { type Agent, type Contract, type Duration, OutcomeUnknown } from "../client/index.js";
import { OUTCOMES } from "../protocol/outcomes.js";
import { answer as answerOnce, ContractIdSchema, refusal } from "./tool.js";

const CHANGES = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
const duration = (fallback: string) =>
  z
    .string()
    .regex(/^\d+(\.\d+)?[smhd]$/)
    .default(fallback)
    .describe("From now, such as 90m, 36h or 2d");

/** Tools that sign, pay or change something. */
export function addWriteTools(server: McpServer, agent: Agent): void {
  const answer = addResume(server);
  addPost(server, agent, answer);
  const acts: [name: string, description: string, perform: (id: string) => Promise<Contract>][] = [
    ["accept_contract", "Take a contract; pays the Worker Stake, or a listing's price", agent.accept],
    ["decline_contract", "Say no to a direct award or a reserved listing", agent.decline],
    ["approve_delivery", "Accept the delivery; the worker is paid, for good", agent.approve],
    ["dispute_delivery", "Reject the delivery; pays the Dispute Bond", agent.dispute],
    ["withdraw", "Give the work up, for a part of the stake", agent.withdraw],
    ["cancel_contract", "Cancel a contract that nobody has accepted", agent.cancel],
  ];
  for (const [name, description, perform] of acts) {
    server.registerTool(
      name,
      { description, inputSchema: { id: ContractIdSchema }, annotations: CHANGES },
      ({ id }) => answer(() => perform(id)),
    );
  }
  server.registerTool(
    "deliver",
    {
      description: "Deliver a reference (a hash or URI); it is encrypted for the client",
      inputSchema: { id: ContractIdSchema, reference: z.string() },
      annotations: CHANGES,
    },
    ({ id, reference }) => answer(() => agent.deliver(id, reference)),
  );
  server.registerTool(
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
      annotations: CHANGES,
    },
    ({ id, ...checkpoint }) => answer(() => agent.checkpoint(id, checkpoint)),
  );
  server.registerTool(
    "vote",
    {
      description: "Judge a disputed contract, one outcome for each criterion; pays the bond",
      inputSchema: { id: ContractIdSchema, outcomes: z.array(z.enum(OUTCOMES)).min(1).max(10) },
      annotations: CHANGES,
    },
    ({ id, outcomes }) => answer(() => agent.vote(id, outcomes)),
  );
  server.registerTool(
    "stake",
    {
      description: "Stake protocol tokens as a Backup Agent; by default as many as that takes",
      inputSchema: { amount: z.string().optional() },
      annotations: CHANGES,
    },
    ({ amount }) => answer(() => agent.stake(amount)),
  );
  server.registerTool("unstake", { description: "Withdraw the whole stake", annotations: CHANGES }, () =>
    answer(() => agent.unstake()),
  );
  server.registerTool(
    "file_complaint",
    {
      description: "Complain about the other party of a contract; moves no money",
      inputSchema: { id: ContractIdSchema, evidence: z.record(z.string(), z.unknown()) },
      annotations: CHANGES,
    },
    ({ id, evidence }) => answer(() => agent.complain(id, evidence)),
  );
  server.registerTool(
    "set_profile",
    {
      description: "Change your own display name or bio; null clears",
      inputSchema: { displayName: z.string().nullable().optional(), bio: z.string().nullable().optional() },
      annotations: CHANGES,
    },
    ({ displayName, bio }) =>
      answer(() =>
        agent.setProfile({
          ...(displayName === undefined ? {} : { displayName }),
          ...(bio === undefined ? {} : { bio }),
        }),
      ),
  );
}

/** A payment whose outcome is not known can be followed up, and need not be signed a second time. */
function addResume(server: McpServer): typeof answerOnce {
  const open = new Map<string, () => Promise<unknown>>();
  const answer: typeof answerOnce = async (perform) => {
    try {
      const result = await perform();
      return answerOnce(async () => result);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) return refusal(error as Error);
      const resumeId = randomUUID();
      open.set(resumeId, error.resume);
      return refusal(error, { hint: "Call resume_call with this resumeId.", resumeId });
    }
  };
  server.registerTool(
    "resume_call",
    {
      description: "Ask again for the outcome of a paid call that is not known yet; signs nothing new",
      inputSchema: { resumeId: z.uuid() },
      annotations: CHANGES,
    },
    ({ resumeId }) => {
      const resume = open.get(resumeId);
      open.delete(resumeId);
      return answer(resume ?? (() => Promise.reject(new Error("There is no such call."))));
    },
  );
  return answer;
}

function addPost(server: McpServer, agent: Agent, answer: typeof answerOnce): void {
  server.registerTool(
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
      annotations: CHANGES,
    },
    ({
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
    }) =>
      answer(async () => {
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
      }),
  );
}
