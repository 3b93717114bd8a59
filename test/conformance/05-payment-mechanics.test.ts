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
    withJury(
      [
        "Call without payment. Response is `402`.",
        "The quote (payTo, amount, asset, network) is in a base64-encoded `Payment-Required` response header (x402 version 2), and the body is `{}`.",
        "When the transfer settles into the per-contract escrow the operation applies and its normal response is returned.",
        "the same payment sent twice at the same moment is one payment",
        "a repeated payment gets the same response, and no second one is taken",
      ],
      async () => {
        const { agent, path, body, amount } = await prepare();
        const unpaid = await agent.post(path, body, asVersion2());
        expect(unpaid.status).toBe(402);
        expect(unpaid.headers.get("payment-required")).toMatch(/^[A-Za-z0-9+/]+=*$/);
        const address = expect.stringMatching(/^0x[0-9a-f]{40}$/);
        const quote = { payTo: address, asset: address, network: `eip155:${scene.chainId}` };
        expect(paymentRequired(unpaid)).toMatchObject({
          x402Version: 2,
          accepts: [{ ...quote, amount, maxAmountRequired: amount }],
        });
        expect(unpaid.body).toEqual({});

        const before = await scene.usdOf(agent.address);
        const { send } = await signedCall<Json>(agent, path, body, scene);
        const answers = await Promise.all([send(), send(), send()]);
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
        expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
        for (const { headers } of answers) expect(headers.get("payment-response")).toBeTruthy();
        for (const replay of await Promise.all([send(), send()])) {
          expect(replay.status).toBe(200);
          expect(replay.body).toEqual(answers[0]?.body);
          expect(replay.headers.get("idempotent-replay")).toBe("true");
        }
        expect(await scene.usdOf(agent.address)).toBe(before - BigInt(amount));
      },
    );

    withJury(
      [
        "The older version 1 form puts the quote in the body as `{ x402Version, accepts: [quote] }`.",
        "the `X-PAYMENT` header (v1, base64-encoded). Both are accepted.",
      ],
      async () => {
        const { agent, path, body, amount } = await prepare();
        const unpaid = await agent.post(path, body, { "x-402-version": "1" });
        expect(unpaid.status).toBe(402);
        const quoted = { maxAmountRequired: amount, maxTimeoutSeconds: 60 };
        expect(unpaid.body).toMatchObject({ x402Version: 1, accepts: [quoted] });
        const [quote] = (unpaid.body as { accepts: [Quote] }).accepts;
        const answer = await agent.post(path, body, version1(quote, await authorize(agent, quote, scene)));
        expect(answer.status, JSON.stringify(answer.body)).toBe(200);
        expect(answer.headers.get("x-payment-response")).toBeTruthy();
      },
    );

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

  const paying =
    (changes: Partial<Authorization>, chainId = scene.chainId): Payment =>
    async (quote) =>
      version2(quote, await authorize((await pair()).worker, quote, { chainId, changes }));
  const otherAmount = "invalid_exact_evm_payload_authorization_value";
  const faults: [string, string, Payment][] = [
    ["too little", otherAmount, paying({ value: 2_499_999n })],
    ["too much", otherAmount, paying({ value: 2_500_001n })],
    [
      "an expired authorization",
      "invalid_exact_evm_payload_authorization_valid_before",
      paying({ validBefore: 1n }),
    ],
    [
      "a payment to someone else",
      "invalid_exact_evm_payload_recipient_mismatch",
      paying({ to: `0x${"ab".repeat(20)}` }),
    ],
    [
      "a payment from another address",
      "payer_mismatch",
      async (quote) => version2(quote, await authorize(await stranger(), quote, scene)),
    ],
    ["a signature over another chain", "invalid_exact_evm_payload_signature", paying({}, scene.chainId + 1)],
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
      await client.post(accept, { accept: true }, headers),
    ]) {
      expect(refused.error?.code).toBe("conflict");
    }
    expect(paymentRequired(await worker.post(path, one, headers)).error).toBe("payer_mismatch");
  });
});
