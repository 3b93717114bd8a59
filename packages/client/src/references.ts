/** Encrypted references (compact JWE, `dir`, `A256GCM`), decrypted with keys that the service releases. */
import { compactDecrypt, decodeProtectedHeader, importJWK } from "jose";
import type { ReferenceKey } from "./types.js";

/** Decrypts a reference. Throws if the key belongs to another reference or the text was modified. */
export async function openReference(jwe: string, key: ReferenceKey): Promise<string> {
  const { kid } = decodeProtectedHeader(jwe);
  if (kid !== key.kid) throw new Error(`The key ${key.kid} does not decrypt ${kid}`);
  const { plaintext } = await compactDecrypt(jwe, await importJWK({ ...key }));
  return new TextDecoder().decode(plaintext);
}
