import type { Session } from "@working-contracts/client/session";
import { ownKeysOf } from "@working-contracts/client/wallets";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => void vi.restoreAllMocks());

const session = {
  signer: privateKeyToAccount(generatePrivateKey()),
  network: { chainId: 1, factory: `0x${"11".repeat(20)}` },
} as unknown as Session;

it("makes the same key each time", async () => {
  expect(await ownKeysOf(session)).toEqual(await ownKeysOf(session));
});

it("refuses if WebCrypto has no X25519, as for a wallet without a key", async () => {
  const missing = new DOMException("Unrecognized name.", "NotSupportedError");
  vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(missing);
  await expect(ownKeysOf(session)).rejects.toMatchObject({ name: "RefusedToSign", field: "X25519" });
});
