import { createHmac } from "node:crypto";
import { factsOf } from "@working-contracts/client/receipts";
import { expect, it } from "vitest";

const base64url = (text: string): string => Buffer.from(text).toString("base64url");

it("a receipt proves nothing if whoever can check it could have signed it", async () => {
  const secret = "s".repeat(32);
  const signed = `${base64url('{"alg":"HS256","kid":"key"}')}.${base64url("{}")}`;
  const jws = `${signed}.${createHmac("sha256", secret).update(signed).digest("base64url")}`;
  const keys = { key: { kty: "oct", k: base64url(secret) } };
  const facts = factsOf({ offer: jws, receipt: jws, keys, fault: null });
  await expect(facts).rejects.toThrow('"alg" (Algorithm) Header Parameter value not allowed');
});
