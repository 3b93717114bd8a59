/** Deliveries that only the parties, and in a dispute the Backup Agents, can read. */
import { compactDecrypt, decodeProtectedHeader, importJWK } from "jose";
import { RefusedToSign } from "./errors.js";
import { followEvents } from "./events.js";
import {
  openShare,
  ownKeyOf,
  type PrivateKey,
  parseSealed,
  plainTextOf,
  publishedKey,
  publishKey,
  referenceIn,
  seal,
  shareWith,
} from "./sealing.js";
import { call, dataOf, type Session } from "./session.js";
import type { Contract, ReferenceField, ReferenceKey } from "./types.js";

export interface DeliverOptions {
  /**
   * Whether only the Client, and in a dispute the Backup Agents, can read the reference, and not the service. By default if
   * the Client has published an encryption key; `true` throws if it has not, or if the service hides it.
   */
  seal?: boolean;
}

/** Why a Backup Agent may read a sealed delivery: it was drawn, has voted, or has asked for the keys. */
const JURY_EVENTS = "contract.drawn,vote.sealed,key.released";

/** `deliverText` delivers a text as it is. */
export function deliveries(session: Session, deliverText: (id: string, text: string) => Promise<Contract>) {
  const me = session.signer.address.toLowerCase();
  let own: Promise<PrivateKey> | undefined;
  const ownKey = (): Promise<PrivateKey> => {
    own ??= ownKeyOf(session);
    return own;
  };
  const get = (id: string) => dataOf(call(session, "GET /v1/contracts/{id}", { path: { id } }));

  async function committed(id: string, field: ReferenceField): Promise<string | null> {
    const { [field]: jwe } = await get(id);
    if (jwe === null) return null;
    const { keys } = await dataOf(call(session, "GET /v1/contracts/{id}/keys", { path: { id } }));
    const key = keys.find((one) => one.field === field);
    return key === undefined ? null : openReference(jwe, key);
  }

  /** The reference as it is delivered: sealed to the Client and, to share it in a dispute, to the Worker itself. */
  async function sealed(id: string, reference: string, required: boolean): Promise<string> {
    const { client } = await get(id);
    const key = client === null ? null : await publishedKey(session, client);
    if (client !== null && key !== null) {
      const mine = { address: me, key: await ownKey() };
      return seal(reference, [{ address: client, key }, mine]);
    }
    if (!required) return reference;
    throw new RefusedToSign(
      "delivery",
      `the Client ${client} has published no encryption key. Deliver with \`seal: false\` to let the service read the reference`,
    );
  }

  /** The Backup Agents who may read the delivery, as far as the caller may know. */
  async function jurorsOf(id: string): Promise<Set<string>> {
    const jurors = new Set<string>();
    let after = "0";
    for (;;) {
      const query = { contractId: id, type: JURY_EVENTS, after };
      const page = await call(session, "GET /v1/events", { query });
      for (const { data } of page.data) {
        const { backupAgents = [], backupAgent, releasedTo, role } = data as Record<string, unknown>;
        for (const one of [backupAgents, backupAgent, role === "backup-agent" ? releasedTo : []].flat())
          if (typeof one === "string") jurors.add(one);
      }
      if (!page.hasMore) return jurors;
      after = page.nextAfter;
    }
  }

  /** Shares a sealed delivery with every Backup Agent who may read it and has a key. Returns with whom. */
  async function shareDelivery(id: string): Promise<string[]> {
    const text = await committed(id, "delivery");
    const jwe = text === null ? null : parseSealed(text);
    const plain = jwe === null ? null : await plainTextOf(jwe, { address: me, key: await ownKey() });
    if (plain === null) return [];
    const shared: string[] = [];
    for (const recipient of await jurorsOf(id)) {
      const key = await publishedKey(session, recipient);
      if (key === null) continue;
      const body = { recipient, jwe: await shareWith(key, plain) };
      await call(session, "POST /v1/contracts/{id}/delivery/shares", { path: { id }, body });
      shared.push(recipient);
    }
    return shared;
  }

  return {
    /**
     * The text of a reference to which its hash on chain commits: the reference, or its sealed form. Returns null if it is not
     * set or the caller has no key for it.
     */
    committed,

    /** Publishes the key to which others seal deliveries. Signs, unless it is published already. */
    publishKey: async (): Promise<void> => publishKey(session, await ownKey()),

    /** Delivers a reference (a hash or URI), which only the Client can read, and the Backup Agents in a dispute. */
    async deliver(id: string, reference: string, { seal: wanted }: DeliverOptions = {}): Promise<Contract> {
      const delivery = wanted === false ? reference : await sealed(id, reference, wanted === true);
      return deliverText(id, delivery);
    },

    /**
     * Decrypts a reference of a contract. Returns null if it is not set, the caller has no key for it, or no party has
     * shared it with this Backup Agent yet: reading asks them to. Throws if it cannot be opened or is not what was delivered.
     */
    async reveal(id: string, field: ReferenceField): Promise<string | null> {
      const text = await committed(id, field);
      const jwe = text === null ? null : parseSealed(text);
      if (jwe === null) return text;
      const key = await ownKey();
      const plain = await plainTextOf(jwe, { address: me, key });
      if (plain !== null) return referenceIn(plain, jwe);
      const shares = await dataOf(call(session, "GET /v1/contracts/{id}/delivery/shares", { path: { id } }));
      let failure: unknown;
      for (const share of shares) {
        try {
          return await referenceIn(await openShare(share.jwe, key), jwe);
        } catch (error) {
          // The other party may have shared the true one.
          failure = error;
        }
      }
      if (failure === undefined) return null;
      throw failure;
    },

    shareDelivery,

    /** Shares sealed deliveries with Backup Agents as they are drawn, vote or ask, until `signal` is aborted. */
    async serveJuries({ signal }: { signal?: AbortSignal } = {}): Promise<void> {
      const follow = { type: JURY_EVENTS, agent: me, ...(signal && { signal }) };
      for await (const { contractId } of followEvents(session, follow)) await shareDelivery(contractId);
    },
  };
}

/** Decrypts a compact JWE (`dir`, `A256GCM`). Throws if the key belongs to another reference or the text was modified. */
async function openReference(jwe: string, key: ReferenceKey): Promise<string> {
  const { kid } = decodeProtectedHeader(jwe);
  if (kid !== key.kid) throw new Error(`The key ${key.kid} does not decrypt ${kid}`);
  const { plaintext } = await compactDecrypt(jwe, await importJWK({ ...key }));
  return new TextDecoder().decode(plaintext);
}
