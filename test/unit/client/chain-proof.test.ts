/** A service that reports what has not happened on chain, or hides what has. */
// Loaded before the clock is the test's.
import "@working-contracts/client/chain-check";
import {
  type Agent,
  type ConnectOptions,
  type Contract,
  type NotOnChain,
  OutcomeUnknown,
  PaymentRejected,
  ServiceError,
} from "@working-contracts/client/index";
import { encodeWords } from "@working-contracts/protocol/hex";
import { STATUSES, type Status } from "@working-contracts/protocol/status";
import {
  creationSalt,
  DEFAULT_PARAMETERS,
  termsDocument,
  termsHash,
} from "@working-contracts/protocol/terms";
import type { Address } from "@working-contracts/protocol/types";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { account, agentOf, CODE, fakeNode, NETWORK, type NodeCall, quoted } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

const OTHER: Address = `0x${"bb".repeat(20)}`;
const { id, terms, code: escrowCode } = servedTerms();

/** A node on which the escrow has this status, and the other worker; by default it was disputed. */
const nodeOf = (status: () => Status | undefined, worker = OTHER, disputedAt = 1) =>
  fakeNode(
    {
      "status()": () => encodeWords(STATUSES.indexOf(status() as Status) + 1),
      "worker()": () => encodeWords(worker),
      "jury()": () => encodeWords(disputedAt, 0, 0, 0, 0),
      "decimals()": (to) => encodeWords(to === NETWORK.asset.address ? 6 : 18),
    },
    (address) => (address === id ? escrowCode : CODE),
  );

/** The same, but each request fails at first. */
function failing(node: ReturnType<typeof nodeOf>) {
  const seen = new Set<string>();
  return {
    request(call: NodeCall) {
      const text = JSON.stringify(call);
      if (seen.has(text)) return node.request(call);
      seen.add(text);
      return Promise.reject(new Error("limit exceeded"));
    },
  };
}

const contract = (status: Status) => ({ id, status }) as Contract;

/** A call's result or error, however long it waits. */
async function ended<T>(call: Promise<T>): Promise<T | Error> {
  const end = call.catch((error: Error) => error);
  for (let i = 0; i < 80; i++) await vi.advanceTimersByTimeAsync(500);
  return end;
}

/** A service that quotes a call on the escrow, which costs 2.5, and answers its payment. */
const charging =
  (call: string, answer: () => Response | Promise<Response>, served: unknown = terms) =>
  (request: string, { headers }: RequestInit) => {
    if (request.endsWith("/terms")) return Response.json({ data: served });
    if (!request.startsWith("POST ")) return undefined;
    if (new Headers(headers).has("payment-signature")) return answer();
    return quoted(`/v1/contracts/${id}/${call}`, { payTo: id, amount: "2500000" });
  };

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
    const connected = (node: unknown) => agentOf(serve, { node: node as never });
    const act = (agent: Agent) =>
      ended<unknown>(action === "deliver" ? agent.deliver(id, "a", { seal: false }) : agent[action](id));
    const agent = await connected(nodeOf(() => status, account.address));
    const lied = await act(agent);
    expect(lied).toMatchObject({ name: "NotOnChain", contractId: id });
    expect((lied as Error).message).toContain(`Timed out: "${before}"`);
    const silent = await act(await connected({ request: () => Promise.reject(new Error("gone")) }));
    const isPaid = action === "accept" || action === "dispute";
    expect(silent).toMatchObject({ name: isPaid ? "OutcomeUnknown" : "ConnectionError" });
    status = after;
    expect(await act(agent)).toEqual(contract(after));
    expect(await act(await connected(failing(nodeOf(() => status, account.address))))).toEqual(
      contract(after),
    );
    if (action !== "accept") return;
    const outrun = await act(await connected(nodeOf(() => status)));
    expect((outrun as Error).message).toContain(`accepted by ${OTHER}`);
  });
});

describe("an acceptance", () => {
  type Served = { escrowTerms: { price: string }; document: { title: string } };
  const honest = nodeOf(() => "created");
  const withoutCode: typeof honest = {
    request: async (call) =>
      call.method === "eth_getCode" && String(call.params[0]) === id ? "0x" : honest.request(call),
  };

  it.each<[string, string | null, (served: Served) => void, typeof honest]>([
    ["of genuine terms is signed", null, () => {}, honest],
    ["at another price is not signed", "payTo", (served) => (served.escrowTerms.price = "10000000"), honest],
    ["of another text is not signed", "terms", (served) => (served.document.title = "Rob a bank"), honest],
    ["without an escrow is not signed", "payTo", () => {}, withoutCode],
  ])("%s", async (_, field, change, node) => {
    const served: Served = structuredClone(terms);
    change(served);
    const signTypedData = vi.fn(account.signTypedData);
    const agent = await agentOf(
      charging("accept", () => Response.json({ data: contract("matched") }), served),
      { node: node as never, spendingLimit: { perCall: "50" }, account: { ...account, signTypedData } },
    );
    const end = await ended(agent.accept(id));
    if (field !== null) expect(end).toMatchObject({ name: "RefusedToSign", field });
    expect(signTypedData).toHaveBeenCalledTimes(field === null ? 1 : 0);
  });
});

it.each([
  ["accept", "under-review"],
  ["dispute", "created"],
] as const)("%s pays no escrow that is %s", async (action, status) => {
  const signTypedData = vi.fn(account.signTypedData);
  const serve = charging(action, () => Response.json({ data: contract(status) }));
  const options = { spendingLimit: { perCall: "50" }, account: { ...account, signTypedData } };
  const agent = await agentOf(serve, { node: nodeOf(() => status) as never, ...options });
  expect(await ended(agent[action](id))).toMatchObject({ name: "RefusedToSign", field: "status" });
  expect(signTypedData).not.toHaveBeenCalled();
});

describe("an acceptance that is paid, and that the node does not show", () => {
  /** Accepts. The node answers after `delay`, which gets the time since the payment. */
  async function accepting(delay: (ms: number) => unknown, options: Partial<ConnectOptions> = {}) {
    const state = { status: "created" as Status, delay, signed: 0 };
    const chain = nodeOf(() => state.status, account.address);
    let paidAt = 0;
    const request = async (call: NodeCall) => {
      if (state.signed > 0) await state.delay(performance.now() - paidAt);
      return chain.request(call);
    };
    const serve = charging("accept", () => {
      state.signed++;
      paidAt = performance.now();
      return Response.json({ data: contract("matched") });
    });
    const given = { node: { request } as never, spendingLimit: { perCall: "50" }, ...options };
    const agent = await agentOf(serve, given);
    const error = (await ended(agent.accept(id))) as OutcomeUnknown;
    /** The outcome of the call, resumed once the node shows it. */
    const resumed = () => {
      Object.assign(state, { status: "matched", delay: () => {} });
      return ended(error.resume());
    };
    return { error, resumed, state };
  }

  it.each<[string, (ms: number) => unknown, string]>([
    ["fails", () => Promise.reject(new Error("limit exceeded")), "limit exceeded"],
    ["hangs after an old answer", (ms) => ms > 500 && new Promise(() => {}), 'Timed out: "created"'],
  ])(
    "has an unknown outcome if the node %s, and the node confirms it once it is resumed",
    async (_, delay, reason) => {
      const { error, resumed, state } = await accepting(delay);
      expect(error).toMatchObject({ name: "OutcomeUnknown", cause: { name: "ConnectionError" } });
      expect(error.message).toContain(
        `reports accept on ${id} as done, but your node cannot confirm it (${reason}). Resume this call`,
      );
      expect(await resumed()).toEqual(contract("matched"));
      expect(state.signed).toBe(1);
    },
  );

  it("has an unknown outcome if the caller aborts, and is checked once it is resumed", async () => {
    for (const reason of [new Error("enough"), "enough"]) {
      const caller = new AbortController();
      const abort = (ms: number) => ms > 500 && caller.abort(reason);
      const { error, resumed, state } = await accepting(abort, { signal: caller.signal });
      expect(error).toMatchObject({ name: "OutcomeUnknown", cause: reason });
      expect(error.message).toMatch(/^enough. Resume this call/);
      expect(await ended(error.resume())).toMatchObject({ name: "NotOnChain" });
      expect(await resumed()).toEqual(contract("matched"));
      expect(state.signed).toBe(1);
    }
  });

  it("is not on chain if the node responds to the end, however slowly, and the node can be asked again", async () => {
    const late = () => new Promise((resolve) => setTimeout(resolve, 1500));
    const { error, resumed, state } = await accepting(late);
    expect(error).toMatchObject({ name: "NotOnChain", message: expect.stringContaining('"created"') });
    expect(await resumed()).toEqual(contract("matched"));
    expect(state.signed).toBe(1);
  });
});

describe("a dispute", () => {
  it("counts once it is decided, and no decision without it does", async () => {
    const serve = (request: string) =>
      request.startsWith("POST ") ? Response.json({ data: contract("resolved") }) : undefined;
    for (const [disputedAt, result] of [
      [1, { status: "resolved" }],
      [0, { name: "NotOnChain" }],
    ] as const) {
      const agent = await agentOf(serve, { node: nodeOf(() => "resolved", OTHER, disputedAt) as never });
      expect(await ended(agent.dispute(id))).toMatchObject(result);
    }
  });

  it("can be resumed if its caller aborts, and is then checked", async () => {
    let status: Status = "under-review";
    let isLost = true;
    const caller = new AbortController();
    const serve = charging("dispute", () => {
      if (isLost) caller.abort();
      return isLost ? Promise.reject(new TypeError("gone")) : Response.json({ data: contract("disputed") });
    });
    const options = { spendingLimit: { perCall: "50" }, signal: caller.signal };
    const agent = await agentOf(serve, { node: nodeOf(() => status) as never, ...options });
    const unknown = await ended(agent.dispute(id));
    expect(unknown).toBeInstanceOf(OutcomeUnknown);
    isLost = false;
    status = "disputed";
    expect(await ended((unknown as OutcomeUnknown).resume())).toEqual(contract("disputed"));
  });

  it("ends with the abort if its caller aborts the check", async () => {
    const caller = new AbortController();
    const serve = () => Response.json({ data: contract("disputed") });
    const node = nodeOf(() => "under-review") as never;
    const agent = await agentOf(serve, { node, signal: caller.signal });
    const disputing = agent.dispute(id).catch((error) => error);
    await vi.advanceTimersByTimeAsync(2000);
    caller.abort(new Error("enough"));
    expect(await ended(disputing)).toMatchObject({ message: "enough" });
  });
});

describe("a wait with a node", () => {
  it("ends with the service's answer for a contract that neither knows", async () => {
    const agent = await agentOf(() => undefined, { node: nodeOf(() => "created") as never });
    expect(await ended(agent.waitFor(OTHER, "matched"))).toMatchObject({ code: "not_found" });
  });

  it.each<[string, string, Status | undefined]>([
    ["is not one of the deployment", OTHER, "created"],
    ["was not paid", id, undefined],
  ])("ends after 30 seconds for a contract that %s", async (_, other, status) => {
    const serve = () => Response.json({ data: { id: other, status: "created" } });
    const agent = await agentOf(serve, { node: nodeOf(() => status) as never });
    expect(await ended(agent.waitFor(other, "matched"))).toMatchObject({
      name: "NotOnChain",
      message: `The service shows ${other} as created, and your node as not paid`,
    });
  });

  it("is refused at once for an id that no contract can have", async () => {
    const agent = await agentOf(() => undefined, { node: nodeOf(() => "created") as never });
    await expect(agent.waitFor("0x12", "matched")).rejects.toThrow("0x12 is not a contract id");
  });

  it("waits for a node that fails, and says why if time runs out", async () => {
    const serve = () => Response.json({ data: contract("matched") });
    const node = nodeOf(() => "matched");
    const agent = await agentOf(serve, { node: failing(node) as never });
    expect(await ended(agent.waitFor(id, "matched"))).toEqual(contract("matched"));
    const request = () => Promise.reject(new Error("limit exceeded"));
    const without = await agentOf(serve, { node: { request } as never });
    const end = (await ended(without.waitFor(id, "matched", { timeoutMs: 5000 }))) as Error;
    expect(end).toMatchObject({ name: "ConnectionError" });
    expect(end.message).toContain("limit exceeded");
  });

  it("waits for a node without the deployment, but only for 30 seconds", async () => {
    let isBehind = true;
    let status: Status = "matched";
    const node = nodeOf(() => status);
    const request = async (call: NodeCall) =>
      isBehind && call.method === "eth_call" ? "0x" : node.request(call);
    const serve = () => Response.json({ data: contract(status) });
    const agent = await agentOf(serve, { node: { request } as never });
    const waiting = agent.waitFor(id, "under-review");
    for (const ms of [5_000, 40_000, 5_000]) {
      await vi.advanceTimersByTimeAsync(ms);
      isBehind = !isBehind;
    }
    status = "under-review";
    expect(await ended(waiting)).toEqual(contract("under-review"));
    isBehind = true;
    const refusal = { name: "RefusedToSign", field: "implementation" };
    expect(await ended(agent.waitFor(id, "under-review"))).toMatchObject(refusal);
  });

  it("is not held up by a service that no longer responds", async () => {
    vi.useRealTimers();
    let status: Status = "matched";
    let isStalled = false;
    const serve = (_: string, { signal }: RequestInit) =>
      isStalled
        ? new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)))
        : Response.json({ data: contract("matched") });
    const agent = await agentOf(serve, { node: nodeOf(() => status) as never, patienceMs: 60_000 });
    const onChange = () => {
      isStalled = true;
      status = "under-review";
    };
    const wait = { timeoutMs: 3000, intervalMs: 50, onChange };
    expect(await agent.waitFor(id, "under-review", wait)).toMatchObject({ status: "under-review" });
  });

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

  /** A service that quotes each posted body, unless it `claims` that it is paid, and answers the payment as said. */
  async function posting(answer: () => Response | Promise<Response>, options: object = {}, claims = false) {
    const paid: { payTo: string; key: string }[] = [];
    const served = new Map<string, unknown>();
    const codes = new Map<string, string>();
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
        const made = servedTerms(
          {
            initiator: account.address.toLowerCase() as Address,
            termsHash: termsHash(document),
            matchDeadline: secondsOf(draft.matchDeadline),
            withdrawalDeadline: secondsOf(draft.withdrawalDeadline),
            deliveryDeadline: secondsOf(draft.deliveryDeadline),
            reviewDeadline: secondsOf(draft.reviewDeadline),
            parameters: { ...DEFAULT_PARAMETERS, baVotingWindow: baVotingWindow + change.baVotingWindow },
          },
          document,
        );
        const payTo = made.id;
        served.set(payTo, made.terms);
        if (new Headers(headers).has("payment-signature")) {
          paid.push({ payTo, key: posted.idempotencyKey });
          return answer();
        }
        codes.set(payTo, made.code);
        if (claims) return Response.json({ data: { id: payTo, status: "created" } });
        return quoted("/v1/contracts", { payTo, amount: "50000000" });
      },
      { spendingLimit: { perCall: "50" }, ...options },
    );
    return { agent, paid, change, codes };
  }
  const conflict = () => Response.json({ error: { code: "conflict", message: "No." } }, { status: 409 });

  it("says where and until when it can be used, and goes to the same escrow again", async () => {
    let chainMs = 0;
    const now = () => Date.now() + chainMs;
    const { agent, paid, change } = await posting(conflict, { clock: "service", now });
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
    // The chain stands still, and no payment expires.
    await vi.advanceTimersByTimeAsync(16 * 60_000);
    expect(await ended(agent.create(draft))).toMatchObject({ name: "RefusedToSign", field: "payTo" });
    chainMs = 14 * 60_000;
    expect(await ended(agent.create(draft))).toMatchObject({ name: "RefusedToSign", field: "payTo" });
    chainMs = 16 * 60_000;
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
    expect(rejected).toMatchObject({ reason: "insufficient_funds", payment: { payTo: paid[0]?.payTo } });
  });

  it("is not done because the service deploys the escrow", async () => {
    let status: Status | undefined;
    const chain = nodeOf(() => status);
    const node = {
      request: async (call: NodeCall) => {
        const code = codes.get(String(call.params[0]));
        return call.method === "eth_getCode" && code ? code : chain.request(call);
      },
    };
    const { agent, codes } = await posting(conflict, { node }, true);
    expect(await ended(agent.create(draft))).toMatchObject({
      name: "NotOnChain",
      message: expect.stringContaining('Timed out: "not paid"'),
    });
    status = "created";
    expect(await ended(agent.create(draft))).toMatchObject({ status: "created" });
  });

  it("has a payment that a repetition and a dry run use too, if the node does not show it", async () => {
    const node = nodeOf(() => undefined);
    const { agent, paid } = await posting(() => Response.json({ data: { status: "created" } }), { node });
    const { payTo } = ((await ended(agent.create(draft))) as NotOnChain).payment as { payTo: string };
    const again = await ended(agent.create(draft));
    const payment = { payTo, until: expect.any(Date) };
    expect(again).toMatchObject({ name: "NotOnChain", payment });
    expect((again as Error).message).toContain(
      `repeats the same draft. Your signed payment to ${payTo} can still`,
    );
    expect(await agent.dryRun((dry) => dry.create(draft))).toMatchObject({ payTo });
    expect(paid.map((one) => one.payTo)).toEqual([payTo, payTo]);
  });

  it("does not keep another one with the same text from being posted at the same time", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { agent, paid } = await posting(async () => {
      await held;
      return Response.json({ data: { status: "created" } });
    });
    const one = agent.create(draft);
    await vi.waitUntil(() => paid.length === 1);
    const other = agent.create(draft);
    await vi.waitUntil(() => paid.length === 2);
    release();
    const [first, second] = await Promise.all([one, other]);
    expect(first.id).not.toBe(second.id);
  });

  it("is kept beside another one with the same text, and each is repeated once", async () => {
    const { agent, paid } = await posting(conflict);
    const both = () =>
      ended(Promise.all([agent.create(draft).catch(String), agent.create(draft).catch(String)]));
    for (let i = 0; i < 2; i++) await both();
    const [first, second, ...repeated] = paid.map(({ payTo }) => payTo);
    expect(first).not.toBe(second);
    expect(repeated.toSorted()).toEqual([first, second].toSorted());
  });

  it("goes to the same escrow although the service's clock goes back and forward", async () => {
    let lie = 0;
    const { agent, paid } = await posting(conflict, { now: () => Date.now() + lie });
    for (lie of [0, -3_600_000, 0]) await ended(agent.create(draft));
    expect(paid.map(({ payTo }) => payTo)).toEqual(Array(3).fill(paid[0]?.payTo));
  });

  it("leaves nothing behind once a repetition succeeded, though another one was not signed meanwhile", async () => {
    let answer: () => Response | Promise<Response> = conflict;
    let refuses = false;
    const beforePayment = async () => {
      if (refuses) throw new Error("No");
    };
    const { agent, paid } = await posting(() => answer(), { beforePayment });
    await ended(agent.create(draft));
    let release = (_response: Response) => {};
    answer = () => new Promise((resolve) => (release = resolve));
    const repeated = agent.create(draft);
    await vi.waitUntil(() => paid.length === 2);
    refuses = true;
    await expect(agent.create(draft)).rejects.toThrow("No");
    refuses = false;
    release(Response.json({ data: { status: "created" } }));
    const { id } = await repeated;
    answer = () => Response.json({ data: { status: "created" } });
    expect((await agent.create(draft)).id).not.toBe(id);
  });

  it("goes to the same escrow although an earlier repetition has not ended", async () => {
    let answer: () => Response | Promise<Response> = conflict;
    const { agent, paid } = await posting(() => answer());
    await ended(agent.create(draft));
    answer = () => new Promise(() => {});
    for (const payments of [2, 3]) {
      void agent.create(draft);
      await vi.waitUntil(() => paid.length === payments);
    }
    expect(paid.map(({ payTo }) => payTo)).toEqual(Array(3).fill(paid[0]?.payTo));
  });

  it("uses one unpaid attempt if nothing was signed, and none beyond the caller's limit", async () => {
    const limited = await posting(conflict, { spendingLimit: { perCall: "49" } });
    expect(await ended(limited.agent.create(draft))).toMatchObject({ name: "SpendingLimitError" });
    expect(limited.codes.size).toBe(0);
    const beforePayment = vi
      .fn()
      .mockRejectedValueOnce(new Error("No"))
      .mockRejectedValueOnce(new Error("No"));
    const { agent, codes } = await posting(() => Response.json({ data: { status: "created" } }), {
      beforePayment,
    });
    for (let i = 0; i < 2; i++) expect(await ended(agent.create(draft))).toMatchObject({ message: "No" });
    const { id: posted } = (await ended(agent.create(draft))) as Contract;
    expect([...codes.keys()]).toEqual([posted]);
  });

  it("posts another contract after one that was posted", async () => {
    const { agent, paid } = await posting(() => Response.json({ data: { id: OTHER, status: "created" } }));
    expect(await ended(agent.create(draft))).toMatchObject({ id: paid[0]?.payTo });
    await ended(agent.create(draft));
    expect(paid[1]?.payTo).not.toBe(paid[0]?.payTo);
  });
});
