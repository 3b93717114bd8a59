import { hexToBytes, keccak256, stringToHex, toHex } from "@working-contracts/protocol/hex";
import type { Hex } from "@working-contracts/protocol/types";
import { recoverAddress } from "viem";
import { generatePrivateKey, privateKeyToAccount, sign } from "viem/accounts";
import { expect, test } from "vitest";
import { recoverSigner } from "../../../src/chain/signatures.js";

const ORDER = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
const digest = keccak256(stringToHex("a message"));

test("recovers the signer of either parity, as viem does", async () => {
  const seen = new Set<string>();
  for (let i = 0; i < 32; i += 1) {
    const privateKey = generatePrivateKey();
    const signature = await sign({ hash: digest, privateKey, to: "hex" });
    seen.add(signature.slice(-2));
    const { address } = privateKeyToAccount(privateKey);
    expect(recoverSigner(digest, signature)).toBe(address.toLowerCase());
  }
  expect(seen).toEqual(new Set(["1b", "1c"]));
});

test("recovers what viem does from altered signatures, and nothing where viem throws", async () => {
  const signature = await sign({ hash: digest, privateKey: generatePrivateKey(), to: "hex" });
  const zero = "0".repeat(64);
  const [r, s] = [signature.slice(2, 66), signature.slice(66, 130)];
  const altered = Array.from({ length: 64 }, (_, at) => {
    const bytes = hexToBytes(signature);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    return toHex(bytes);
  });
  const edges: Hex[] = [`0x${zero}${s}1b`, `0x${r}${zero}1b`, `0x${ORDER}${s}1b`, `0x${r}${ORDER}1b`, "0x"];
  expect(() => recoverSigner("0x12", signature)).toThrow("Expected Hash");
  let refused = 0;
  for (const one of [...altered, ...edges]) {
    const byViem = await recoverAddress({ hash: digest, signature: one }).catch(() => null);
    expect(recoverSigner(digest, one)).toBe(byViem?.toLowerCase() ?? null);
    if (byViem === null) refused += 1;
  }
  expect(refused).toBeGreaterThan(edges.length);
});
