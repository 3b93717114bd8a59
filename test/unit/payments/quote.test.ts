import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from "@x402/core/http";
import { compactVerify, decodeProtectedHeader, importJWK } from "jose";
import type { Hex } from "viem";
import { describe, expect, it } from "vitest";
import {
  didDocument,
  networkName,
  type PaymentQuote,
  paymentRequired,
  receiptHeaders,
  reject,
  responseVersion,
} from "../../../src/payments/x402.js";

const quote: PaymentQuote = {
  payTo: "0x00000000000000000000000000000000000e5c01",
  amount: 50_000_000n,
  asset: { address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e", name: "USDC", version: "2" },
  chainId: 84532,
  resourceUrl: "http://localhost:8080/v1/contracts",
  description: "Price of “Übersetzung” 🧾",
};
const header = (answer: ReturnType<typeof paymentRequired>) => answer.headers["Payment-Required"] ?? "";

describe("a 402", () => {
  it("has in version 2 the quote in a standard base64 header, and only the reason of a refusal in its body", () => {
    const answer = paymentRequired({ quote, version: 2 });
    expect(answer.body).toEqual({});
    const refused = paymentRequired({
      quote,
      version: 2,
      rejection: reject("insufficient_funds", "Fund it."),
    });
    expect(refused.body).toEqual({ error: "insufficient_funds", errorMessage: "Fund it." });
    expect(header(answer)).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
    expect(header(answer).length % 4).toBe(0);
    const resource = { url: quote.resourceUrl, description: quote.description, mimeType: "application/json" };
    expect(JSON.parse(Buffer.from(header(answer), "base64").toString("utf8"))).toEqual({
      x402Version: 2,
      error: "PAYMENT-SIGNATURE header is required",
      resource,
      accepts: [
        {
          scheme: "exact",
          network: "eip155:84532",
          amount: "50000000",
          maxAmountRequired: "50000000",
          maxTimeoutSeconds: 60,
          asset: quote.asset.address,
          payTo: quote.payTo,
          resource: quote.resourceUrl,
          description: quote.description,
          mimeType: "application/json",
          extra: { name: "USDC", version: "2" },
        },
      ],
    });
  });

  it("has in version 1 the quote in its body, with the chain's short name", () => {
    const { accepts } = decodePaymentRequiredHeader(header(paymentRequired({ quote, version: 2 })));
    const { amount: _, ...offer } = accepts[0] as object & { amount: string };
    expect(paymentRequired({ quote, version: 1 }).body).toEqual({
      x402Version: 1,
      error: "X-PAYMENT header is required",
      accepts: [{ ...offer, network: "base-sepolia" }],
    });
  });

  it("can also be paid by version 2 clients in version 1", () => {
    expect(header(paymentRequired({ quote, version: 1 }))).toBe(
      header(paymentRequired({ quote, version: 2 })),
    );
  });

  it("names the reason of a rejection in `error`", () => {
    const rejection = reject("payer_mismatch", "Pay from your own address.");
    const answer = paymentRequired({ quote, version: 1, rejection });
    const reason = { error: "payer_mismatch", errorMessage: "Pay from your own address." };
    expect(decodePaymentRequiredHeader(header(answer))).toMatchObject(reason);
    expect(answer.body).toMatchObject(reason);
  });

  it("announces extensions in version 2", () => {
    const extensions = { "payment-identifier": { info: { required: false } } };
    const answer = paymentRequired({ quote, version: 2, extensions });
    expect(decodePaymentRequiredHeader(header(answer)).extensions).toEqual(extensions);
  });
});

describe("the version of a 402", () => {
  const version = (headers: Record<string, string>, v1Bodies = false) =>
    responseVersion(new Headers(headers), { v1Bodies });

  it("is 2, unless the client or the operator asks for 1", () => {
    expect(version({})).toBe(2);
    expect(version({ "X-402-Version": "1" })).toBe(1);
    expect(version({ "X-402-Version": "nonsense" })).toBe(2);
    expect(version({}, true)).toBe(1);
    expect(version({ "X-402-Version": "2" }, true)).toBe(2);
  });

  it("follows the payment's own header", () => {
    expect(version({ "X-PAYMENT": "anything" })).toBe(1);
    expect(version({ "PAYMENT-SIGNATURE": "anything" }, true)).toBe(2);
  });
});

describe("a chain's name", () => {
  it("is short in version 1 only if a short name exists", () => {
    expect([networkName(8453, 1), networkName(84532, 1), networkName(31337, 1)]).toEqual([
      "base",
      "base-sepolia",
      "eip155:31337",
    ]);
    expect([networkName(8453, 2), networkName(31337, 2)]).toEqual(["eip155:8453", "eip155:31337"]);
  });
});

const issuer = { masterKey: `0x${"11".repeat(32)}`, baseUrl: "https://contracts.example" } as const;
const transaction = `0x${"ab".repeat(32)}` as const;
const payer = "0x00000000000000000000000000000000000000aa";
const paid = {
  chainId: 84_532,
  resourceUrl: quote.resourceUrl,
  transaction,
  payer,
  amount: 50_000_000n,
} as const;

describe("a receipt", () => {
  it.each([
    [2, "PAYMENT-RESPONSE", "eip155:84532"],
    [1, "X-PAYMENT-RESPONSE", "base-sepolia"],
  ] as const)("goes in version %i into %s", (version, name, network) => {
    const headers = receiptHeaders(issuer, { ...paid, version, settledAt: 1 });
    expect(Object.keys(headers)).toEqual([name]);
    const receipt = { success: true, transaction, network, payer, amount: "50000000" };
    const { extensions, ...read } = decodePaymentResponseHeader(headers[name] ?? "");
    expect(read).toEqual(receipt);
    expect(extensions).toHaveProperty("offer-receipt");
  });
});

describe("a signed receipt", () => {
  it("can be made by anyone who has the master key, at any date, while the key is configured", async () => {
    const forged = receiptHeaders(issuer, { ...paid, version: 2, settledAt: 1 });
    const { extensions } = decodePaymentResponseHeader(forged["PAYMENT-RESPONSE"] ?? "");
    const { receipt } = (extensions as Record<"offer-receipt", { info: { receipt: { signature: string } } }>)[
      "offer-receipt"
    ].info;
    const [method] = didDocument({ ...issuer, masterKeysOld: [] }).verificationMethod;
    const key = await importJWK(method?.publicKeyJwk ?? {}, "EdDSA");
    const { payload } = await compactVerify(receipt.signature, key);
    expect(JSON.parse(new TextDecoder().decode(payload))).toMatchObject({
      transaction,
      issuedAt: 1,
    });
    const { kid } = decodeProtectedHeader(receipt.signature);
    const shownWith = (...masterKeysOld: Hex[]) =>
      didDocument({ ...issuer, masterKey: transaction, masterKeysOld }).verificationMethod.map(
        ({ id }) => id,
      );
    expect(shownWith(issuer.masterKey)).toContain(kid);
    expect(shownWith()).not.toContain(kid);
  });
});
