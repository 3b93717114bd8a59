/** Payment mechanics shared by Create Contract, Accept, Dispute and Submit Votes; both versions of x402. */
import { describe, expect } from "vitest";
import type { Agent } from "../support/agent.js";
import {
  ballot,
  created,
  delivered,
  disputed,
  draft,
  type Json,
  newJuror,
  newPair,
  ok,
} from "../support/contracts.js";
import {
  type Authorization,
  authorize,
  paymentRequired,
  type Quote,
  quoteOf,
  signedCall,
  version1,
  version2,
} from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { asVersion2, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));

interface PaidCall {
  agent: Agent;
  path: string;
  body?: string;
  amount: string;
}

/** Each paid call, ready to be sent. */
const CALLS: Record<string, () => Promise<PaidCall>> = {
  "Create Contract": async () => {
    const { client } = await newPair(scene);
    const body = JSON.stringify(await draft(scene));
    return { agent: client, path: "/v1/contracts", body, amount: "50000000" };
  },
  "Accept (accept=true)": async () => {
    const { client, worker } = await newPair(scene);
    const { id } = await created(scene, client);
    return { agent: worker, path: `/v1/contracts/${id}/accept`, body: '{"accept":true}', amount: "2500000" };
  },
  Dispute: async () => {
    const parties = await newPair(scene);
    const { id } = await delivered(scene, parties);
    return { agent: parties.client, path: `/v1/contracts/${id}/dispute`, amount: "2500000" };
  },
  "Submit Votes": async () => {
    const juror = await newJuror(scene);
    const { id } = await disputed(scene, await newPair(scene));
    const body = JSON.stringify(ballot("met", "met", "met"));
    return { agent: juror, path: `/v1/contracts/${id}/votes`, body, amount: "7500000" };
  },
};

for (const [name, prepare] of Object.entries(CALLS)) {
  describe(`Payment mechanics / ${name}`, () => {
    const call = lazy(async () => {
      const { agent, path, body, amount } = await prepare();
      const unpaid = await agent.post(path, body, asVersion2());
      return { agent, path, body, amount, unpaid, before: await scene.usdOf(agent.address) };
    });
    const paid = lazy(async () => {
      const { agent, path, body } = await call();
      const { send } = await signedCall<Json>(agent, path, body, scene);
      return { send, answer: await send() };
    });

    withJury("Call without payment. Response is `402`.", async () => {
      expect((await call()).unpaid.status).toBe(402);
    });

    withJury(
      "The quote (payTo, amount, asset, network) is in a base64-encoded `Payment-Required` response header (x402 version 2), and the body is `{}`.",
      async () => {
        const { unpaid, amount } = await call();
        expect(unpaid.headers.get("payment-required")).toMatch(/^[A-Za-z0-9+/]+=*$/);
        const { x402Version, accepts } = paymentRequired(unpaid);
        expect(x402Version).toBe(2);
        expect(accepts).toHaveLength(1);
        expect(accepts[0]).toMatchObject({
          payTo: expect.stringMatching(/^0x[0-9a-f]{40}$/),
          amount,
          maxAmountRequired: amount,
          asset: expect.stringMatching(/^0x[0-9a-f]{40}$/),
          network: `eip155:${scene.chainId}`,
        });
        expect(unpaid.body).toEqual({});
      },
    );

    withJury(
      "The older version 1 form puts the quote in the body as `{ x402Version, accepts: [quote] }`.",
      async () => {
        const { agent, path, body, amount } = await prepare();
        const unpaid = await agent.post(path, body, { "x-402-version": "1" });
        expect(unpaid.status).toBe(402);
        const quote = { maxAmountRequired: amount, maxTimeoutSeconds: 60 };
        expect(unpaid.body).toMatchObject({ x402Version: 1, accepts: [quote] });
      },
    );

    withJury(
      "When the transfer settles into the per-contract escrow the operation applies and its normal response is returned.",
      async () => {
        const { agent, amount, before } = await call();
        const { answer } = await paid();
        expect(answer.status).toBe(200);
        expect(await scene.usdOf(agent.address)).toBe(before - BigInt(amount));
        expect(answer.headers.get("payment-response")).toBeTruthy();
      },
    );

    withJury("the `X-PAYMENT` header (v1, base64-encoded). Both are accepted.", async () => {
      const { agent, path, body } = await prepare();
      const v1 = await agent.post<Json>(path, body, { "x-402-version": "1" });
      const [quote] = (v1.body as unknown as { accepts: [Quote] }).accepts;
      const headers = version1(quote, await authorize(agent, quote, scene));
      const answer = await agent.post(path, body, headers);
      expect(answer.status, JSON.stringify(answer.body)).toBe(200);
      expect(answer.headers.get("x-payment-response")).toBeTruthy();
    });

    withJury("a repeated payment gets the same response, and no second one is taken", async () => {
      const { agent } = await call();
      const { send, answer } = await paid();
      const before = await scene.usdOf(agent.address);
      for (const replay of await Promise.all([send(), send()])) {
        expect(replay.status).toBe(200);
        expect(replay.body).toEqual(answer.body);
        expect(replay.headers.get("idempotent-replay")).toBe("true");
      }
      expect(await scene.usdOf(agent.address)).toBe(before);
    });

    withJury("the same payment sent twice at the same moment is one payment", async () => {
      const { agent, path, body, amount } = await prepare();
      const before = await scene.usdOf(agent.address);
      const { send } = await signedCall(agent, path, body, scene);
      const answers = await Promise.all([send(), send(), send()]);
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
      expect(await scene.usdOf(agent.address)).toBe(before - BigInt(amount));
    });

    withJury("two payments at the same moment: one is taken, the other call is rejected", async () => {
      const { agent, path, body, amount } = await prepare();
      const before = await scene.usdOf(agent.address);
      const payments = [
        await signedCall(agent, path, body, scene),
        await signedCall(agent, path, body, scene),
      ];
      const answers = await Promise.all(payments.map(({ send }) => send()));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
      expect(await scene.usdOf(agent.address)).toBe(before - BigInt(amount));
    });
  });
}

describe("Payment mechanics / rejected payments", () => {
  const open = lazy(async () => {
    const { client, worker } = await pair();
    const { id } = await created(scene, client);
    const path = `/v1/contracts/${id}/accept`;
    return { worker, path, quote: quoteOf(await worker.post(path, { accept: true })) };
  });
  const stranger = lazy(() => scene.newAgent({ usd: "100" }));
  type Payment = (quote: Quote) => Promise<Record<string, string>>;

  const changes: [string, string, Partial<Authorization>][] = [
    ["too little", "invalid_exact_evm_payload_authorization_value", { value: 2_499_999n }],
    ["too much", "invalid_exact_evm_payload_authorization_value", { value: 2_500_001n }],
    ["an expired authorization", "invalid_exact_evm_payload_authorization_valid_before", { validBefore: 1n }],
    [
      "a payment to someone else",
      "invalid_exact_evm_payload_recipient_mismatch",
      { to: `0x${"ab".repeat(20)}` },
    ],
  ];
  const paying = async (quote: Quote, changed: { chainId?: number; changes?: Partial<Authorization> }) =>
    version2(quote, await authorize((await pair()).worker, quote, { ...scene, ...changed }));
  const faults: [string, string, Payment][] = [
    ...changes.map(([name, reason, changes]): [string, string, Payment] => [
      name,
      reason,
      (quote) => paying(quote, { changes }),
    ]),
    [
      "a payment from another address",
      "payer_mismatch",
      async (quote) => version2(quote, await authorize(await stranger(), quote, scene)),
    ],
    [
      "a signature over another chain",
      "invalid_exact_evm_payload_signature",
      (quote) => paying(quote, { chainId: scene.chainId + 1 }),
    ],
    ["no base64", "invalid_payload", async () => ({ "payment-signature": "{not base64}" })],
    [
      "base64 that is not a payment",
      "invalid_x402_version",
      async () => ({ "payment-signature": Buffer.from("{}").toString("base64") }),
    ],
    [
      "a version 1 payment in the version 2 header",
      "invalid_x402_version",
      async (quote) => ({
        "payment-signature": version1(quote, await authorize((await pair()).worker, quote, scene))[
          "x-payment"
        ] as string,
      }),
    ],
  ];
  for (const [name, reason, headers] of faults) {
    withMoney(`${name} is 402 again, with the reason ${reason}`, async () => {
      const { worker, path, quote } = await open();
      const refused = await worker.post(path, { accept: true }, await headers(quote));
      expect(refused.status).toBe(402);
      expect(paymentRequired(refused).error).toBe(reason);
    });
  }

  withMoney("an authorization that paid for one call pays for no other", async () => {
    const { client, worker } = await pair();
    const path = "/v1/contracts";
    const [one, other] = [JSON.stringify(await draft(scene)), JSON.stringify(await draft(scene))];
    const { quote, headers, send } = await signedCall(client, path, one, scene);
    ok(await send());
    const accept = `${path}/${quote.payTo}/accept`;
    for (const refused of [
      await client.post(path, other, headers),
      await client.post(path, ` ${one}`, headers),
      await worker.post(path, one, headers),
      await client.post(accept, { accept: true }, headers),
    ]) {
      expect(refused.error?.code).toBe("conflict");
    }
  });

  withMoney("Repeat the call, with a byte-identical body", async () => {
    const client = await scene.newAgent({ usd: "100" });
    const body = await draft(scene);
    const { quote, headers } = await signedCall(client, "/v1/contracts", JSON.stringify(body), scene);
    const reformatted = await client.post("/v1/contracts", JSON.stringify(body, null, 1), headers);
    expect(reformatted.status).toBe(402);
    expect(quoteOf(reformatted).payTo).not.toBe(quote.payTo);
    expect(await scene.usdOf(client.address)).toBe(100_000_000n);
  });
});
