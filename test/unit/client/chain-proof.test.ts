/** A service that reports what has not happened on chain, or hides what has. */
// Loaded before the clock is the test's.
import "@working-contracts/client/chain-check";
import { type Contract, PaymentRejected, ServiceError } from "@working-contracts/client/index";
import { concatHex, encodeCall, selectorOf } from "@working-contracts/protocol/hex";
import { STATUSES, type Status } from "@working-contracts/protocol/status";
import {
  canonicalTerms,
  creationSalt,
  DEFAULT_PARAMETERS,
  escrowAddress,
  packTerms,
  termsDocument,
  termsHash,
} from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms } from "@working-contracts/protocol/types";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { account, agentOf, CODE, NETWORK } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const word = (value: string | number): string =>
  `0x${(typeof value === "number" ? value.toString(16) : value.slice(2)).padStart(64, "0")}`;
const OTHER = `0x${"bb".repeat(20)}`;
const { id, terms } = servedTerms();
const escrowTerms = (terms as { escrowTerms: EscrowTerms }).escrowTerms;
const escrowCode = concatHex([
  `0x${"00".repeat(45)}`,
  packTerms({ ...escrowTerms, price: BigInt(escrowTerms.price) }),
]);

/** A node on which the escrow has this status, and the other worker. */
function nodeOf(status: () => Status, worker: string = OTHER) {
  const answers: Record<string, () => string> = {
    [encodeCall("status()")]: () => word(STATUSES.indexOf(status()) + 1),
    [encodeCall("worker()")]: () => word(worker.toLowerCase()),
    [selectorOf("decimals()")]: () => word(6),
  };
  return {
    async request({ method, params: [call] }: { method: string; params: [{ to: string; data: string }] }) {
      if (method === "eth_chainId") return word(NETWORK.chainId);
      if (method === "eth_getCode") return (call as unknown) === id ? escrowCode : CODE;
      return (answers[call.data] ?? (() => word(NETWORK.implementation)))();
    },
  };
}

const contract = (status: Status) => ({ id, status }) as Contract;

/** What a call ends with, however long it waits. */
async function ended<T>(call: Promise<T>): Promise<T | Error> {
  const end = call.catch((error: Error) => error);
  for (let i = 0; i < 80; i++) await vi.advanceTimersByTimeAsync(500);
  return end;
}

describe("an action that the service reports as done", () => {
  it.each([
    ["accept", "created", "matched"],
    ["decline", "created", "cancelled-unmatched"],
    ["cancel", "created", "cancelled-by-initiator"],
    ["deliver", "matched", "under-review"],
    ["withdraw", "matched", "cancelled-withdrawn"],
    ["approve", "under-review", "settled-all-met"],
    ["dispute", "under-review", "disputed"],
  ] as const)("throws unless the node shows it: %s", async (action, before, after) => {
    let status: Status = before;
    const serve = (request: string) => {
      if (request.endsWith("/terms")) return Response.json({ data: terms });
      if (request.endsWith("/checkpoints")) return Response.json({ data: [] });
      return request.startsWith("POST ") ? Response.json({ data: contract(after) }) : undefined;
    };
    const agent = await agentOf(serve, { node: nodeOf(() => status, account.address) as never });
    const act = () => (action === "deliver" ? agent.deliver(id, "a", { seal: false }) : agent[action](id));
    const lied = await ended(act());
    expect(lied).toMatchObject({ name: "NotOnChain", contractId: id });
    expect((lied as Error).message).toContain(`Timed out: "${before}"`);
    status = after;
    expect(await ended(act())).toEqual(contract(after));
    if (action !== "accept") return;
    const outrun = await agentOf(serve, { node: nodeOf(() => status) as never });
    expect(((await ended(outrun.accept(id))) as Error).message).toContain(`accepted by ${OTHER}`);
  });
});

describe("a wait with a node", () => {
  it.each<[string, Status, Status, string]>([
    ["ends with a status that the service hides", "under-review", "matched", "under-review"],
    ["does not end with one that the chain does not have", "under-review", "disputed", "Timed out: "],
  ])("%s", async (_, onChain, claimed, result) => {
    const agent = await agentOf(() => Response.json({ data: contract(claimed) }), {
      node: nodeOf(() => onChain) as never,
    });
    const wanted = claimed === "matched" ? onChain : claimed;
    const end = await ended(agent.waitFor(id, wanted, { timeoutMs: 10_000 }));
    expect("status" in end ? end.status : end.message).toContain(result);
  });

  it("waits for the service to follow, and needs it no more once it has responded", async () => {
    let [status, claimed]: Status[] = ["matched", "matched"] as const;
    let isDown = false;
    const serve = () =>
      isDown ? Promise.reject(new TypeError("gone")) : Response.json({ data: contract(claimed as Status) });
    const agent = await agentOf(serve, { node: nodeOf(() => status as Status) as never });
    const seen: Status[] = [];
    const onChange = (value: Contract) => void seen.push(value.status);
    const waiting = agent.waitFor(id, "disputed", { onChange });
    await vi.advanceTimersByTimeAsync(2000);
    status = "under-review";
    await vi.advanceTimersByTimeAsync(20_000);
    expect(seen).toEqual(["matched"]);
    claimed = "under-review";
    await vi.advanceTimersByTimeAsync(2000);
    expect(seen).toEqual(["matched", "under-review"]);
    isDown = true;
    status = "disputed";
    expect(await ended(waiting)).toMatchObject({ id, status: "disputed" });
  });
});

describe("a creation whose payment the service reports as not used", () => {
  const draft = {
    title: "Summarise a paper",
    taskDescription: "One page.",
    acceptanceCriteria: ["One page"],
    budgetOrPrice: 50,
    matchDeadline: "2100-01-01T00:00:00Z",
    withdrawalDeadline: "2100-01-02T00:00:00Z",
    deliveryDeadline: "2100-01-03T00:00:00Z",
    reviewDeadline: "2100-01-04T00:00:00Z",
  };
  const secondsOf = (time: string) => Date.parse(time) / 1000;

  /** A service that quotes each posted body, and answers the payment as said. */
  async function posting(answer: () => Response, options: object = {}) {
    const paid: { payTo: string; key: string }[] = [];
    const served = new Map<string, unknown>();
    const change = { baVotingWindow: 0 };
    const agent = await agentOf(
      (request, { body, headers }) => {
        const asked = /^GET .*\/(0x\w+)\/terms$/.exec(request)?.[1];
        if (asked !== undefined) return Response.json({ data: served.get(asked) });
        if (request !== "POST /v1/contracts") return undefined;
        const posted = JSON.parse(String(body));
        const document = termsDocument({
          ...draft,
          awardMethod: posted.awardMethod,
          initiator: "client",
          salt: creationSalt(
            account.address.toLowerCase() as Address,
            new TextEncoder().encode(String(body)),
          ),
        });
        const { baVotingWindow } = DEFAULT_PARAMETERS;
        const made: EscrowTerms = {
          ...{ initiator: account.address.toLowerCase() as Address, price: 50_000_000n },
          ...{ counterparty: `0x${"00".repeat(20)}`, criteriaCount: 1 },
          ...{ workerInitiated: false, computedCriteria: false, termsHash: termsHash(document) },
          matchDeadline: secondsOf(draft.matchDeadline),
          withdrawalDeadline: secondsOf(draft.withdrawalDeadline),
          deliveryDeadline: secondsOf(draft.deliveryDeadline),
          reviewDeadline: secondsOf(draft.reviewDeadline),
          parameters: { ...DEFAULT_PARAMETERS, baVotingWindow: baVotingWindow + change.baVotingWindow },
        };
        const payTo = escrowAddress({
          ...(NETWORK as never as { factory: Address; implementation: Address }),
          terms: made,
        });
        const escrowTerms = { ...made, price: String(made.price) };
        served.set(payTo, { document, canonicalDocument: canonicalTerms(document), escrowTerms });
        if (new Headers(headers).has("payment-signature")) {
          paid.push({ payTo, key: posted.idempotencyKey });
          return answer();
        }
        const resource = { url: `${NETWORK.baseUrl}/v1/contracts` };
        const { network, asset } = NETWORK;
        const quote = { scheme: "exact", network, asset: asset.address, payTo, amount: "50000000" };
        const required = btoa(JSON.stringify({ x402Version: 2, resource, accepts: [quote] }));
        return Response.json({}, { status: 402, headers: { "payment-required": required } });
      },
      { spendingLimit: { perCall: "50" }, ...options },
    );
    return { agent, paid, change };
  }
  const conflict = () => Response.json({ error: { code: "conflict", message: "No." } }, { status: 409 });

  it("says where and until when it can be used, and goes to the same escrow again", async () => {
    const { agent, paid, change } = await posting(conflict);
    const refused = (await ended(agent.create(draft))) as ServiceError;
    const until = expect.any(Date);
    expect(refused).toBeInstanceOf(ServiceError);
    expect(refused.payment).toEqual({ payTo: paid[0]?.payTo, until });
    const { payTo } = paid[0] as { payTo: string };
    expect(refused.message).toContain(
      `to ${payTo} can still be used until ${refused.payment?.until.toISOString()}`,
    );
    await ended(agent.create(draft));
    expect(paid[1]).toEqual(paid[0]);
    await ended(agent.create({ ...draft, title: "Another" }).catch((error) => error));
    change.baVotingWindow = 1;
    expect(await ended(agent.create(draft))).toMatchObject({ name: "RefusedToSign", field: "payTo" });
    await vi.advanceTimersByTimeAsync(16 * 60_000);
    await ended(agent.create(draft));
    expect(paid.at(-1)?.payTo).not.toBe(payTo);
  });

  it("is rejected with the same facts", async () => {
    const { agent, paid } = await posting(() => {
      const required = { x402Version: 2, accepts: [{}], error: "insufficient_funds" };
      const headers = { "payment-required": btoa(JSON.stringify(required)) };
      return Response.json({}, { status: 402, headers });
    });
    const rejected = await ended(agent.create(draft));
    expect(rejected).toBeInstanceOf(PaymentRejected);
    expect(rejected).toMatchObject({ payment: { payTo: paid[0]?.payTo } });
  });

  it("posts another contract after one that was posted", async () => {
    const { agent, paid } = await posting(() => Response.json({ data: { id: OTHER, status: "created" } }));
    expect(await ended(agent.create(draft))).toMatchObject({ id: paid[0]?.payTo });
    await ended(agent.create(draft));
    expect(paid[1]?.payTo).not.toBe(paid[0]?.payTo);
  });
});
