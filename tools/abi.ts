/** Writes packages/protocol/src/abi.ts from the compiled contracts; with --check only compares, and fails on drift. */
import { readFileSync, writeFileSync } from "node:fs";

const CONTRACTS = {
  factoryAbi: "WorkingContractFactory",
  escrowAbi: "WorkingContractEscrow",
  relayAbi: "Relay",
  delegationAbi: "AgentDelegation",
  registryAbi: "BackupAgentRegistry",
  protocolTokenAbi: "ProtocolToken",
  testUsdAbi: "TestUSD",
};
const TARGET = "packages/protocol/src/abi.ts";

const source = Object.entries(CONTRACTS)
  .map(([name, contract]) => {
    const artifact = JSON.parse(readFileSync(`out/${contract}.sol/${contract}.json`, "utf8"));
    return `export const ${name} = ${JSON.stringify(artifact.abi, null, 2)} as const;\n`;
  })
  .join("\n");
const text = `// Generated from contracts/ by \`npm run abi\`.\n\n${source}`;

if (process.argv.includes("--check")) {
  if (readFileSync(TARGET, "utf8") !== text) {
    console.error(
      `${TARGET} differs from the compiled contracts: run \`npm run abi\` and commit the result.`,
    );
    process.exit(1);
  }
} else {
  writeFileSync(TARGET, text);
}
