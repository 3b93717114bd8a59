import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { masterKeyId, unwrapSecret, wrapSecret } from "../../../../src/master-key.js";

const masterKey = `0x${"11".repeat(32)}` as const;
const boundTo = { contractId: "0xabc", field: "delivery" };

test("a wrapped key can be unwrapped", async () => {
  const key = randomBytes(32);
  const wrapped = await wrapSecret(key, { masterKey, boundTo });
  expect(wrapped).not.toContain(key.toString("base64url"));
  expect(Buffer.from(await unwrapSecret(wrapped, { masterKey, boundTo }))).toEqual(key);
});

test("a key wrapped for one contract and field does not unwrap for another", async () => {
  const wrapped = await wrapSecret(randomBytes(32), { masterKey, boundTo });
  for (const other of [{ contractId: "0xdef" }, { field: "supplementaryMaterials" }]) {
    const unwrapped = unwrapSecret(wrapped, { masterKey, boundTo: { ...boundTo, ...other } });
    await expect(unwrapped).rejects.toThrow("belongs elsewhere");
  }
});

test("another master key does not unwrap it, and has another id", async () => {
  const other = `0x${"22".repeat(32)}` as const;
  const wrapped = await wrapSecret(randomBytes(32), { masterKey, boundTo });
  await expect(unwrapSecret(wrapped, { masterKey: other, boundTo })).rejects.toThrow();
  expect(masterKeyId(other)).not.toBe(masterKeyId(masterKey));
});
