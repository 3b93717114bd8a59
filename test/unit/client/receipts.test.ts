import { createHmac } from "node:crypto";
import { factsOf, proofOf } from "@working-contracts/client/receipts";
import { expect, it, vi } from "vitest";

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

it("a receipt proves nothing if whoever can check it could have signed it", async () => {
  const secret = "s".repeat(32);
  const signed = `${base64url('{"alg":"HS256","kid":"key"}')}.${base64url("{}")}`;
  const jws = `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
  const keys = { key: { kty: "oct", k: base64url(secret) } };
  const facts = factsOf({ offer: jws, receipt: jws, keys, fault: null });
  await expect(facts).rejects.toThrow('"alg" (Algorithm) Header Parameter value not allowed');
});

/** The fault of a payment at a service that answers so with its keys. */
async function faultOf(response: Response, network: object = {}) {
  const open = async () => response;
  const given = [
    { http: { open }, network, signer: {}, baseUrl: "https://proxy.example" },
    { required: {}, quote: {} },
    { headers: new Headers(), expected: {}, signedAt: 0 },
  ] as unknown as Parameters<typeof proofOf>;
  return (await proofOf(...given)).fault;
}

it.each([
  ["https://proxy.example", "proxy.example", "the service signed no offer"],
  ["https://bank.example/", "bank.example", "the service signed no offer"],
  ["http://127.0.0.1:3000", "localhost", "the service signed no offer"],
  ["https://bank.example", "proxy.example", "the service signs as bank.example"],
])("a service behind a proxy that signs as %s, and is known as %s: %s", async (baseUrl, domain, fault) => {
  const response = Response.json({ verificationMethod: [] });
  expect(await faultOf(response, { baseUrl, domain })).toBe(fault);
});

it("a service's keys are not kept if they are too long", async () => {
  expect(await faultOf(new Response("x".repeat(100_001)))).toContain("longer than 100000 bytes");
});

it("a service that sends half of its keys keeps no result back", async () => {
  const { timeout } = AbortSignal;
  vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms / 50));
  const start = (body: ReadableStreamDefaultController) => body.enqueue(new TextEncoder().encode("{"));
  const fault = faultOf(new Response(new ReadableStream({ start }))).finally(() => vi.restoreAllMocks());
  expect(await fault).toContain("timeout");
});
