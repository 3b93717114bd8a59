/** `wcontract verify`: checks every response of the service against the chain. */
import { readFileSync } from "node:fs";
import type { Agent, Contract, Settlement, Terms } from "@working-contracts/client/index";
import { checkpointLeaf, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { parseDeployment } from "@working-contracts/protocol/deployment";
import canonicalize from "canonicalize";
import type { Command } from "commander";
import { type Address, createPublicClient, http, keccak256, stringToHex } from "viem";
import { type Context, ifAllowed } from "../context.js";
import { UsageError } from "../errors.js";
import { plain, table } from "../terminal.js";
import { type Step, stepsOf } from "../verify/authority.js";
import { type EscrowOnChain, readEscrow } from "../verify/read-chain.js";
import { type Rebuilt, rebuild } from "../verify/rebuild.js";

/** The two sides are read one after the other, so a change in between shows as a difference until the next try. */
const TRIES = 4;
const PAUSE_MS = 1500;

class DifferenceError extends Error {}

export function addVerifyCommand(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("verify <id>")
    .description(
      "rebuild a contract from the chain alone, compare it with the API (exits with 1 on a difference), and name whose signature allowed each step",
    )
    .option("--also-rpc <url...>", "other nodes, which have to report the same as the first")
    .action(async (given: string, { alsoRpc = [] }: { alsoRpc?: string[] }, command: Command) => {
      const context = contextOf(command);
      const id = given.toLowerCase() as Address;
      const { rows, steps } = await compareUntilEqual(context, id, alsoRpc);
      const differences = rows.filter(({ equal }) => !equal).length;
      context.out.result({ id, equal: differences === 0, fields: rows, steps }, () => textOf(rows, steps));
      if (differences > 0)
        throw new DifferenceError(`${differences} of ${rows.length} fields differ from the chain`);
    });
}

async function compareUntilEqual(
  { settings, agent, out }: Context,
  id: Address,
  otherNodes: readonly string[],
): Promise<{ rows: Comparison[]; steps: Step[] }> {
  const { rpcUrl, deploymentPath } = settings;
  if (rpcUrl === undefined) throw new UsageError("verify needs --rpc-url or RPC_URL.");
  if (deploymentPath === undefined) throw new UsageError("verify needs --deployment or DEPLOYMENT.");
  const deployment = parseDeployment(readFileSync(deploymentPath, "utf8"), deploymentPath);
  const read = async (url: string, blockNumber?: bigint) => {
    const client = createPublicClient({ transport: http(url, { batch: true }), ccipRead: false });
    const escrow = await readEscrow(client, { id, deployment, blockNumber });
    return { escrow, steps: await stepsOf(client, { id, escrow, deployment }) };
  };
  const reader = await agent();
  for (let attempt = 1; ; attempt++) {
    const onChain = await read(rpcUrl);
    const { escrow, steps } = onChain;
    const rows = compare(id, escrow, rebuild(escrow), await ask(reader, id));
    for (const url of otherNodes) {
      const same = await read(url, escrow.blockNumber).then(digestOf, String);
      const expected = digestOf(onChain);
      rows.push({ field: `node ${new URL(url).host}`, chain: expected, api: same, equal: same === expected });
    }
    if (attempt === TRIES || rows.every(({ equal }) => equal)) return { rows, steps };
    out.progress("differences found: reading both sides again");
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** One hash of all that a node reports about an escrow. */
function digestOf({ escrow, steps }: { escrow: EscrowOnChain; steps: Step[] }): string {
  const plainOf = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  return keccak256(stringToHex(JSON.stringify({ ...escrow, paid: [...escrow.paid], steps }, plainOf)));
}

async function ask(agent: Agent, id: string): Promise<ApiResponses> {
  const [contract, terms, settlement, checkpoints] = await Promise.all([
    agent.get(id),
    agent.terms(id),
    agent.settlement(id),
    agent.checkpoints(id),
  ]);
  const checkpointsRoot = rootOfLeaves(checkpoints.map(checkpointLeaf));
  const [delivery, supplementaryMaterials] = await Promise.all([
    ifAllowed(() => agent.committed(id, "delivery")),
    ifAllowed(() => agent.committed(id, "supplementaryMaterials")),
  ]);
  const isWithheld = contract.client === agent.address && contract.delivery !== null && delivery === null;
  const isReader = contract.client === agent.address || contract.worker === agent.address;
  const opens = isReader && delivery !== null ? await canOpen(agent, id) : null;
  return {
    contract,
    terms,
    settlement,
    checkpointsRoot,
    delivery,
    supplementaryMaterials,
    isWithheld,
    opens,
  };
}

/** A delivery can be sealed, and not open with the caller's key: the jury then decides on it. */
function canOpen(agent: Agent, id: string): Promise<boolean> {
  return agent.reveal(id, "delivery").then(
    (reference) => reference !== null,
    () => false,
  );
}

function textOf(rows: readonly Comparison[], steps: readonly Step[]): string {
  const cell = (value: unknown): string => {
    const text = plain(typeof value === "string" ? value : JSON.stringify(value)).replaceAll("\n", " ");
    return text.length > 44 ? `${text.slice(0, 41)}...` : text;
  };
  const compared = table(
    ["", "field", "chain", "api"],
    rows.map(({ field, chain, api, equal }) => [equal ? "=" : "DIFFERS", field, cell(chain), cell(api)]),
  );
  const allowed = table(
    ["step", "party", "allowed by"],
    steps.map(({ step, party, allowedBy }) => [step, party, allowedBy]),
  );
  return `${compared}\n\n${allowed}`;
}

interface Comparison {
  field: string;
  chain: unknown;
  api: unknown;
  equal: boolean;
}

interface ApiResponses {
  contract: Contract;
  terms: Terms;
  settlement: Settlement;
  /** Over the checkpoints that the service shows. */
  checkpointsRoot: string;
  /** The text to which the hash on chain commits; null if there is none or the caller may not read it. */
  delivery: string | null;
  supplementaryMaterials: string | null;
  /** Whether the caller is the Client of a delivered contract, and yet cannot read the delivery. */
  isWithheld: boolean;
  /** Whether the delivery opens with the caller's key; null if the caller is not meant to read it. */
  opens: boolean | null;
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
  if (rebuilt.checkpointsRoot !== null)
    row("checkpoints, root", rebuilt.checkpointsRoot, api.checkpointsRoot);
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
