/** References that the service cannot read: encrypted (JWE, RFC 7516, ECDH-ES on X25519) to keys that agents sign. */
import { hexToBytes, keccak256 } from "@working-contracts/protocol/hex";
import { REFERENCE_LENGTH } from "@working-contracts/protocol/limits";
import type { Address, Hex } from "@working-contracts/protocol/types";
import {
  base64url,
  CompactEncrypt,
  compactDecrypt,
  decodeProtectedHeader,
  GeneralEncrypt,
  type GeneralJWE,
  generalDecrypt,
  importJWK,
} from "jose";
import { verifyMessage } from "viem/utils";
import type { escrowAt } from "./chain-check.js";
import type { ShareOptions } from "./deliveries.js";
import { RefusedToSign, UnreadableReference } from "./errors.js";
import type { followEvents } from "./events.js";
import { parse } from "./http.js";
import type { ChainNode } from "./rpc.js";
import { call, deliveriesKey, everyEvent, everyItem, type PageQuery, type Session } from "./session.js";
import type { EventQuery, ReferenceField, ReferenceKey } from "./types.js";
import type { waitUntil } from "./wait.js";
import { type KeyPair, keyText, servedKey } from "./wallets.js";

const ALG = "ECDH-ES+A256KW";
const TYPE = "wc-sealed";
const UNOPENED = "The reference cannot be opened: it was encrypted wrongly";

/** The agent's published key; null if there is none. Throws RefusedToSign if the agent did not sign the one that is shown. */
export async function publishedKey(session: Session, address: string): Promise<string | null> {
  const { key, signature } = await servedKey(session, address);
  if (key === null) return null;
  const message = keyText(session, address, key);
  const claim = { address: address as Address, message, signature: signature as Hex };
  if (await verifyMessage(claim)) return key;
  throw new RefusedToSign(
    "key",
    `the service shows an encryption key that ${address} did not sign; \`seal: false\` lets the service read the delivery`,
  );
}

/**
 * Encrypts to several recipients (JWE). Throws RangeError if it is too long. The header commits to the plain text: AES-GCM
 * alone would let a Worker make one text that opens differently for Client and jury. It names the contract: the operator
 * could have a copy of the text delivered, opened and shared in another one.
 */
export async function seal(
  reference: string,
  id: string,
  recipients: readonly { address: string; key: string }[],
): Promise<string> {
  const nonce = base64url.encode(crypto.getRandomValues(new Uint8Array(16)));
  const plain = new TextEncoder().encode(JSON.stringify({ reference, nonce }));
  const jwe = new GeneralEncrypt(plain).setProtectedHeader({
    enc: "A256GCM",
    typ: TYPE,
    contract: id.toLowerCase(),
    sha256: await digestOf(plain),
  });
  for (const { address, key } of recipients)
    jwe.addRecipient(await imported({ key })).setUnprotectedHeader({ alg: ALG, kid: address.toLowerCase() });
  const sealed = JSON.stringify(await jwe.encrypt());
  if (sealed.length <= REFERENCE_LENGTH) return sealed;
  throw new RangeError("The reference is too long to be sealed: deliver a hash or URI of it");
}

/** The sealed reference in a text, if it is one. */
export function parseSealed(text: string): GeneralJWE | null {
  if (!text.startsWith("{")) return null;
  try {
    const jwe = JSON.parse(text) as GeneralJWE;
    return decodeProtectedHeader(jwe).typ === TYPE && Array.isArray(jwe.recipients) ? jwe : null;
  } catch {
    return null;
  }
}

/**
 * The plain text of a sealed reference; null if `address` is none of its recipients. Throws if it cannot be decrypted, and
 * for every reader if it was sealed for another contract.
 */
export async function plainTextOf(
  jwe: GeneralJWE,
  { id, address, keys }: { id: string; address: string; keys: KeyPair },
): Promise<Uint8Array | null> {
  if (decodeProtectedHeader(jwe).contract !== id.toLowerCase())
    throw new UnreadableReference("The delivery was sealed for another contract");
  const own = jwe.recipients.find((one) => one?.header?.kid === address.toLowerCase());
  if (own === undefined) return null;
  const opening = generalDecrypt({ ...jwe, recipients: [own] }, await imported(keys));
  return (await opening.catch(unopened)).plaintext;
}

/** Other errors quote the sealed text, which another party wrote. */
function unopened(cause: unknown): never {
  throw new UnreadableReference(UNOPENED, { cause });
}

/** The reference in a plain text. Throws unless the sealed reference commits to it, and it is a text. */
export async function referenceIn(plain: Uint8Array, jwe: GeneralJWE): Promise<string> {
  if ((await digestOf(plain)) !== decodeProtectedHeader(jwe).sha256)
    throw new UnreadableReference("This is not the reference that was delivered");
  const { reference } = (parse(new TextDecoder().decode(plain)) ?? {}) as { reference?: unknown };
  if (typeof reference === "string") return reference;
  throw new UnreadableReference(UNOPENED);
}

/** Encrypts the plain text of a sealed reference for one more reader (compact JWE). */
async function shareWith(key: string, plain: Uint8Array): Promise<string> {
  const jwe = new CompactEncrypt(plain).setProtectedHeader({ alg: ALG, enc: "A256GCM" });
  return jwe.encrypt(await imported({ key }));
}

/** The plain text in a share. Throws if it was not encrypted to this key. */
export async function openShare(jwe: string, keys: KeyPair): Promise<Uint8Array> {
  return (await compactDecrypt(jwe, await imported(keys)).catch(unopened)).plaintext;
}

/** With `secret` to decrypt, without it to encrypt. */
const imported = ({ key, secret }: { key: string; secret?: string }) =>
  importJWK({ kty: "OKP", crv: "X25519", x: key, ...(secret !== undefined && { d: secret }) }, ALG);

async function digestOf(bytes: Uint8Array): Promise<string> {
  return base64url.encode(
    new Uint8Array(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)),
  );
}

/** Decrypts a compact JWE (`dir`, `A256GCM`). Throws UnreadableReference if the key is another one, or either is damaged. */
export async function openReference(jwe: string, key: ReferenceKey): Promise<string> {
  const opening = async () => compactDecrypt(jwe, await importJWK({ ...key }));
  return new TextDecoder().decode((await opening().catch(unopened)).plaintext);
}

/** Why a Backup Agent may read a sealed delivery: it was drawn, has voted, or has asked for the keys. */
const READER_EVENTS = "contract.drawn,vote.sealed,key.released";

/** How many agents the service can name, and how long choosing among them can take: another dispute must not wait for it. */
const MAX_NAMED = 5_000;
const NAMED_MS = 600_000;

type Escrow = Awaited<ReturnType<typeof escrowAt>>;

/** Passed in, not imported: that would split what every agent loads into more files. */
interface Access {
  followEvents: typeof followEvents;
  waitUntil: typeof waitUntil;
  escrowOf(id: string, node: ChainNode): ReturnType<typeof escrowAt>;
  ownKeys(): Promise<KeyPair>;
  committedReference(id: string, field: ReferenceField, copy?: string): Promise<string | null>;
}

/** Sharing with Backup Agents, documented in deliveries.ts. Throws RefusedToSign without a node. */
export function sharing(session: Session, access: Access) {
  const { followEvents, waitUntil, escrowOf, ownKeys, committedReference } = access;
  const { node } = session;
  if (node === undefined)
    throw new RefusedToSign(
      "delivery",
      "only the chain proves who may judge: connect with `node` (wcontract: `--rpc-url`) to share a sealed delivery",
    );
  const escrowAtNode = (id: string) => escrowOf(id, node);
  const me = session.signer.address.toLowerCase();
  /** Shares that were made, and those whose lack was reported. */
  const [done, reported] = [new Set<string>(), new Set<string>()];

  /** The agents in the service's events, each once. Those who asked for the delivery are in no event of the chain. */
  async function* named(id: string, signal: AbortSignal): AsyncGenerator<string> {
    const agents = new Set<string>();
    const limited = { ...session, http: session.http.until(signal) };
    const read = (query: EventQuery) => call(limited, "GET /v1/events", { query });
    for await (const { data } of everyEvent(read, { contractId: id, type: READER_EVENTS })) {
      const { backupAgents = [], backupAgent, releasedTo, role } = data as Record<string, unknown>;
      for (const one of [backupAgents, backupAgent, role === "backup-agent" && releasedTo].flat()) {
        if (typeof one !== "string" || agents.has(one)) continue;
        agents.add(one);
        yield one;
      }
      if (agents.size > MAX_NAMED) break;
    }
  }

  /** The text on chain and what it says; null if it is not sealed to the caller. Throws if neither the caller nor the service has it. */
  async function deliveryOf(id: string, escrow: Escrow) {
    const hash = await escrow.deliveryHash();
    // The service can withhold from its Worker what the Worker sealed.
    const own = (await session.submitted.read(deliveriesKey(id))).find((one) => keccak256(one) === hash);
    const kept = own && new TextDecoder().decode(hexToBytes(own));
    const text = await committedReference(id, "delivery", kept);
    if (text === null)
      throw new Error(
        `The service shows no delivery of ${id}: it hides it, or the Worker delivered on chain and must send it to you`,
      );
    const jwe = parseSealed(text);
    const plain = jwe && (await plainTextOf(jwe, { id, address: me, keys: await ownKeys() }));
    return plain && { text, plain };
  }

  async function share(id: string, { onFailure, onShare }: Omit<ShareOptions, "signal">): Promise<string[]> {
    const escrow = await escrowAtNode(id);
    if ((await escrow.status()) !== "disputed") return [];
    const shared: string[] = [];
    let failure: unknown;
    const failed = (error: Error): undefined => {
      failure ??= error;
      onFailure?.(error);
    };
    const proven = new Set(await escrow.backupAgents().catch(failed));
    let read: ReturnType<typeof deliveryOf> | undefined;
    const delivered = () => (read ??= deliveryOf(id, escrow));
    const shareWithEach = async (recipients: Iterable<string>): Promise<void> => {
      for (const recipient of recipients) {
        const isProven = proven.has(recipient);
        const entry = `${id} ${recipient}`;
        if (done.has(entry)) continue;
        const delivery = await delivered();
        if (delivery === null) return;
        // A failure of one must not keep it from the others.
        try {
          const key = await publishedKey(session, recipient).catch((error) => {
            if (error instanceof RefusedToSign) return null;
            throw error;
          });
          if (key !== null) {
            const body = { recipient, jwe: await shareWith(key, delivery.plain) };
            onShare?.(id, recipient, JSON.stringify([delivery.text, body.jwe]));
            await call(session, "POST /v1/contracts/{id}/delivery/shares", { path: { id }, body });
            done.add(entry);
            shared.push(recipient);
          } else if (isProven && !reported.has(entry)) {
            reported.add(entry);
            onFailure?.(
              new Error(
                `${recipient} cannot read the delivery of ${id}: the service shows no key that it signed`,
              ),
            );
          }
        } catch (error) {
          failed(error as Error);
        }
      }
    };
    await shareWithEach(proven);
    // Afterwards: those whom the chain names need no answer of the service.
    const limited = { timeoutMs: NAMED_MS, intervalMs: Infinity };
    const others: string[] = [];
    const choose = async (signal: AbortSignal): Promise<void> => {
      for await (const one of named(id, signal)) {
        signal.throwIfAborted();
        if (proven.has(one) || done.has(`${id} ${one}`)) continue;
        if ((await delivered()) === null) return;
        if (await escrow.mayVote(one as Address).catch(failed)) others.push(one);
      }
    };
    await waitUntil(choose, () => true, limited).catch(failed);
    await shareWithEach(others);
    if (failure !== undefined && onFailure === undefined) throw failure;
    return shared;
  }

  return {
    share,

    async shareAll({ signal, onFailure, onShare }: ShareOptions): Promise<void> {
      const options = { ...(signal && { signal }) };
      const shareOne = (id: string) =>
        share(id, { onFailure, onShare }).catch((error: Error) => onFailure?.(error));
      const patiently = <T>(read: () => Promise<T>) => waitUntil(read, () => true, options);
      try {
        // Whoever asks while the open disputes are served comes after this position.
        const { nextAfter } = await patiently(() =>
          call(session, "GET /v1/events", { query: { after: "latest" } }),
        );
        for (const role of ["client", "worker"] as const) {
          const query = { [role]: me, status: "disputed", limit: 200 };
          const read = (page: Pick<PageQuery, "cursor">) => {
            signal?.throwIfAborted();
            return patiently(() => call(session, "GET /v1/contracts", { query: { ...query, ...page } }));
          };
          for await (const { id } of everyItem(read)) {
            signal?.throwIfAborted();
            await shareOne(id);
          }
        }
        const follow = { type: READER_EVENTS, agent: me, after: nextAfter, ...options };
        for await (const { contractId, type, data } of followEvents(session, follow)) {
          // Sharing reads the caller's own key, which is such an event too.
          if (type === "key.released" && data.role !== "backup-agent") continue;
          await shareOne(contractId);
        }
      } catch (error) {
        if (!signal?.aborted) throw error;
      }
    },
  };
}
