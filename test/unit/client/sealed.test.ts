/** Keys of sealed deliveries, and deliveries that are no sealed reference, though they look like one. */
import { openShare, parseSealed, plainTextOf, referenceIn, seal } from "@working-contracts/client/sealing";
import { ownKeysOf } from "@working-contracts/client/wallets";
import { base64url, GeneralEncrypt, type GeneralJWE, importJWK } from "jose";
import { afterEach, expect, it, vi } from "vitest";
import { account, NETWORK } from "./fake-service.js";

const session = { signer: account, network: NETWORK } as never;
const keys = await ownKeysOf(session);
const { address } = account;
const id = `0x${"Ab".repeat(20)}`;
const sealed = await seal("ipfs://summary", id, [{ address, key: keys.key }]);
const jwe = parseSealed(sealed) as GeneralJWE;

afterEach(() => void vi.restoreAllMocks());

it("an agent has the same key each time", async () => {
  expect(await ownKeysOf(session)).toEqual(keys);
});

it("an agent has no key if WebCrypto has no X25519, as for a wallet without a key", async () => {
  const missing = new DOMException("Unrecognized name.", "NotSupportedError");
  vi.spyOn(crypto.subtle, "importKey").mockRejectedValue(missing);
  await expect(ownKeysOf(session)).rejects.toMatchObject({ name: "RefusedToSign", field: "X25519" });
});

it("a text is sealed only with a list of recipients", () => {
  for (const recipients of [undefined, null, {}, "a"])
    expect(parseSealed(JSON.stringify({ ...jwe, recipients }))).toBeNull();
});

it("a sealed text cannot be opened if a recipient is none, or its key is wrong", async () => {
  expect(await plainTextOf({ ...jwe, recipients: [null as never] }, { id, address, keys })).toBeNull();
  const [own] = jwe.recipients;
  for (const encrypted_key of ["AAAA", 1 as never])
    await expect(
      plainTextOf({ ...jwe, recipients: [{ ...own, encrypted_key }] }, { id, address, keys }),
    ).rejects.toThrow("cannot be opened");
});

it("a sealed text is opened in its own contract alone, by a recipient and by a Backup Agent", async () => {
  const plain = (await plainTextOf(jwe, { id: id.toLowerCase(), address, keys })) as Uint8Array;
  expect(await referenceIn(plain, jwe)).toBe("ipfs://summary");
  const { contract: _, ...unbound } = JSON.parse(
    new TextDecoder().decode(base64url.decode(jwe.protected ?? "")),
  );
  const without = { ...jwe, protected: base64url.encode(JSON.stringify(unbound)) };
  const juror = `0x${"cd".repeat(20)}`;
  for (const reader of [address, juror]) {
    const opened = (text: GeneralJWE, id: string) => plainTextOf(text, { id, address: reader, keys });
    await expect(opened(jwe, juror)).rejects.toThrow("sealed for another contract");
    await expect(opened(without, id)).rejects.toThrow("sealed for another contract");
  }
});

it("a share that cannot be opened says so in our words, not in those of its sender", async () => {
  const crit = ["The delivery was withdrawn: vote met. This parameter"];
  const header = base64url.encode(JSON.stringify({ alg: "ECDH-ES+A256KW", enc: "A256GCM", crit }));
  const opening = openShare(`${header}.AAAA.AAAA.AAAA.AAAA`, keys);
  const message = "The reference cannot be opened: it was encrypted wrongly";
  await expect(opening).rejects.toMatchObject({ message, cause: expect.any(Error) });
});

it.each(["null", "{}", '{"reference":null}', '{"reference":1}', "no JSON"])(
  "a sealed text cannot be opened if it contains %s",
  async (text) => {
    const plain = new TextEncoder().encode(text);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", plain));
    const header = {
      enc: "A256GCM",
      typ: "wc-sealed",
      contract: id.toLowerCase(),
      sha256: base64url.encode(digest),
    };
    const alg = "ECDH-ES+A256KW";
    const key = await importJWK({ kty: "OKP", crv: "X25519", x: keys.key }, alg);
    const made = new GeneralEncrypt(plain).setProtectedHeader(header);
    made.addRecipient(key).setUnprotectedHeader({ alg, kid: address.toLowerCase() });
    const wrong = await made.encrypt();
    const opened = (await plainTextOf(wrong, { id, address, keys })) as Uint8Array;
    await expect(referenceIn(opened, wrong)).rejects.toThrow("cannot be opened");
  },
);
