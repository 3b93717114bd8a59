/**
 * Writes packages/protocol/src/abi.ts from the compiled contracts, as human-readable signatures. With --check it only
 * compares: the committed text with the generated one, and what viem parses from it with what was compiled.
 */
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { parseAbi } from "viem";
import { writeGenerated } from "./generated.js";

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

const CONTRACTS = {
  factoryAbi: "WorkingContractFactory",
  escrowAbi: "WorkingContractEscrow",
  relayAbi: "Relay",
  delegationAbi: "AgentDelegation",
  registryAbi: "BackupAgentRegistry",
  protocolTokenAbi: "ProtocolToken",
  testUsdAbi: "TestUSD",
};

const sections = Object.entries(CONTRACTS).map(([name, contract]) => {
  const compiled = JSON.parse(readFileSync(`out/${contract}.sol/${contract}.json`, "utf8")).abi as Item[];
  assertComplete(contract, compiled, signaturesOf(compiled));
  const whole = declarationOf(name, compiled);
  if (name !== "escrowAbi") return whole;
  // A separate list: bundles of the client, which reads events alone, can drop the whole.
  const events = compiled.filter(({ type }) => type === "event");
  return `${whole}\n${declarationOf("escrowEventsAbi", events)}`;
});
const text = `// Generated from contracts/ by \`npm run abi\`.\nimport { parseAbi } from "viem";\n\n${sections.join("\n")}`;

const origin = { from: "the compiled contracts", command: "npm run abi" };
writeGenerated("packages/protocol/src/abi.ts", text, origin);

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
function assertComplete(contract: string, compiled: Item[], signatures: string[]): void {
  const parsed: unknown = parseAbi(signatures);
  if (!isDeepStrictEqual(plain(parsed), plain(compiled))) {
    throw new Error(`The signatures of ${contract} do not parse to its compiled ABI.`);
  }
}

/** The part that both ABIs must share: parsed ones leave out internal types, empty names and flags that are false. */
function plain(abi: unknown): unknown {
  const text = JSON.stringify(abi, (key, value) =>
    key === "internalType" || value === "" || value === false ? undefined : value,
  );
  return JSON.parse(text);
}
