/** docs/deployment.md as it stands: its commands, with values in the place of its dots, against a chain and a database. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "@working-contracts/client/connect";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import { parseUnits, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NETWORKS } from "../../src/chain/deployment.js";
import { ROOT } from "../../src/root.js";
import { placeStablecoin } from "../../tools/local/chain.js";
import { localAccount, localSignerKeys } from "../../tools/local/network.js";
import { until } from "../../tools/local/processes.js";
import { newDatabase, type TestDatabase } from "../support/database.js";
import { type DebianPostgres, postgresTools, startDebianPostgres } from "../support/debian-postgres.js";
import { startProcess } from "../support/run-process.js";
import { startTestChain } from "../support/test-chain.js";
import { codeBlocks } from "../support/text-blocks.js";

const { chainId, asset } = NETWORKS["base-sepolia"];
const page = readFileSync(join(ROOT, "docs/deployment.md"), "utf8");
const section = (number: number) => page.split(/^## /m).find((text) => text.startsWith(`${number}. `)) ?? "";
const [deploy = "", start = ""] = codeBlocks(section(1), "sh");

/** An operator's own server, if this machine can have one. */
let postgres: DebianPostgres | undefined;
let database: TestDatabase;
let node: Awaited<ReturnType<typeof startTestChain>>;
/** Values that the page leaves to its reader, by variable. */
let values: Record<string, string>;
type Run = ReturnType<typeof startProcess>;
const running: Run[] = [];

beforeAll(async () => {
  node = await startTestChain({ chainId });
  await placeStablecoin({ rpcUrl: node.rpcUrl, chainId }, { ...asset, symbol: "USDC" });
  const { address: owner } = localAccount(0);
  const bin = postgresTools();
  if (bin !== undefined) postgres = await startDebianPostgres(bin, ["contracts"]);
  database = await newDatabase();
  values = {
    RPC_URL: node.rpcUrl,
    DEPLOYER_PRIVATE_KEY: toHex(localAccount(6).getHdKey().privateKey as Uint8Array),
    SIGNERS: [1, 2].map((index) => localAccount(index).address).join(),
    OWNER: owner,
    TREASURY: owner,
    DATABASE_URL: postgres?.urlOf("contracts") ?? database.url,
    RELAYER_PRIVATE_KEYS: localSignerKeys().join(),
    MASTER_KEY: "22".repeat(32),
    // On one machine, as the page says.
    DOMAIN: "localhost",
    // Not in the repository's own folder.
    DEPLOYMENT: join(node.dir, "84532.json"),
  };
});
afterAll(async () => {
  for (const run of running) signal(run, "SIGKILL");
  postgres?.stop();
  await database?.drop();
  await node?.stop();
});

/** The commands with the values, as the shell runs them, and nothing else of this process's environment. */
function run(commands: string, env: Record<string, string> = {}): Run {
  const filledIn = commands.replaceAll(/\b([A-Z_]+)=\S+/g, (text, name) =>
    values[name] === undefined ? text : `${name}='${values[name]}'`,
  );
  // A separate group: npm does not pass signals on.
  const started = startProcess("bash", ["-euc", filledIn], { env, detached: true });
  running.push(started);
  return started;
}

/** Sends it to the command and all that it started, as Ctrl-C and supervisors do. */
function signal({ child }: Run, name: NodeJS.Signals): void {
  try {
    process.kill(-(child.pid as number), name);
  } catch {
    // They have ended.
  }
}

/** Posts a contract for half a dollar, and has it paid out. */
async function payOut(baseUrl: string): Promise<void> {
  const newAgent = async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const mint = { address: asset.address, abi: testUsdAbi, functionName: "mint" } as const;
    await node.mined(
      await node.wallet(5).writeContract({ ...mint, args: [account.address, parseUnits("1", 6)] }),
    );
    return connect({ baseUrl, account, spendingLimit: { perCall: "1" } });
  };
  // One after the other: both get their money from one account.
  const client = await newAgent();
  const worker = await newAgent();
  const { id } = await client.create({
    title: "Say hello",
    taskDescription: "Say hello on Base Sepolia.",
    acceptanceCriteria: ["It says hello"],
    budgetOrPrice: "0.5",
    ...(await client.deadlines({ match: "1h", withdrawal: "2h", delivery: "3h", review: "4h" })),
  });
  await worker.accept(id);
  await worker.deliver(id, "hello");
  await client.approve(id);
  await client.waitForPayout(id, { timeoutMs: 60_000, intervalMs: 250 });
}

test("its first block deploys the contracts", { timeout: 300_000 }, async () => {
  const [install, ...rest] = deploy.split("\n");
  // The tests run from what it installed.
  expect(install).toBe("npm ci");
  const { exited, output } = run(rest.join("\n"), { DEPLOYMENT: values.DEPLOYMENT as string });
  expect(await exited, output()).toBe(0);
  expect(output()).toContain(`Deployed and verified on chain ${chainId}`);
});

test("its second block starts a service on that chain and database, which pays out", {
  timeout: 300_000,
}, async () => {
  const service = run(`exec env ${start.trim()}`, { DATA_DIR: join(node.dir, "data"), PORT: "0" });
  const { child, output } = service;
  const isReady = async () => child.exitCode !== null || output().includes("is ready after");
  await until("npm start is ready", isReady, { timeoutMs: 240_000 });
  expect(child.exitCode, output()).toBe(null);
  const { baseUrl } = JSON.parse(readFileSync(join(node.dir, "data/network.json"), "utf8"));
  await payOut(baseUrl);
  signal(service, "SIGTERM");
  await service.exited;
});
