import {
  type Agent,
  type ConnectOptions,
  type PlannedPayment,
  untilOutcome,
} from "@working-contracts/client/index";
import { createBudget, type SpendingLimit } from "@working-contracts/client/payment";
import { plannedOf } from "@working-contracts/client/session";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import { describe, expect, it, vi } from "vitest";
import { account, agentOf, NETWORK, quoted } from "./fake-service.js";

const PATH = "/v1/agents/me/stake";
const STAKE = { staked: "1.0" };

const quote = {
  asset: NETWORK.protocolToken,
  payTo: NETWORK.registry,
  amount: String(10n ** 18n),
  extra: { name: "Token", version: "1" },
};
const refused = (status: number, code: string, retryAfter = "0") =>
  Response.json({ error: { code, message: code } }, { status, headers: { "retry-after": retryAfter } });
const lost = () => Promise.reject(new TypeError("fetch failed"));

/** An agent of a service that quotes a stake, and answers the signed request as said, one answer each time. */
async function staking(
  answers: (() => Response | Promise<Response>)[],
  { changes = {}, ...options }: Partial<ConnectOptions> & { changes?: object; now?: () => number } = {},
) {
  const sent: string[] = [];
  const agent: Agent = await agentOf(
    (request, { headers, body }) => {
      if (request !== `POST ${PATH}`) return undefined;
      const payment = new Headers(headers).get("payment-signature");
      if (payment === null) return quoted(PATH, { ...quote, ...changes });
      sent.push(`${payment} ${body}`);
      return (answers.shift() ?? (() => Response.json({ data: STAKE })))();
    },
    { spendingLimit: { stake: "1" }, patienceMs: 3000, ...options },
  );
  return { agent, sent };
}

describe.concurrent("a payment that was signed and sent", () => {
  it("is repeated byte for byte until a response arrives", async () => {
    const { agent, sent } = await staking([lost, () => refused(503, "settlement_pending")]);
    expect(await agent.stake("1")).toEqual(STAKE);
    expect(sent).toEqual(Array(3).fill(sent[0]));
  });

  it.each<[string, (() => Response | Promise<Response>)[]]>([
    ["gets a 402 without a quote", [() => Response.json({}, { status: 402 })]],
    ["gets a 402 whose reason is no text", [() => quoted(PATH, quote, { errorMessage: { toString: 1 } })]],
    ["gets a 200 without data", [() => Response.json({ data: null })]],
    ["gets no response, and its repetition a refusal", [lost, () => refused(401, "unauthorized")]],
    [
      "gets a 503, and its repetition a refusal",
      [() => refused(503, "internal_error"), () => refused(401, "unauthorized")],
    ],
    ["gets no response, and its repetition is too long", [lost, () => refused(413, "payload_too_large")]],
    ["may be repeated only after a minute", [() => refused(429, "rate_limited", "60")]],
  ])("has an unknown outcome if it %s", async (_, answers) => {
    const { agent, sent } = await staking(answers);
    const error = await agent.stake("1").catch((thrown) => thrown);
    const { registry: payTo } = NETWORK;
    expect(error).toMatchObject({ name: "OutcomeUnknown", payment: { payTo, until: expect.any(Date) } });
    expect(error.message).toContain(`Your signed payment to ${payTo} can still be used until 20`);
    expect(error.message).not.toContain("Refused to sign");
    expect(await error.resume()).toEqual(STAKE);
    expect(new Set(sent).size).toBe(1);
  });

  it("has an unknown outcome if the caller aborts it, and can still be resumed", async () => {
    for (const reason of [undefined, "enough"]) {
      const caller = new AbortController();
      const abort = () => {
        caller.abort(reason);
        return lost();
      };
      const { agent, sent } = await staking([abort], { signal: caller.signal });
      const error = await untilOutcome(() => agent.stake("1")).catch((thrown) => thrown);
      expect(error).toMatchObject({ name: "OutcomeUnknown", cause: caller.signal.reason });
      expect(error.message).toMatch(reason ?? "aborted");
      expect(sent).toHaveLength(1);
      expect(await error.resume()).toEqual(STAKE);
      expect(sent).toEqual([sent[0], sent[0]]);
    }
  });

  it("is not resumed by itself once the caller has aborted", async () => {
    const caller = new AbortController();
    const { agent, sent } = await staking([lost], { signal: caller.signal, patienceMs: 0 });
    const ending = untilOutcome(() => agent.stake("1"), { onUnknown: () => caller.abort() });
    await expect(ending).rejects.toMatchObject({ name: "OutcomeUnknown" });
    expect(sent).toHaveLength(1);
  });

  it("has an unknown outcome if a resumed call is refused", async () => {
    const { agent } = await staking([lost, () => refused(401, "unauthorized")], { patienceMs: 0 });
    const error = await agent.stake("1").catch((thrown) => thrown);
    expect(await error.resume().catch((thrown: Error) => thrown)).toMatchObject({ name: "OutcomeUnknown" });
  });

  it("is refused by the response to its only attempt, and by any that has looked at the payment", async () => {
    const refusing = await staking([() => refused(401, "unauthorized")]);
    await expect(refusing.agent.stake("1")).rejects.toMatchObject({ name: "ServiceError" });
    const outrun = await staking([() => refused(503, "settlement_pending"), () => refused(409, "conflict")]);
    await expect(outrun.agent.stake("1")).rejects.toMatchObject({ name: "ServiceError", code: "conflict" });
    const rejecting = await staking([() => quoted(PATH, quote)]);
    await expect(rejecting.agent.stake("1")).rejects.toMatchObject({ name: "PaymentRejected" });
  });
});

it("a payment needs nothing of the limit that others behind the same IP address can use up", async () => {
  const keys: unknown[] = [];
  const agent = await agentOf(
    (request, { headers }) => {
      keys.push(new Headers(headers).get("authorization"));
      if (request !== `POST ${PATH}`) return undefined;
      return new Headers(headers).has("payment-signature")
        ? Response.json({ data: STAKE })
        : quoted(PATH, quote);
    },
    { spendingLimit: { stake: "1" } },
  );
  expect(await agent.stake("1")).toEqual(STAKE);
  expect(keys).toEqual(Array(3).fill("Bearer key"));
});

it("a payment is valid for at most five minutes more than ten by a service's clock that is ahead", async () => {
  const signTypedData = vi.fn(account.signTypedData);
  const ahead = (ms: number) =>
    staking([], { now: () => Date.now() + ms, account: { ...account, signTypedData } });
  const far = await ahead(310_000);
  await expect(far.agent.stake("1")).rejects.toMatchObject({ name: "RefusedToSign", field: "clock" });
  expect(signTypedData).not.toHaveBeenCalled();
  const near = await ahead(290_000);
  expect(await near.agent.stake("1")).toEqual(STAKE);
  const { validBefore } = JSON.parse(atob(String(near.sent[0]).split(" ", 1)[0] ?? "")).payload.authorization;
  expect(Number(validBefore)).toBeLessThanOrEqual(Date.now() / 1000 + 900);
});

it("a payment is shown with its token before it is signed", async () => {
  const shown: PlannedPayment[] = [];
  const { agent } = await staking([], { beforePayment: (payment) => void shown.push(payment) });
  expect(await agent.stake("1")).toEqual(STAKE);
  const { protocolToken: token, registry: payTo } = NETWORK;
  expect(shown).toMatchObject([{ token, decimal: "1.0", payTo, role: "Backup Agent" }]);
});

it.each<[string, (abort: () => void) => Partial<ConnectOptions>]>([
  // No limit allows the payment, so it would be refused if it were counted.
  ["is shown, and is not counted", (abort) => ({ beforePayment: abort, spendingLimit: {} })],
  ["is about to be signed", (abort) => ({ onProgress: ({ step }) => step === "signing" && abort() })],
])("a payment is not signed if the caller aborts while it %s", async (_, aborting) => {
  const caller = new AbortController();
  const reason = new Error("enough");
  const signTypedData = vi.fn(account.signTypedData);
  const { agent } = await staking([], {
    ...{ signal: caller.signal, account: { ...account, signTypedData } },
    ...aborting(() => caller.abort(reason)),
  });
  await expect(agent.stake("1")).rejects.toBe(reason);
  expect(signTypedData).not.toHaveBeenCalled();
});

it.each<[string, SpendingLimit | undefined, string]>([
  ["without a limit", undefined, "Set spendingLimit.perCall"],
  ["without a limit for its currency", { stake: "50" }, "Set spendingLimit.perCall"],
  ["above the limit of a call", { perCall: "49.999999" }, "more than 49.999999"],
  ["above the limit of all calls", { perCall: "60", total: "99.999999" }, "the 50.0 already signed"],
])("a payment %s is refused", (_, limit, reason) => {
  const due = { currency: "stablecoin", amount: 50_000_000n, payTo: "0x", resource: "/" } as const;
  const { spend } = createBudget(limit);
  const spendTwice = () => {
    for (const one of [due, due]) spend(plannedOf(one, NETWORK));
  };
  const message = expect.stringContaining(reason);
  expect(spendTwice).toThrow(expect.objectContaining({ name: "SpendingLimitError", message }));
});

it("a payment beyond the caller's limit is not signed", async () => {
  const signTypedData = vi.fn(account.signTypedData);
  const options = { spendingLimit: { stake: "0.9" }, account: { ...account, signTypedData } };
  const { agent } = await staking([], options);
  await expect(agent.stake("1")).rejects.toMatchObject({ name: "SpendingLimitError" });
  expect(signTypedData).not.toHaveBeenCalled();
});

it.each([
  ["whose two currencies are one token", { protocolToken: NETWORK.asset.address }],
  ["whose stablecoin has other decimals", { asset: { ...NETWORK.asset, decimals: 18 } }],
])("a network %s is rejected before anything is signed", async (_, changes) => {
  const data = { ...NETWORK, ...changes };
  const answer = (request: string) => (request === "GET /v1/network" ? Response.json({ data }) : undefined);
  const signingIn = agentOf(answer, { network: undefined as never, apiKey: undefined as never });
  await expect(signingIn).rejects.toMatchObject({ name: "RefusedToSign", field: "network" });
});

it.each([
  ["posts", { isNew: true, workerInitiated: false }, "Client"],
  ["posts a listing", { isNew: true, workerInitiated: true }, "Worker"],
  ["accepts", { status: "created", workerInitiated: false }, "Worker"],
  ["takes a listing", { status: "created", workerInitiated: true }, "Client"],
  ["disputes", { status: "under-review", workerInitiated: true }, "Client"],
  ["votes", { status: "disputed", workerInitiated: false }, "Backup Agent"],
] as const)("a payment names the role of a payer who %s", (_, { workerInitiated, ...facts }, role) => {
  const { isNew = false, status } = { isNew: false, status: undefined, ...facts };
  const escrow = { id: "0x", terms: { workerInitiated } as EscrowTerms, isNew };
  const due = { currency: "stablecoin", amount: 1n, payTo: "0x", resource: "/", escrow } as const;
  expect(plannedOf({ ...due, ...(status && { status }) }, NETWORK)).toMatchObject({ role });
});

it.each([
  ["asset", [NETWORK.protocolToken]],
  ["payTo", [NETWORK.registry]],
  ["amount", [quote.amount]],
  ["amount", Number(quote.amount)],
])("a quote whose %s is %j, not a text, gets no signature", async (field, value) => {
  const { agent, sent } = await staking([], { changes: { [field]: value } });
  await expect(agent.stake("1")).rejects.toMatchObject({ name: "RefusedToSign", field });
  expect(sent).toEqual([]);
});
