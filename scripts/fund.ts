/** Gives an address test dollars, and protocol tokens where asked, on the running local chain. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parseEther, parseUnits } from "viem";
import { protocolTokenAbi, testUsdAbi } from "../src/chain/abi.js";
import { createChainClients, createSigningClient } from "../src/chain/clients.js";
import { readDeployment } from "../src/chain/deployment.js";
import { localAccount } from "../src/local/network.js";
import { ROOT } from "../src/local/root.js";

const { values, positionals } = parseArgs({
  options: { tokens: { type: "string" } },
  allowPositionals: true,
});
const [address, amount] = positionals;
const isAmount = (text: string | undefined): text is string => /^\d+(\.\d+)?$/.test(text ?? "");
if (!/^0x[0-9a-fA-F]{40}$/.test(address ?? "") || !isAmount(amount)) {
  fail("Usage: npm run fund -- <address> <dollars> [--tokens <protocol tokens>]");
}
const path = join(process.env.DATA_DIR || join(ROOT, ".local"), "network.json");
if (!existsSync(path)) fail("No running network found: run npm start in another terminal first.");

const { rpcUrl, deploymentPath } = JSON.parse(readFileSync(path, "utf8")) as {
  rpcUrl: string;
  deploymentPath: string;
};
const deployment = readDeployment(deploymentPath);
const { publicClient, chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
const owner = createSigningClient({ rpcUrl, chain, account: localAccount(0) });
const to = address as `0x${string}`;
const hashes = [
  await owner.writeContract({
    address: deployment.asset.address,
    abi: testUsdAbi,
    functionName: "mint",
    args: [to, parseUnits(amount, deployment.asset.decimals)],
  }),
];
if (isAmount(values.tokens)) {
  const args = [to, parseEther(values.tokens)] as const;
  hashes.push(
    await owner.writeContract({
      address: deployment.protocolToken,
      abi: protocolTokenAbi,
      functionName: "grant",
      args,
    }),
  );
}
for (const hash of hashes) {
  const { status } = await publicClient.waitForTransactionReceipt({ hash });
  if (status !== "success") fail(`The transaction ${hash} reverted.`);
}
console.log(
  `${to} has received ${amount} ${deployment.asset.symbol}${values.tokens ? ` and ${values.tokens} WCT` : ""}.`,
);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
