/** Deliveries that only the parties, and in a dispute the Backup Agents, can read. */
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import type { TermsDocument } from "@working-contracts/protocol/terms";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { RefusedToSign, UnreadableReference } from "./errors.js";
import { followEvents } from "./events.js";
import { parse } from "./http.js";
import type { ChainNode } from "./rpc.js";
import { dataOf, deliveriesKey, reads, type Session } from "./session.js";
import { provenTerms } from "./terms.js";
import type { Contract, ReferenceField } from "./types.js";
import { waitUntil } from "./wait.js";
import { type KeyPair, ownKeysOf, publishKey } from "./wallets.js";

const UNSEALED = "deliver with `seal: false` to let the service read the reference";

/** Loaded with the first use: agents that sign in and pay do not need the cipher. */
const sealing = () => import("./sealing.js");

/** By default a delivery is sealed if it can be (docs/rules.md 68); otherwise the service can read it. */
export interface DeliverOptions {
  /**
   * Whether only the Client, and in a dispute the Backup Agents, can read the reference, and not the service. By default if
   * the Client has published an encryption key; `true` throws if it has not, or if the service hides it. Only the chain
   * proves who accepted a listing for anyone, so sealing its delivery needs `node`.
   */
  seal?: boolean;
}

/** `onFailure` gets each error of sharing with one Backup Agent; the others still get their share. */
export interface ShareOptions {
  signal?: AbortSignal;
  onFailure?: ((error: Error) => void) | undefined;
  /** Gets each share as text before the service, which can withhold it, to send it by other means as well (`copy` of `readReference`). */
  onShare?: ((id: string, recipient: string, copy: string) => void) | undefined;
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/** `deliverText` delivers a text as it is. */
export function deliveries(session: Session, deliverText: (id: string, text: string) => Promise<Contract>) {
  const me = session.signer.address.toLowerCase();
  let own: Promise<KeyPair> | undefined;
  /** Calls at the same time share one signature of the wallet. A refused one is asked for again. */
  const ownKeys = (): Promise<KeyPair> => {
    own ??= ownKeysOf(session).catch((error) => {
      own = undefined;
      throw error;
    });
    return own;
  };
  const { get, terms } = reads(session);

  const termsOf = async (id: string) => {
    const served = await terms(id);
    return { ...provenTerms(id, served, session.network), document: served.document as TermsDocument };
  };
  const escrowOf = async (id: string, node: ChainNode) => {
    const { escrowAt } = await import("./chain-check.js");
    return escrowAt(node, session.network, id);
  };

  async function servedReference(id: string, field: ReferenceField): Promise<string | null> {
    const { [field]: jwe } = await get(id);
    if (jwe === null) return null;
    const { keys } = await dataOf(session, "GET /v1/contracts/{id}/keys", { path: { id } });
    const key = keys?.find((one) => one.field === field);
    return key === undefined ? null : (await sealing()).openReference(jwe, key);
  }

  async function committedReference(
    id: string,
    field: ReferenceField,
    copy?: string,
  ): Promise<string | null> {
    const text = copy ?? (await servedReference(id, field));
    if (text === null) return null;
    const { node } = session;
    let hash: string | null | undefined;
    if (field !== "delivery") hash = (await termsOf(id)).document.supplementaryMaterialsHash;
    else if (node !== undefined) hash = await (await escrowOf(id, node)).deliveryHash();
    if (hash === undefined || hash === keccak256(stringToHex(text))) return text;
    throw new UnreadableReference(`${field}: the text does not match its hash on chain`);
  }

  /** By the contract's terms, or for a listing for anyone by the chain: the service could name an accomplice. */
  async function clientOf(id: string): Promise<string> {
    const { workerInitiated, initiator, counterparty } = await termsOf(id);
    if (!workerInitiated) return initiator;
    if (counterparty !== ZERO_ADDRESS) return counterparty;
    if (session.node !== undefined) return (await escrowOf(id, session.node)).client();
    throw new RefusedToSign(
      "delivery",
      `only the chain proves who the Client of this listing is: connect with \`node\` (wcontract: \`--rpc-url\`), or ${UNSEALED}`,
    );
  }

  /** Seals a reference to the Client and, to share it in a dispute, to the Worker itself. Throws RefusedToSign. */
  async function sealed(id: string, reference: string): Promise<string> {
    const { publishedKey, seal } = await sealing();
    const client = await clientOf(id);
    const key = await publishedKey(session, client);
    if (key !== null)
      return seal(reference, id, [
        { address: client, key },
        { address: me, key: (await ownKeys()).key },
      ]);
    throw new RefusedToSign("delivery", `the Client ${client} has published no encryption key; ${UNSEALED}`);
  }

  /** Of all that follow the events, so that none shares again what an earlier one did. */
  let following: Awaited<ReturnType<typeof sharing>> | undefined;
  const sharing = async () =>
    (await sealing()).sharing(session, { followEvents, waitUntil, escrowOf, ownKeys, committedReference });

  return {
    /** The text to which the hash on chain commits; null if unset or without a key. Throws on another one (delivery: with `node`). */
    committedReference,

    /** The same as the service shows it, compared with nothing. */
    servedReference,

    /** Publishes the key to which others seal deliveries. Signs, unless it is published already. */
    publishKey: async (): Promise<void> => publishKey(session, await ownKeys()),

    /** Delivers a reference (a hash or URI), which only the Client can read, and the Backup Agents in a dispute. */
    async deliver(id: string, reference: string, { seal: wanted }: DeliverOptions = {}): Promise<Contract> {
      if (wanted === false) return deliverText(id, reference);
      const delivery = await sealed(id, reference).catch((error) => {
        // Never if the service shows something false.
        const isMissing = error instanceof RefusedToSign && ["delivery", "secret"].includes(error.field);
        if (wanted === true || !isMissing) throw error;
        return reference;
      });
      // Before it is sent: otherwise only the service would have it.
      if (delivery !== reference) await session.submitted.add(deliveriesKey(id), stringToHex(delivery));
      return deliverText(id, delivery);
    },

    /**
     * Decrypts a reference of a contract. Returns null if it is not set, the caller has no key for it, or no party has
     * shared it with this Backup Agent yet: reading asks them to. Throws UnreadableReference if it cannot be opened or is not
     * what was delivered.
     * With a `copy` from `onShare` of a party, it reads a delivery without the service, and throws RefusedToSign without
     * `node`: only the chain proves what was delivered.
     */
    async readReference(
      id: string,
      field: ReferenceField,
      { copy }: { copy?: string } = {},
    ): Promise<string | null> {
      const { openShare, parseSealed, plainTextOf, referenceIn } = await sealing();
      if (copy !== undefined && (session.node === undefined || field !== "delivery"))
        throw new RefusedToSign(field, "only deliveries have copies; reading one needs `node` (`--rpc-url`)");
      const pair: unknown = parse(copy ?? "[]");
      if (!isTexts(pair) || (copy && pair.length !== 2))
        throw new TypeError("Not a copy of a delivery: pass what `onShare` got (`wcontract share --save`)");
      const [given, share] = pair;
      const text = await committedReference(id, field, given);
      const jwe = text === null || field !== "delivery" ? null : parseSealed(text);
      if (jwe === null) return text;
      const keys = await ownKeys();
      const plain = await plainTextOf(jwe, { id, address: me, keys });
      if (plain !== null) return referenceIn(plain, jwe);
      const shares =
        share === undefined
          ? await dataOf(session, "GET /v1/contracts/{id}/delivery/shares", { path: { id } })
          : [{ jwe: share }];
      let failure: unknown;
      for (const share of shares) {
        try {
          return await referenceIn(await openShare(share.jwe, keys), jwe);
        } catch (error) {
          // The other party may have shared the true one.
          failure = error;
        }
      }
      if (failure === undefined) return null;
      throw failure;
    },

    /**
     * Shares a sealed delivery with every Backup Agent who may read it and has a key. Returns with whom; passes to
     * `onFailure` what failed for one, and an error for each who was drawn or has voted and has no key. Without `onFailure`,
     * throws what failed after the others, and says nothing of those without a key. Throws RefusedToSign without `node`:
     * only the chain proves who may read.
     */
    shareDelivery: async (id: string, options: Omit<ShareOptions, "signal"> = {}): Promise<string[]> =>
      (await sharing()).share(id, options),

    /** Shares sealed deliveries with Backup Agents who are drawn, vote or ask. Throws RefusedToSign without `node`. */
    shareDeliveries: async (options: ShareOptions = {}): Promise<void> => {
      following ??= await sharing();
      return following.shareAll(options);
    },
  };
}
