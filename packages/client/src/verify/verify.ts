/** Rebuilds a contract from the chain, and compares what the service shows of it: all but its votes and ledger. */
import { checkpointLeaf, computeCriteria, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import type { Address, EscrowTerms } from "@working-contracts/protocol/types";
import canonicalize from "canonicalize";
import { type Client, createClient, custom, http } from "viem";
import { getChainId } from "viem/actions";
import { requireKnownCode } from "../chain-check.js";
import { ConnectionError, ifAllowed, RefusedToSign, ServiceError, UnreadableReference } from "../errors.js";
import { fetchWhole, pause, textOf } from "../http.js";
import { type ChainNode, nameOf, shortOf, withoutUrl } from "../rpc.js";
import type { reads } from "../session.js";
import type { Checkpoint, Contract, ReferenceField, Settlement } from "../types.js";
import { type ComplaintSigner, type Step, signersOf, stepsOf } from "./authority.js";
import { juryByRule, openedVotes } from "./jury.js";
import { type Protocol, readEscrow } from "./read-chain.js";
import { type Rebuilt, rebuild } from "./rebuild.js";

/** The verification trusts these nodes and addresses, and nothing that the service says. */
export interface VerifyOptions {
  /** Nodes of the chain. The first is compared with the service; the others have to report the same as the first. */
  nodes: readonly ChainNode[];
  /** The addresses to trust; by default those of the connection. */
  network?: Protocol;
  /**
   * How often both sides are read while they differ; 4 by default. They are read one after the other, so a change in
   * between shows as a difference until the next try.
   */
  tries?: number;
  /** Called before both sides are read again. */
  onRetry?: () => void;
}

/** A fact that the chain states beside the service, or another node. */
export interface Comparison {
  field: string;
  chain: unknown;
  api: unknown;
  /** Null if the service did not show the fact, or its proof. */
  equal: boolean | null;
}

/** The contract by the chain, compared with the service, and the party behind each step. */
export interface Verification {
  id: string;
  equal: boolean;
  fields: Comparison[];
  /** Parts that the service did not show or the node could not check, each with the reason. */
  notCompared: string[];
  steps: Step[];
}

/** The agent as which the service is read. */
export interface Reader
  extends Pick<ReturnType<typeof reads>, "get" | "terms" | "settlement" | "checkpoints" | "complaints"> {
  address: string;
  network: Protocol;
  servedReference(id: string, field: ReferenceField): Promise<string | null>;
  readReference(id: string, field: ReferenceField): Promise<string | null>;
}

const PAUSE_MS = 1500;

/** With an error in the place of `reader`, the contract is rebuilt without the service. */
export async function verifyContract(
  reader: Reader | Error,
  given: string,
  { nodes, network = (reader as Reader).network, tries = 4, onRetry }: VerifyOptions,
): Promise<Verification> {
  const id = given.toLowerCase() as Address;
  const [first, ...others] = nodes;
  if (first === undefined) throw new TypeError("verify needs a node: pass `node` to `connect`, or `nodes`");
  for (let attempt = 1; ; attempt++) {
    const onChain = await readNode(first, id, network);
    const { escrow, steps, client } = onChain;
    const rebuilt = rebuild(escrow);
    const api = await ask(reader, id, rebuilt);
    const signers = await signersOf(client, api.complaints ?? [], {
      id,
      chainId: network.chainId,
      parties: rebuilt.contract,
    }).catch((error: Error) => {
      // The service can send what no node takes.
      api.notCompared.push(`complaints: ${shortOf(error)}`);
      return [];
    });
    const fields = compare(id, onChain, rebuilt, { ...api, signers });
    for (const node of others) {
      const other = await readNode(node, id, network, escrow.blockNumber).catch((error: Error) => error);
      const digests = other instanceof Error ? [digestOf(onChain), other.message] : digestsOf(onChain, other);
      const [expected, same] = digests;
      fields.push({ field: `node ${nameOf(node)}`, chain: expected, api: same, equal: same === expected });
    }
    const equal = fields.every((one) => one.equal !== false);
    if (onChain.jury instanceof Error) api.notCompared.push(`panel: ${shortOf(onChain.jury)}`);
    if (equal || attempt >= tries) return { id, equal, fields, notCompared: api.notCompared, steps };
    onRetry?.();
    await pause(PAUSE_MS, undefined);
  }
}

type OnChain = Awaited<ReturnType<typeof readChain>>;

function readNode(...args: Parameters<typeof readChain>): Promise<OnChain> {
  return readChain(...args).catch((error) => withoutUrl(args[0], error));
}

async function readChain(node: ChainNode, id: Address, network: Protocol, blockNumber?: bigint) {
  const transport =
    typeof node === "string" ? http(node, { batch: true, fetchFn: fetchWhole }) : custom(node);
  const client: Client = createClient({ transport, ccipRead: false });
  const chainId = await getChainId(client);
  if (chainId !== network.chainId)
    throw new Error(`The node is on chain ${chainId}, the contract on ${network.chainId}.`);
  const escrow = await readEscrow(client, { id, network, blockNumber });
  /** Why the deployment's code does not match this package's build; undefined if it does. */
  const differenceOfCode = requireKnownCode(node, network).catch((error) => {
    if (error instanceof RefusedToSign) return error.message.replace("Refused to sign ", "");
    throw error;
  });
  const [unknownCode, steps, jury, votes] = await Promise.all([
    differenceOfCode,
    stepsOf(client, { id, escrow, network }),
    // Null without a draw, and an error if the node does not show enough.
    juryByRule(client, { escrow, network }).catch((error: Error) => error),
    openedVotes(client, { id, escrow, network }),
  ]);
  return { client, unknownCode, escrow, steps, jury, votes };
}

/** A hash for each of two nodes of all that both report about an escrow. */
function digestsOf(...both: [OnChain, OnChain]): [string, string] {
  const hasJury = both.every(({ jury }) => !(jury instanceof Error));
  return both.map((one) => digestOf(hasJury ? one : { ...one, jury: null })) as [string, string];
}

function digestOf({ client: _, escrow, ...read }: OnChain): string {
  return keccak256(stringToHex(textOf({ ...escrow, paid: [...escrow.paid], ...read })));
}

type ApiResponses = Awaited<ReturnType<typeof ask>>;

async function ask(reader: Reader | Error, id: string, { contract: { client }, deliveryHash }: Rebuilt) {
  const failures = new Map<string, Error>();
  /** Returns undefined if the service did not respond with it. */
  const attempt = async <T>(what: string, read: (from: Reader) => Promise<T>): Promise<T | undefined> => {
    try {
      if (reader instanceof Error) throw reader;
      const value = await read(reader);
      if (value === undefined) throw new Error("the response has no data");
      return value;
    } catch (error) {
      failures.set(what, error as Error);
      return undefined;
    }
  };
  const [contract, terms, settlement, checkpoints, complaints, delivery, supplementaryMaterials] =
    await Promise.all([
      attempt("contract", (from) => from.get(id)),
      attempt("terms", (from) => from.terms(id)),
      attempt("settlement", (from) => from.settlement(id)),
      attempt("checkpoints", (from) => from.checkpoints(id)),
      attempt("complaints", (from) => from.complaints(id)),
      attempt("delivery", (from) => ifAllowed(() => from.servedReference(id, "delivery"))),
      attempt("supplementaryMaterials", (from) =>
        ifAllowed(() => from.servedReference(id, "supplementaryMaterials")),
      ),
    ]);
  const { address } = reader as Reader;
  const isReader = client === address || contract?.worker === address;
  const failure = failures.get("delivery");
  // No response at all has a cause; one that cannot be read is an answer.
  const isAnswered = !(failure instanceof ConnectionError && failure.cause !== undefined);
  const isDue = client === address && deliveryHash !== null;
  const isKnown = isDue ? isAnswered : contract !== undefined;
  return {
    contract,
    terms,
    settlement,
    checkpoints,
    complaints,
    /** The text to which the hash on chain should commit; null if there is none or the caller may not read it. */
    delivery,
    supplementaryMaterials,
    notCompared: [...failures].map(([what, { message }]) => `${what}: ${message}`),
    /** Whether the caller is the Client of a delivered contract, and yet cannot read the delivery; null if unknown. */
    isWithheld: isKnown ? isDue && !delivery : null,
    /** Whether the delivery opens with the caller's key; null if the caller is not meant to read it, or cannot now. */
    opens: isReader && delivery ? await canOpen(reader as Reader, id) : null,
  };
}

/** A delivery can be sealed, and not open with the caller's key: the jury then decides on it. */
function canOpen(reader: Reader, id: string): Promise<boolean | null> {
  return reader.readReference(id, "delivery").then(
    (reference) => reference !== null,
    (error) => (error instanceof UnreadableReference || error instanceof ServiceError ? false : null),
  );
}

/** Fields of the Contract that have the same name in the hashed terms document. */
const TEXT_FIELDS = [
  "title",
  "taskDescription",
  "acceptanceCriteria",
  "awardMethod",
  "initiator",
  "contractType",
  "verificationMode",
] as const;
const MATERIALS = "supplementaryMaterialsHash";
const UNPROVEN = "(the text behind termsHash is unknown)";

/** Returns one row for each fact that the chain states, or proves. */
function compare(
  id: string,
  { unknownCode, escrow, jury, votes }: OnChain,
  rebuilt: Rebuilt,
  api: ApiResponses & { signers: ComplaintSigner[] },
): Comparison[] {
  const { contract, terms, settlement, checkpoints, delivery } = api;
  const rows: Comparison[] = [];
  function row<T>(
    field: string,
    chain: unknown,
    response: T | undefined,
    pick: (response: T) => unknown = (whole) => whole,
  ): void {
    if (response === undefined) return void rows.push({ field, chain, api: null, equal: null });
    let [served, equal]: [unknown, boolean] = [undefined, false];
    try {
      const picked = pick(response);
      equal = canonicalize(chain) === canonicalize(picked);
      served = picked;
    } catch {
      // A response in another form than the documented one differs.
    }
    rows.push({ field, chain, api: served, equal });
  }

  const { statusOnChain, ...fields } = rebuilt.contract;
  row("code of the deployment", unknownCode ?? "known", "known");
  row("address of the terms", fields.id, id);
  row("status reported by the escrow", statusOnChain, fields.status);
  for (const [field, value] of Object.entries(fields))
    row(field, value, contract, (served) => served[field as keyof Contract]);
  const { criteriaCount } = escrow.terms;
  row("acceptanceCriteria, count", criteriaCount, contract, (served) => served.acceptanceCriteria.length);

  for (const [field, value] of Object.entries({ ...escrow.terms, price: String(escrow.terms.price) }))
    row(`terms.${field}`, value, terms, (served) => served.escrowTerms[field as keyof EscrowTerms]);
  const hashOf = (plain: string): string => keccak256(stringToHex(plain));
  const text = String(terms?.canonicalDocument);
  row("text of the terms, hash", escrow.terms.termsHash, terms, () => hashOf(text));
  const isProven = hashOf(text) === escrow.terms.termsHash;
  const document: Record<string, unknown> = isProven ? JSON.parse(text) : {};
  const proven = (name: string): unknown => (isProven ? document[name] : UNPROVEN);
  // Without the text of the terms nothing proves these.
  const provable = terms && contract;
  for (const field of TEXT_FIELDS)
    row(`${field} in the terms`, proven(field), provable, (served) => served[field]);
  const hasMaterials = isProven ? document[MATERIALS] !== null : UNPROVEN;
  row("has supplementaryMaterials", hasMaterials, provable, (one) => one.supplementaryMaterials !== null);
  const materials = terms && api.supplementaryMaterials;
  if (materials !== null) row("supplementaryMaterials, hash", proven(MATERIALS), materials, hashOf);
  row("has delivery", rebuilt.deliveryHash !== null, contract, (one) => one.delivery !== null);
  const rootOf = (served: Checkpoint[]) => rootOfLeaves(served.map(checkpointLeaf));
  if (rebuilt.checkpointsRoot !== null)
    row("checkpoints, root", rebuilt.checkpointsRoot, checkpoints, rootOf);
  // The root is the same in any order, and the last one decides.
  row("checkpoints, in sequence", true, checkpoints, (served) =>
    served.every(({ fromSequence }, i) => i === 0 || fromSequence === (served[i - 1]?.toSequence ?? 0) + 1),
  );
  if (rebuilt.statedOutcomes !== null) {
    row(
      "computed criteria, by the Worker and by the checkpoints",
      rebuilt.statedOutcomes,
      terms && checkpoints,
      (served) =>
        computeCriteria({
          criteriaCount,
          applicationTerms: document.applicationTerms as Record<string, unknown> | null,
          metrics: served.at(-1)?.data ?? null,
        }),
    );
  }
  row("delivery withheld by the service", false, api.isWithheld ?? undefined);
  if (delivery !== null) row("delivery, hash", rebuilt.deliveryHash, delivery, hashOf);
  if (api.opens !== null) row("delivery opens with your key", true, api.opens);

  const { legs, ...ends } = rebuilt.settlement;
  for (const [field, value] of Object.entries(ends))
    row(`settlement.${field}`, value, settlement, (served) => served[field as keyof Settlement]);
  row("settlement.legs, count", legs.length, settlement, (served) => served.legs.length);
  for (const [i, leg] of legs.entries())
    row(`settlement.${leg.name} to ${leg.to}`, leg, settlement, (served) => served.legs[i]);
  if (jury !== null)
    row("panel drawn, by the rule", rebuilt.drawn, jury instanceof Error ? undefined : jury.drawn);
  for (const { voter, committed, opened } of votes)
    row(`vote of ${voter}, commitment`, committed, opened ?? undefined);
  for (const { complaint, filer, signer } of api.signers)
    row(`signer of complaint ${complaint.id}`, filer, signer ?? undefined);
  for (const { payee, moved, due } of rebuilt.transfers) row(`transferred to ${payee}`, moved, due);
  return rows;
}
