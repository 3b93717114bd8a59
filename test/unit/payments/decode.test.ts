import { REJECTION_REASONS } from "@working-contracts/protocol/types";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodePayment } from "../../../src/payments/x402.js";

const FROM = "0xAbCdEf0123456789aBcDeF0123456789ABCDEF01";
const ESCROW = "0x00000000000000000000000000000000000E5C01";

const payload = {
  signature: `0x${"AB".repeat(64)}1b`,
  authorization: {
    from: FROM,
    to: ESCROW,
    value: "50000000",
    validAfter: "0",
    validBefore: "1900000000",
    nonce: `0x${"0F".repeat(32)}`,
  },
};
const accepted = { scheme: "exact", network: "eip155:84532", amount: "50000000", payTo: ESCROW, asset: FROM };
const version2 = { x402Version: 2, accepted, payload };
const version1 = { x402Version: 1, scheme: "exact", network: "base-sepolia", payload };

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
const decodeV2 = (value: unknown) => decodePayment(new Headers({ "PAYMENT-SIGNATURE": encode(value) }));
const decodeRaw = (value: string) =>
  decodePayment({ get: (name) => (name === "PAYMENT-SIGNATURE" ? value : null) });
const withAuthorization = (change: Record<string, unknown>) => ({
  ...version2,
  payload: { ...payload, authorization: { ...payload.authorization, ...change } },
});

describe("a payment header", () => {
  it("is null if the request carries none", () => {
    expect(decodePayment(new Headers())).toBeNull();
  });

  it("decodes in version 2 to lower-case addresses and bigints", () => {
    expect(decodeV2(version2)).toEqual({
      ok: true,
      payment: {
        version: 2,
        scheme: "exact",
        network: "eip155:84532",
        from: FROM.toLowerCase(),
        to: ESCROW.toLowerCase(),
        value: 50_000_000n,
        validAfter: 0n,
        validBefore: 1_900_000_000n,
        nonce: `0x${"0f".repeat(32)}`,
        signature: `0x${"ab".repeat(64)}1b`,
        accepted,
      },
    });
  });

  it("decodes in version 1 from X-PAYMENT", () => {
    const decoded = decodePayment(new Headers({ "X-PAYMENT": encode(version1) }));
    expect(decoded).toMatchObject({
      ok: true,
      payment: { version: 1, scheme: "exact", network: "base-sepolia", accepted: null, value: 50_000_000n },
    });
  });

  it("keeps an unlimited validBefore", () => {
    const validBefore = (2n ** 256n - 1n).toString();
    expect(decodeV2(withAuthorization({ validBefore }))).toMatchObject({
      ok: true,
      payment: { validBefore: 2n ** 256n - 1n },
    });
  });

  it("can drop and add keys of the quote", () => {
    expect(decodeV2({ ...version2, accepted: { scheme: "exact", colour: "red" } })).toMatchObject({
      ok: true,
      payment: { scheme: "exact", network: null, accepted: { scheme: "exact" } },
    });
    expect(decodeV2({ x402Version: 2, payload })).toMatchObject({ ok: true, payment: { accepted: null } });
  });

  it("can carry a contract wallet's signature of up to 8 KiB, and not more", () => {
    const sized = (bytes: number) => ({
      ...version2,
      payload: { ...payload, signature: `0x${"cd".repeat(bytes)}` },
    });
    expect(decodeV2(sized(8 * 1024))).toMatchObject({ ok: true });
    expect(decodeV2(sized(8 * 1024 + 1))).toMatchObject({ ok: false, reason: "invalid_payload" });
  });

  it("ignores extensions", () => {
    const extensions = { "payment-identifier": { info: { required: false, id: 7 } }, other: 1 };
    expect(decodeV2({ ...version2, extensions })).toEqual(decodeV2(version2));
  });
});

describe("a garbage header is rejected with its reason", () => {
  const signed = (signature: string) => encode({ ...version2, payload: { ...payload, signature } });
  const isRefused = (header: string, reason: string) => {
    const decoded = decodeRaw(header);
    expect(decoded).toMatchObject({ ok: false, reason });
    expect(decoded).toHaveProperty("message", expect.stringMatching(/.{20,}/));
  };

  it.each([
    ["JSON null", encode(null)],
    ["a JSON array", encode([])],
    ["a number", encode(7)],
    ["version missing", encode({ payload })],
    ["version as text", encode({ ...version2, x402Version: "2" })],
    ["version 1 in the version 2 header", encode(version1)],
    ["version 3", encode({ ...version2, x402Version: 3 })],
  ])("%s", (_name, header) => isRefused(header, "invalid_x402_version"));

  it.each([
    ["empty", ""],
    ["not base64", "{}"],
    ["base64url", Buffer.from('{"a":"???>>>"}').toString("base64url")],
    ["broken base64 length", "AAAAA"],
    ["not JSON", Buffer.from("hello").toString("base64")],
    ["not UTF-8", Buffer.from([0xff, 0xfe, 0x00]).toString("base64")],
    ["payload missing", encode({ x402Version: 2, accepted })],
    ["payload null", encode({ x402Version: 2, accepted, payload: null })],
    ["accepted as a list", encode({ ...version2, accepted: [accepted] })],
    ["signature empty", signed("0x")],
    ["signature with half a byte", signed("0xabc")],
    ["value as a number", encode(withAuthorization({ value: 50_000_000 }))],
    ["value negative", encode(withAuthorization({ value: "-1" }))],
    ["value in hex", encode(withAuthorization({ value: "0x10" }))],
    ["value with an exponent", encode(withAuthorization({ value: "1e6" }))],
    ["value beyond uint256", encode(withAuthorization({ value: (2n ** 256n).toString() }))],
    ["nonce short", encode(withAuthorization({ nonce: "0x01" }))],
    ["from without an address", encode(withAuthorization({ from: "vitalik.eth" }))],
    ["20,000 levels deep", Buffer.from("[".repeat(20_000) + "]".repeat(4_000)).toString("base64")],
    ["huge", "A".repeat(10_000_000)],
  ])("%s", (_name, header) => isRefused(header, "invalid_payload"));

  it("a header that is too long is rejected unread", () => {
    const padded = encode({ ...version2, padding: "x".repeat(32_768) });
    expect(decodeRaw(padded)).toMatchObject({
      reason: "invalid_payload",
      message: expect.stringContaining("exceeds"),
    });
  });

  it("deep but valid JSON in an ignored key is accepted", () => {
    const deep = "[".repeat(5_000) + "]".repeat(5_000);
    const text = JSON.stringify(version2).replace(/}$/, `,"extensions":{"x":${deep}}}`);
    expect(decodeRaw(Buffer.from(text).toString("base64"))).toMatchObject({ ok: true });
  });

  const isRefusedAs = (headers: Headers, message: string) =>
    expect(decodePayment(headers)).toEqual({ ok: false, reason: "invalid_payload", message });

  it("a header that is sent twice is rejected", () => {
    const headers = new Headers({ "PAYMENT-SIGNATURE": encode(version2) });
    headers.append("PAYMENT-SIGNATURE", encode(version2));
    isRefusedAs(headers, "The PAYMENT-SIGNATURE header must be sent once, as one base64 value.");
  });

  it("headers of both versions at once are rejected", () => {
    const headers = new Headers({ "PAYMENT-SIGNATURE": encode(version2), "X-PAYMENT": encode(version1) });
    isRefusedAs(
      headers,
      "Send either PAYMENT-SIGNATURE (x402 version 2) or X-PAYMENT (version 1), not both.",
    );
  });
});

describe("whatever a header contains", { timeout: 60_000 }, () => {
  const isAnswer = (decoded: ReturnType<typeof decodePayment>) => {
    if (decoded === null) throw new Error("a header was ignored");
    if (decoded.ok) return;
    expect(REJECTION_REASONS).toContain(decoded.reason);
    expect(decoded.message.length).toBeGreaterThan(20);
  };

  const bytes = fc.uint8Array({ maxLength: 300 }).map((raw) => Buffer.from(raw).toString("base64"));
  it.each<[string, fc.Arbitrary<string>]>([
    ["any text", fc.string({ unit: "binary", maxLength: 300 })],
    ["any bytes in base64", bytes],
    ["any JSON", fc.jsonValue().map(encode)],
  ])("decoding returns a reason and never throws: %s", (_name, texts) => {
    fc.assert(fc.property(texts, (text) => isAnswer(decodeRaw(text))));
  });

  it("decoding returns a reason and never throws: a good payment with any one part replaced", () => {
    const paths = [
      ["x402Version"],
      ["accepted"],
      ["accepted", "amount"],
      ["payload"],
      ["payload", "signature"],
      ["payload", "authorization"],
      ...Object.keys(payload.authorization).map((key) => ["payload", "authorization", key]),
      ["extensions"],
    ];
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.anything(), (path, value) => {
        const damaged = structuredClone({
          ...version2,
          extensions: { "payment-identifier": { info: { required: false } } },
        }) as Record<string, unknown>;
        const parent = path.slice(0, -1).reduce((node, key) => node[key] as Record<string, unknown>, damaged);
        parent[path.at(-1) as string] = value;
        let header: string;
        try {
          header = encode(damaged);
        } catch {
          return; // not expressible in JSON
        }
        isAnswer(decodeRaw(header));
      }),
      { numRuns: 1_000 },
    );
  });
});
