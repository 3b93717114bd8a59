/** Encrypted private key files: Web3 Secret Storage, version 3, the format of geth and cast. */
import {
  createCipheriv,
  createDecipheriv,
  randomBytes,
  randomUUID,
  scrypt,
  timingSafeEqual,
} from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { keccak256, toHex } from "@working-contracts/protocol/hex";
import type { Hex } from "@working-contracts/protocol/types";
import { privateKeyToAddress } from "viem/accounts";
import { z } from "zod";
import { UsageError } from "./errors.js";

const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);
const SCRYPT = { n: 131_072, r: 8, p: 1, dklen: 32 } as const;
/** More than n = 2^18 needs. */
const MAX_MEMORY = 512 * 1024 * 1024;

const hex = z.string().regex(/^[0-9a-f]*$/i);

const KeystoreSchema = z.object({
  version: z.literal(3),
  /** Absent in the keystores of `cast wallet`. */
  address: z.string().optional(),
  crypto: z.object({
    cipher: z.literal("aes-128-ctr"),
    ciphertext: hex,
    cipherparams: z.object({ iv: hex }),
    kdf: z.literal("scrypt"),
    kdfparams: z.object({
      n: z.number().max(262_144),
      r: z.number().max(8),
      p: z.number().max(8),
      dklen: z.literal(32),
      salt: hex,
    }),
    mac: hex,
  }),
});

/** Writes a key, readable only by its owner. Throws UsageError if the file exists: a key is never overwritten. */
export async function writeKeystore(path: string, privateKey: Hex, password: string): Promise<void> {
  if (existsSync(path)) throw new UsageError(`${path} already exists. Pass another file with --keystore.`);
  const salt = randomBytes(32);
  const iv = randomBytes(16);
  const key = await keyOf(password, salt, SCRYPT);
  const cipher = createCipheriv("aes-128-ctr", key.subarray(0, 16), iv);
  const ciphertext = Buffer.concat([cipher.update(Buffer.from(privateKey.slice(2), "hex")), cipher.final()]);
  const keystore = {
    version: 3,
    id: randomUUID(),
    address: privateKeyToAddress(privateKey).slice(2).toLowerCase(),
    crypto: {
      cipher: "aes-128-ctr",
      ciphertext: ciphertext.toString("hex"),
      cipherparams: { iv: iv.toString("hex") },
      kdf: "scrypt",
      kdfparams: { ...SCRYPT, salt: salt.toString("hex") },
      mac: macOf(key, ciphertext),
    },
  };
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, `${JSON.stringify(keystore, null, 2)}\n`, { mode: 0o600, flag: "wx", flush: true });
  chmodSync(path, 0o600);
}

/** Reads the key in a file. Throws UsageError if the file or the password is wrong. */
export async function readKeystore(path: string, password: string): Promise<Hex> {
  const { crypto } = parse(path);
  const { kdfparams, cipherparams, mac } = crypto;
  const key = await keyOf(password, Buffer.from(kdfparams.salt, "hex"), kdfparams);
  const ciphertext = Buffer.from(crypto.ciphertext, "hex");
  const expected = Buffer.from(mac, "hex");
  const actual = Buffer.from(macOf(key, ciphertext), "hex");
  if (expected.length !== actual.length || !timingSafeEqual(expected, actual)) {
    throw new UsageError(`Wrong password for ${path}.`);
  }
  const decipher = createDecipheriv("aes-128-ctr", key.subarray(0, 16), Buffer.from(cipherparams.iv, "hex"));
  return toHex(Buffer.concat([decipher.update(ciphertext), decipher.final()]));
}

/** Reads the address in a keystore; needs no password. Returns null if the file does not say it. */
export function addressOf(path: string): Hex | null {
  const { address } = parse(path);
  return address === undefined ? null : `0x${address.replace(/^0x/, "").toLowerCase()}`;
}

function parse(path: string) {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new UsageError(`Cannot read the keystore ${path}: ${(cause as Error).message}`);
  }
  const result = KeystoreSchema.safeParse(json);
  if (!result.success)
    throw new UsageError(`${path} is not a version 3 keystore with scrypt and aes-128-ctr.`);
  return result.data;
}

function keyOf(
  password: string,
  salt: Buffer,
  { n, r, p, dklen }: { n: number; r: number; p: number; dklen: number },
) {
  return derive(password.normalize("NFKC"), salt, dklen, { N: n, r, p, maxmem: MAX_MEMORY });
}

function macOf(key: Buffer, ciphertext: Buffer): string {
  return keccak256(toHex(Buffer.concat([key.subarray(16, 32), ciphertext]))).slice(2);
}
