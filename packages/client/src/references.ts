/** Encrypted references (compact JWE, `dir`, `A256GCM`), opened with the keys that the service releases. */
import { compactDecrypt, decodeProtectedHeader, importJWK } from "jose";
import type { ReferenceKey } from "./types.js";

/** The plain reference; throws where the key is of another one, or the text was changed. */
export async function openReference(jwe: string, key: ReferenceKey): Promise<string> {
  const { kid } = decodeProtectedHeader(jwe);
  if (kid !== key.kid) throw new Error(`The key ${key.kid} does not open ${kid}`);
  const { plaintext } = await compactDecrypt(jwe, await importJWK({ ...key }));
  return new TextDecoder().decode(plaintext);
}
