/** Writes what follows from the compiled contracts; with --check it only compares, also the ABI that viem parses. */
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { type Hex, keccak256, parseAbi } from "viem";
import { writeGenerated } from "./generated.js";
import { compiledBytecode } from "./local/foundry.js";

interface Parameter {
  name: string;
  type: string;
  internalType?: string;
  indexed?: boolean;
  components?: Parameter[];
}
interface Item {
  type: "constructor" | "function" | "event" | "error";
  name?: string;
  inputs: Parameter[];
  outputs?: Parameter[];
  stateMutability?: string;
  anonymous?: boolean;
}
interface Artifact {
  abi: Item[];
  deployedBytecode: { object: Hex; immutableReferences: Record<string, { start: number; length: number }[]> };
}

const CONTRACTS = {
  factoryAbi: "WorkingContractFactory",
  escrowAbi: "WorkingContractEscrow",
  relayAbi: "Relay",
  delegationAbi: "AgentDelegation",
  registryAbi: "BackupAgentRegistry",
  protocolTokenAbi: "ProtocolToken",
  testUsdAbi: "TestUSD",
};
/** Immutables of the contracts that decide about money and votes, in order of declaration; then those of EIP712. */
const IMMUTABLES = {
  factory: ["WorkingContractFactory", "implementation"],
  implementation: ["WorkingContractEscrow", "factory", "asset", "relay", "registry", "protocolToken"],
  relay: ["Relay", "factory"],
  registry: ["BackupAgentRegistry", "protocolToken", "factory", "relay"],
  protocolToken: ["ProtocolToken", "factory", "registry", "grantDelay", ...Array<string>(7).fill("eip712")],
} as const;

/** Functions that agents call or read through the client. It has the events of what they read, and their errors as well. */
const CLIENT_CALLS = {
  WorkingContractFactory: ["create"],
  WorkingContractEscrow: [
    ...["accept", "approve", "ballotOf", "cancel", "cancelSignatures", "claim", "claimDeferred", "decline"],
    ...["deliver", "dispute", "draw", "jury", "openVote", "settle", "status", "tally", "vote", "withdraw"],
  ],
  AgentDelegation: ["register", "revoke"],
  BackupAgentRegistry: ["poolAt", "poolSize", "requestUnstake", "stake", "withdrawStake"],
};

const sections = Object.entries(CONTRACTS).map(([name, contract]) => {
  const { abi: compiled } = readArtifact(contract);
  requireComplete(contract, compiled, signaturesOf(compiled));
  return declarationOf(name, compiled);
});
const HEAD = `// Generated from contracts/ by \`npm run abi\`.\nimport { parseAbi } from "viem";\n\n`;

const origin = { from: "the compiled contracts", command: "npm run abi" };
writeGenerated("packages/protocol/src/abi.ts", HEAD + sections.join("\n"), origin);
writeGenerated("packages/client/src/abi.ts", clientText(signaturesOf(clientItems())), origin);

const codes = Object.entries(IMMUTABLES).map(([name, [contract, ...immutables]]) => {
  const { object, immutableReferences } = readArtifact(contract).deployedBytecode;
  const references = Object.values(immutableReferences);
  if (references.length !== immutables.length) throw new Error(`${contract} has other immutables.`);
  const places = [...new Set(immutables)].map((immutable) => {
    const found = references.filter((_, i) => immutables[i] === immutable).flat();
    return `${immutable}: [${found.map(({ start }) => start).join(", ")}]`;
  });
  return `  ${name}: {\n    hash: "${keccak256(object)}",\n    ${places.join(",\n    ")},\n  },\n`;
});
/** Of the contracts to which the client sends transactions. The ABI's own type would add 100 kB of declarations. */
const errors = Object.keys(CLIENT_CALLS).flatMap((contract) =>
  readArtifact(contract).abi.flatMap((item) => (isAgentsError(item) ? [item.name as string] : [])),
);
const names = [...new Set(errors)].sort().map((name) => `\n  | "${name}"`);
const code = `// Generated from contracts/ by \`npm run abi\`: the deployed code's hash with zeros for immutables, and their places in bytes.\nexport const DEPLOYED_CODE = {\n${codes.join("")}} as const;\n\n/** Errors that the contracts declare. */\nexport type DeclaredError =${names.join("")};\n`;
writeGenerated("packages/client/src/deployed-code.ts", code, origin);
writeGenerated("src/chain/bytecode.json", compiledBytecode(), origin);

/** One list, because a call of one contract can fail with another's error. Throws if a function has another name. */
function clientItems(): Item[] {
  const found = Object.entries(CLIENT_CALLS).flatMap(([contract, calls]) => {
    const items = readArtifact(contract).abi;
    const missing = calls.find(
      (call) => !items.some(({ type, name }) => type === "function" && name === call),
    );
    if (missing !== undefined) throw new Error(`${contract} has no function ${missing}.`);
    return items
      .filter((item) =>
        item.type === "event"
          ? contract !== "WorkingContractFactory"
          : isAgentsError(item) || calls.includes(item.name ?? ""),
      )
      .map((item) =>
        item.type === "event"
          ? item
          : { ...item, inputs: item.inputs.map((input) => ({ ...input, name: "" })) },
      );
  });
  return [...new Map(found.map((item) => [signatureOf(item), item])).values()];
}

/** Libraries declare others, which no call of an agent can cause. */
function isAgentsError({ type, name = "" }: Item): boolean {
  return type === "error" && !/^(Checkpoint|Create2|Ownable|Strings)/.test(name);
}

/** Few bytes, because agents load it: each kind's word is written once. */
function clientText(signatures: string[]): string {
  const kinds = ["struct", "function", "event", "error"].map((kind) => {
    const own = signatures.filter((signature) => signature.startsWith(`${kind} `));
    const items = own.map((signature) => signature.slice(kind.length + 1).replaceAll(/([,;{]) /g, "$1"));
    return `  ${kind}: \`${items.join("\n")}\`,\n`;
  });
  return `// Generated from contracts/ by \`npm run abi\`.
import type { delegationAbi, escrowAbi, registryAbi } from "@working-contracts/protocol/abi";
import { parseAbi } from "viem";

const KINDS = {
${kinds.join("")}};
export const clientAbi = parseAbi(
  Object.entries(KINDS).flatMap(([kind, items]) => items.split("\\n").map((item) => \`\${kind} \${item}\`)),
) as unknown as [...typeof escrowAbi, ...typeof delegationAbi, ...typeof registryAbi];
`;
}

function readArtifact(contract: string): Artifact {
  return JSON.parse(readFileSync(`out/${contract}.sol/${contract}.json`, "utf8"));
}

function signaturesOf(items: Item[]): string[] {
  return [...structsOf(items), ...items.map(signatureOf)];
}

function declarationOf(name: string, items: Item[]): string {
  const lines = signaturesOf(items).map((signature) => `  ${JSON.stringify(signature)},\n`);
  return `export const ${name} = /* @__PURE__ */ parseAbi([\n${lines.join("")}]);\n`;
}

function signatureOf({ type, name, inputs, outputs = [], stateMutability }: Item): string {
  const words = [`${name === undefined ? type : `${type} ${name}`}(${formatParameters(inputs)})`];
  if (stateMutability !== undefined && stateMutability !== "nonpayable") words.push(stateMutability);
  if (outputs.length > 0) words.push(`returns (${formatParameters(outputs)})`);
  return words.join(" ");
}

function formatParameters(parameters: Parameter[]): string {
  return parameters
    .map((parameter) =>
      [typeOf(parameter), parameter.indexed && "indexed", parameter.name].filter(Boolean).join(" "),
    )
    .join(", ");
}

/** `tuple[]` of `struct Settlement.Payout[]` is `Payout[]`. */
function typeOf({ type, internalType }: Parameter): string {
  if (!type.startsWith("tuple")) return type;
  const name = internalType?.match(/^struct (?:\w+\.)*(\w+)/)?.[1];
  if (name === undefined) throw new Error(`${internalType} is not a struct`);
  return type.replace("tuple", name);
}

/** The structs that a contract's ABI mentions, as declarations; two different ones of one name fail the comparison. */
function structsOf(compiled: Item[]): string[] {
  const found = new Map<string, string>();
  const collect = (parameters: Parameter[]): void => {
    for (const parameter of parameters) {
      if (parameter.components === undefined) continue;
      collect(parameter.components);
      const members = parameter.components.map((member) => `${formatParameters([member])};`).join(" ");
      found.set(typeOf(parameter).replace(/\[.*/, ""), members);
    }
  };
  for (const { inputs, outputs = [] } of compiled) collect([...inputs, ...outputs]);
  return [...found].sort().map(([name, members]) => `struct ${name} { ${members} }`);
}

/** Names, indexed flags and members of structs survive, so that calls, events and errors decode as compiled. */
function requireComplete(contract: string, compiled: Item[], signatures: string[]): void {
  if (!isDeepStrictEqual(plain(parseAbi(signatures)), plain(compiled)))
    throw new Error(`The signatures of ${contract} do not parse to its compiled ABI.`);
}

/** The part that both ABIs must share: parsed ones leave out internal types, empty names and flags that are false. */
function plain(abi: unknown): unknown {
  const text = JSON.stringify(abi, (key, value) =>
    key === "internalType" || value === "" || value === false ? undefined : value,
  );
  return JSON.parse(text);
}
