/** Checks every response of the service about a contract against the chain. */
import { checkpointLeaf, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { computeCriteria } from "@working-contracts/protocol/criteria";
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import type { Address } from "@working-contracts/protocol/types";
import canonicalize from "canonicalize";
import { type Client, createClient, custom, http } from "viem";
import { getChainId } from "viem/actions";
import { hostOf, type Node } from "../chain-check.js";
import { ifAllowed } from "../errors.js";
import type { reads } from "../reads.js";
import type { Checkpoint, Contract, ReferenceField, Settlement, Terms } from "../types.js";
import { type Step, stepsOf } from "./authority.js";
import { type EscrowOnChain, type Protocol, readEscrow } from "./read-chain.js";
import { type Rebuilt, rebuild } from "./rebuild.js";

export interface VerifyOptions {
  /** Nodes of the chain. The first is compared with the service; the others have to report the same as the first. */
  nodes: readonly Node[];
  /** The addresses to trust; by default those of the connection. */
  network?: Protocol;
  /** Called before both sides are read again. */
  onRetry?: () => void;
}

/** A fact that the chain states beside the service, or another node. */
export interface Comparison {
  field: string;
  chain: unknown;
  api: unknown;
  equal: boolean;
}

export interface Verification {
  id: string;
  /** Whether all fields are. */
  equal: boolean;
  fields: Comparison[];
  /** The party whose signature allowed each step. */
  steps: Step[];
}

/** The agent as which the service is read. */
export interface Reader
  extends Pick<ReturnType<typeof reads>, "get" | "terms" | "settlement" | "checkpoints"> {
  address: string;
  network: Protocol;
  committed(id: string, field: ReferenceField): Promise<string | null>;
  reveal(id: string, field: ReferenceField): Promise<string | null>;
}

/** The two sides are read one after the other, so a change in between shows as a difference until the next try. */
const TRIES = 4;
const PAUSE_MS = 1500;

export async function verifyContract(
  reader: Reader,
  given: string,
  { nodes, network = reader.network, onRetry }: VerifyOptions,
): Promise<Verification> {
  const id = given.toLowerCase() as Address;
  const [first, ...others] = nodes;
  if (first === undefined) throw new TypeError("verify needs a node of the chain");
  for (let attempt = 1; ; attempt++) {
    const onChain = await readNode(first, id, network);
    const { escrow, steps } = onChain;
    const fields = compare(id, escrow, rebuild(escrow), await ask(reader, id));
    for (const node of others) {
      const same = await readNode(node, id, network, escrow.blockNumber).then(
        digestOf,
        (error: Error) => error.message,
      );
      const expected = digestOf(onChain);
      fields.push({ field: `node ${nameOf(node)}`, chain: expected, api: same, equal: same === expected });
    }
    const equal = fields.every((one) => one.equal);
    if (equal || attempt === TRIES) return { id, equal, fields, steps };
    onRetry?.();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

interface OnChain {
  escrow: EscrowOnChain;
  steps: Step[];
}

/** viem's messages contain the node's whole URL, and so possibly a key; its short ones do not. */
const withoutUrl =
  (node: Node) =>
  (error: Error & { shortMessage?: string }): never => {
    const { shortMessage } = error;
    throw shortMessage === undefined ? error : new Error(`The node ${nameOf(node)}: ${shortMessage}`);
  };

function readNode(...args: Parameters<typeof readChain>): Promise<OnChain> {
  return readChain(...args).catch(withoutUrl(args[0]));
}

async function readChain(node: Node, id: Address, network: Protocol, blockNumber?: bigint): Promise<OnChain> {
  const transport = typeof node === "string" ? http(node, { batch: true }) : custom(node);
  const client: Client = createClient({ transport, ccipRead: false });
  const chainId = await getChainId(client);
  if (chainId !== network.chainId)
    throw new Error(`The node is on chain ${chainId}, the contract on ${network.chainId}.`);
  const escrow = await readEscrow(client, { id, network, blockNumber });
  return { escrow, steps: await stepsOf(client, { id, escrow, network }) };
}

const nameOf = (node: Node): string => (typeof node === "string" ? hostOf(node) : "of the wallet");

/** One hash of all that a node reports about an escrow. */
function digestOf({ escrow, steps }: OnChain): string {
  const plainOf = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  return keccak256(stringToHex(JSON.stringify({ ...escrow, paid: [...escrow.paid], steps }, plainOf)));
}

interface ApiResponses {
  contract: Contract;
  terms: Terms;
  settlement: Settlement;
  checkpoints: Checkpoint[];
  /** The text to which the hash on chain commits; null if there is none or the caller may not read it. */
  delivery: string | null;
  supplementaryMaterials: string | null;
  /** Whether the caller is the Client of a delivered contract, and yet cannot read the delivery. */
  isWithheld: boolean;
  /** Whether the delivery opens with the caller's key; null if the caller is not meant to read it. */
  opens: boolean | null;
}

async function ask(reader: Reader, id: string): Promise<ApiResponses> {
  const [contract, terms, settlement, checkpoints] = await Promise.all([
    reader.get(id),
    reader.terms(id),
    reader.settlement(id),
    reader.checkpoints(id),
  ]);
  const [delivery, supplementaryMaterials] = await Promise.all([
    ifAllowed(() => reader.committed(id, "delivery")),
    ifAllowed(() => reader.committed(id, "supplementaryMaterials")),
  ]);
  const isReader = contract.client === reader.address || contract.worker === reader.address;
  return {
    contract,
    terms,
    settlement,
    checkpoints,
    delivery,
    supplementaryMaterials,
    isWithheld: contract.client === reader.address && contract.delivery !== null && delivery === null,
    opens: isReader && delivery !== null ? await canOpen(reader, id) : null,
  };
}

/** A delivery can be sealed, and not open with the caller's key: the jury then decides on it. */
function canOpen(reader: Reader, id: string): Promise<boolean> {
  return reader.reveal(id, "delivery").then(
    (reference) => reference !== null,
    () => false,
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

/** Returns one row for each fact that both the chain and the API state. */
function compare(id: string, escrow: EscrowOnChain, rebuilt: Rebuilt, api: ApiResponses): Comparison[] {
  const { contract, terms, settlement, delivery } = api;
  const rows: Comparison[] = [];
  const row = (field: string, chain: unknown, served: unknown): void => {
    rows.push({ field, chain, api: served, equal: canonicalize(chain) === canonicalize(served) });
  };

  const { statusOnChain, ...fields } = rebuilt.contract;
  row("address of the terms", fields.id, id);
  row("status reported by the escrow", statusOnChain, fields.status);
  for (const [field, value] of Object.entries(fields)) row(field, value, contract[field as keyof Contract]);
  row("acceptanceCriteria, count", escrow.terms.criteriaCount, contract.acceptanceCriteria.length);

  const served = terms.escrowTerms as Record<string, unknown>;
  for (const [field, value] of Object.entries(escrow.terms)) {
    row(`terms.${field}`, typeof value === "bigint" ? String(value) : value, served[field]);
  }
  const textHash = keccak256(stringToHex(terms.canonicalDocument));
  row("text of the terms, hash", escrow.terms.termsHash, textHash);
  const isProven = textHash === escrow.terms.termsHash;
  const document = JSON.parse(terms.canonicalDocument) as Record<string, unknown>;
  const proven = (name: string): unknown => (isProven ? document[name] : UNPROVEN);
  for (const field of TEXT_FIELDS) row(`${field} in the terms`, proven(field), contract[field]);
  const hashOf = (plain: string): string => keccak256(stringToHex(plain));
  const hasMaterials = isProven ? document[MATERIALS] !== null : UNPROVEN;
  row("has supplementaryMaterials", hasMaterials, contract.supplementaryMaterials !== null);
  if (api.supplementaryMaterials !== null) {
    row("supplementaryMaterials, hash", proven(MATERIALS), hashOf(api.supplementaryMaterials));
  }
  row("has delivery", rebuilt.deliveryHash !== null, contract.delivery !== null);
  const { checkpoints } = api;
  if (rebuilt.checkpointsRoot !== null)
    row("checkpoints, root", rebuilt.checkpointsRoot, rootOfLeaves(checkpoints.map(checkpointLeaf)));
  if (rebuilt.statedOutcomes !== null) {
    const computed = computeCriteria({
      criteriaCount: escrow.terms.criteriaCount,
      applicationTerms: document.applicationTerms as Record<string, unknown> | null,
      metrics: checkpoints.at(-1)?.data ?? null,
    });
    row("computed criteria, by the Worker and by the checkpoints", rebuilt.statedOutcomes, computed);
  }
  row("delivery withheld by the service", false, api.isWithheld);
  if (delivery !== null) row("delivery, hash", rebuilt.deliveryHash, hashOf(delivery));
  if (api.opens !== null) row("delivery opens with your key", true, api.opens);

  const { legs, ...ends } = rebuilt.settlement;
  for (const [field, value] of Object.entries(ends)) {
    row(`settlement.${field}`, value, settlement[field as keyof Settlement]);
  }
  row("settlement.legs, count", legs.length, settlement.legs.length);
  for (const [i, leg] of legs.entries()) row(`settlement.${leg.name} to ${leg.to}`, leg, settlement.legs[i]);
  for (const { payee, moved, due } of rebuilt.transfers) row(`transferred to ${payee}`, moved, due);
  return rows;
}
