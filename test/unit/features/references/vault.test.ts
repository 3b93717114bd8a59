import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { unwrapKey, wrapKey } from "../../../../src/features/references/vault.js";
import { masterKeyId } from "../../../../src/master-key.js";

const masterKey = `0x${"11".repeat(32)}` as const;
const place = { contractId: "0xabc", field: "delivery", masterKey } as const;

test("a wrapped key can be unwrapped", async () => {
  const key = randomBytes(32);
  const wrapped = await wrapKey(key, place);
  expect(wrapped).not.toContain(key.toString("base64url"));
  expect(Buffer.from(await unwrapKey(wrapped, place))).toEqual(key);
});

test("a key wrapped for one contract and field does not unwrap for another", async () => {
  const wrapped = await wrapKey(randomBytes(32), place);
  await expect(unwrapKey(wrapped, { ...place, contractId: "0xdef" })).rejects.toThrow("belongs elsewhere");
  await expect(unwrapKey(wrapped, { ...place, field: "supplementaryMaterials" })).rejects.toThrow(
    "belongs elsewhere",
  );
});

test("another master key does not unwrap it, and has another id", async () => {
  const other = `0x${"22".repeat(32)}` as const;
  const wrapped = await wrapKey(randomBytes(32), place);
  await expect(unwrapKey(wrapped, { ...place, masterKey: other })).rejects.toThrow();
  expect(masterKeyId(other)).not.toBe(masterKeyId(masterKey));
});
