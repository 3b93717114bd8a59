/** Shares sealed deliveries with the Backup Agents of a dispute, whom the chain proves. */
import type { Address } from "@working-contracts/protocol/types";
import type { escrowAt, Node } from "./chain-check.js";
import type { ServeOptions } from "./deliveries.js";
import { RefusedToSign } from "./errors.js";
import type { followEvents } from "./events.js";
import type { everyItem, PageQuery } from "./reads.js";
import type { call, Session } from "./session.js";
import type { ReferenceField } from "./types.js";
import type { waitUntil } from "./wait.js";
import type { KeyPair } from "./wallets.js";

/** Why a Backup Agent may read a sealed delivery: it was drawn, has voted, or has asked for the keys. */
const JURY_EVENTS = "contract.drawn,vote.sealed,key.released";

/** Passed in, not imported: that would split what every agent loads into more files. */
interface Access {
  call: typeof call;
  everyItem: typeof everyItem;
  followEvents: typeof followEvents;
  waitUntil: typeof waitUntil;
  escrowOf(id: string, node: Node): ReturnType<typeof escrowAt>;
  ownKeys(): Promise<KeyPair>;
  committed(id: string, field: ReferenceField): Promise<string | null>;
}

/** deliveries.ts documents the two calls. Throws RefusedToSign without a node. */
export function juries(session: Session, access: Access) {
  const { call, everyItem, followEvents, waitUntil, escrowOf, ownKeys, committed } = access;
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

  /** The agents in the service's events. Those who asked for the delivery are in no event of the chain. */
  async function named(id: string): Promise<string[]> {
    const jurors: unknown[] = [];
    let after = "0";
    for (;;) {
      const query = { contractId: id, type: JURY_EVENTS, after };
      const page = await call(session, "GET /v1/events", { query });
      for (const { data } of page.data) {
        const { backupAgents = [], backupAgent, releasedTo, role } = data as Record<string, unknown>;
        jurors.push(backupAgents, backupAgent, role === "backup-agent" && releasedTo);
      }
      if (!page.hasMore) return jurors.flat().filter((one) => typeof one === "string");
      after = page.nextAfter;
    }
  }

  async function share(id: string, { onFailure, onShare }: Omit<ServeOptions, "signal">): Promise<string[]> {
    const escrow = await escrowAtNode(id);
    if ((await escrow.status()) !== "disputed") return [];
    const proven = await escrow.jurors();
    let failure: unknown;
    const failed = (error: Error): string[] => {
      failure ??= error;
      onFailure?.(error);
      return [];
    };
    const all = new Set([...proven, ...(await named(id).catch(failed))]);
    const missing = [...all].filter((recipient) => !done.has(`${id} ${recipient}`));
    if (missing.length === 0 && failure === undefined) return [];
    const { parseSealed, plainTextOf, publishedKey, shareWith } = await import("./sealing.js");
    const text = await committed(id, "delivery");
    const jwe = text === null ? null : parseSealed(text);
    const plain = jwe === null ? null : await plainTextOf(jwe, { address: me, keys: await ownKeys() });
    if (plain === null) return [];
    const shared: string[] = [];
    for (const recipient of missing) {
      const isProven = proven.has(recipient);
      const entry = `${id} ${recipient}`;
      // A failure of one must not keep it from the others.
      try {
        if (!isProven && !(await escrow.mayVote(recipient as Address))) continue;
        const key = await publishedKey(session, recipient).catch((error) => {
          if (error instanceof RefusedToSign) return null;
          throw error;
        });
        if (key !== null) {
          const body = { recipient, jwe: await shareWith(key, plain) };
          onShare?.(id, recipient, JSON.stringify([text, body.jwe]));
          await call(session, "POST /v1/contracts/{id}/delivery/shares", { path: { id }, body });
          done.add(entry);
          shared.push(recipient);
        } else if (isProven && !reported.has(entry)) {
          reported.add(entry);
          onFailure?.(new Error(`${recipient} judges ${id} unread: the service shows no key that it signed`));
        }
      } catch (error) {
        failed(error as Error);
      }
    }
    if (failure !== undefined && onFailure === undefined) throw failure;
    return shared;
  }

  return {
    share,

    async serve({ signal, onFailure, onShare }: ServeOptions): Promise<void> {
      const options = { ...(signal && { signal }) };
      const serve = (id: string) =>
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
            await serve(id);
          }
        }
        const follow = { type: JURY_EVENTS, agent: me, after: nextAfter, ...options };
        for await (const { contractId, type, data } of followEvents(session, follow)) {
          // Sharing reads the caller's own key, which is such an event too.
          if (type === "key.released" && data.role !== "backup-agent") continue;
          await serve(contractId);
        }
      } catch (error) {
        if (!signal?.aborted) throw error;
      }
    },
  };
}
