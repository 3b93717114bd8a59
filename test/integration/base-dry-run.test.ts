/**
 * Base without Base: a new chain with Base's id, USDC's identity at USDC's address, the protocol deployed by the
 * script, and the image's files run as the separate processes of deploy/ with the settings of deploy/base.env.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { requireKnownCode } from "@working-contracts/client/chain-check";
import { connect } from "@working-contracts/client/connect";
import { factoryAbi, protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import { decodePaymentRequiredHeader } from "@x402/core/http";
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { parseEther, parseUnits, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NETWORKS, networkFaults, readDeployment } from "../../src/chain/deployment.js";
import { ROOT } from "../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is compiled.
import { ensureBuilt } from "../../tools/build.mjs";
import { placeStablecoin } from "../../tools/local/chain.js";
import { localAccount, localSignerKeys } from "../../tools/local/network.js";
import { freePort } from "../../tools/local/ports.js";
import { until } from "../../tools/local/processes.js";
import { newDatabase, type TestDatabase } from "../support/database.js";
import { type Image, unpackImage } from "../support/image.js";
import { runProgram } from "../support/programs.js";
import { startProcess } from "../support/run-process.js";
import { startTestChain } from "../support/test-chain.js";

const { chainId, asset } = NETWORKS.base;
const deployer = localAccount(6);
let node: Awaited<ReturnType<typeof startTestChain>>;
let deploymentPath: string;

beforeAll(async () => {
  node = await startTestChain({ chainId });
  deploymentPath = join(node.dir, "8453.json");
});
afterAll(() => node?.stop());

const place = (identity: { name: string; version: string }) =>
  placeStablecoin({ rpcUrl: node.rpcUrl, chainId }, { address: asset.address, symbol: "USDC", ...identity });

/** `npm run deploy`. */
const deploy = (env: Record<string, string>) =>
  runProgram("tools/deploy.ts", [], {
    NETWORK: "base",
    RPC_URL: node.rpcUrl,
    DEPLOYER_PRIVATE_KEY: toHex(deployer.getHdKey().privateKey as Uint8Array),
    SIGNERS: [1, 2].map((index) => localAccount(index).address).join(),
    DOMAIN: "contracts.example",
    OWNER: deployer.address,
    TREASURY: deployer.address,
    DEPLOYMENT: deploymentPath,
    ...env,
  });

describe("npm run deploy", { timeout: 300_000 }, () => {
  it("sends nothing to a chain whose stablecoin is not the issuer's", async () => {
    const { publicClient } = node;
    expect(await networkFaults(publicClient, "base-sepolia")).toEqual([
      "base-sepolia is chain 84532, the node serves chain 8453.",
    ]);
    expect(await networkFaults(publicClient, "base")).toEqual([
      `There is no contract at ${asset.address}, the stablecoin's address on base.`,
    ]);

    // The bridged coin's name and another version. A signature for one token is worthless for the other.
    await place({ name: "USD Base Coin", version: "1" });
    const { code, stderr } = await deploy({});
    expect(code).toBe(1);
    const lines = stderr.trim().split("\n");
    expect(lines.slice(0, 2)).toEqual([
      `name() of ${asset.address} is USD Base Coin, not USD Coin.`,
      expect.stringMatching(/^DOMAIN_SEPARATOR\(\) of 0x\w{40} is 0x\w{64}, not 0x\w{64}\.$/),
    ]);
    expect(lines).toHaveLength(2);
    expect(existsSync(deploymentPath)).toBe(false);
    expect(await publicClient.getTransactionCount({ address: deployer.address })).toBe(0);
  });

  it("accepts one stablecoin, not two", async () => {
    const { code, stderr } = await deploy({ ASSET: asset.address });
    expect(code).toBe(1);
    expect(stderr).toContain("NETWORK: give either NETWORK, which names its own stablecoin, or ASSET\n");
  });

  it("leaves neither the contracts nor the fees to the deployer's key unless told", async () => {
    const { code, stderr } = await deploy({ OWNER: "", TREASURY: "" });
    expect(code).toBe(1);
    expect(stderr).toContain("OWNER: is required on base\nTREASURY: is required on base\n");
  });

  it("deploys over the issuer's stablecoin, once", async () => {
    await place(asset);
    expect(await networkFaults(node.publicClient, "base")).toEqual([]);
    const poor = generatePrivateKey();
    const without = await deploy({ DEPLOYER_PRIVATE_KEY: poor });
    expect(without.stderr).toBe(
      `The deployer ${privateKeyToAccount(poor).address} has nothing to pay gas with on chain 8453.\n`,
    );

    const { code, stdout, stderr } = await deploy({});
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toContain(`Deployed and verified on chain 8453: ${deploymentPath}`);
    expect(stdout).toContain("No Backup Agent can vote yet");
    expect(readDeployment(deploymentPath)).toMatchObject({
      chainId,
      networkName: "base",
      asset: { ...asset, address: asset.address.toLowerCase(), symbol: "USDC" },
    });
    const { factory, protocolToken } = readDeployment(deploymentPath);
    const dailyCap = { address: protocolToken, abi: protocolTokenAbi, functionName: "dailyCap" } as const;
    expect(await node.publicClient.readContract(dailyCap)).toBe(parseEther("10000"));
    const read = { address: factory, abi: factoryAbi, functionName: "parameters" } as const;
    expect(await node.publicClient.readContract(read)).toMatchObject({ baRecruitCount: 5, payoutHold: 0 });
    expect((await deploy({})).stderr).toContain("Use --again to deploy it again.");
  });

  it("deploys what a payer's node recognizes: other code, or a token with grants at once, is refused", async () => {
    const deployment = readDeployment(deploymentPath);
    await requireKnownCode(node.rpcUrl, deployment);
    const atOnce = await node.deployProtocol({ asset: asset.address, grantDelay: 0 });
    await expect(requireKnownCode(node.rpcUrl, atOnce)).rejects.toMatchObject({ field: "grantDelay" });

    // Each is checked before the one that was changed before it.
    for (const field of ["protocolToken", "registry", "relay", "implementation", "factory"] as const) {
      const address = atOnce[field];
      const code = String(await node.publicClient.getCode({ address }));
      await node.testClient.setCode({ address, bytecode: `${code.slice(0, -2)}00` as `0x${string}` });
      await expect(requireKnownCode(node.rpcUrl, atOnce)).rejects.toMatchObject({ field });
    }
  });
});

describe("the processes of deploy/, on their image's files", () => {
  type Run = ReturnType<typeof run>;
  const running: Run[] = [];
  let image: Image;
  let database: TestDatabase;
  let url: string;
  let untouched: string[];
  let env: Record<string, string>;

  beforeAll(async () => {
    await ensureBuilt();
    image = unpackImage();
    untouched = image.files();
    database = await newDatabase();
    const [api, relayer, worker, indexer] = await Promise.all([
      freePort(),
      freePort(),
      freePort(),
      freePort(),
    ]);
    url = `http://127.0.0.1:${api}`;
    env = {
      ...settingsOf("deploy/base.env"),
      DATABASE_URL: database.url,
      RPC_URL: node.rpcUrl,
      DEPLOYMENT: deploymentPath,
      MASTER_KEY: "22".repeat(32),
      BASE_URL: url,
      HOST: "127.0.0.1",
      INDEXER_HOST: "127.0.0.1",
      LOG_LEVEL: "warn",
    };
    // In parallel with the others, which also migrate: whichever is first, the tables are created once.
    const migration = run("migrate", "dist/service/migrate.mjs", env);
    const keys = localSignerKeys().join();
    running.push(
      run("indexer", "dist/service/indexer.mjs", { ...env, MASTER_KEY: "", INDEXER_PORT: String(indexer) }),
      run("api", "dist/service/serve.mjs", { ...env, ROLES: "api", PORT: String(api) }),
      run("worker", "dist/service/serve.mjs", { ...env, ROLES: "worker", PORT: String(worker) }),
      run("relayer", "dist/service/serve.mjs", {
        ...env,
        ROLES: "relayer",
        RELAYER_PRIVATE_KEYS: keys,
        PORT: String(relayer),
      }),
    );
    const ready = [api, relayer, worker].map((port) =>
      until("every process is ready", async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok, {
        timeoutMs: 280_000,
      }),
    );
    await Promise.race([Promise.all(ready), ...running.map(diedEarly)]);
    expect(await migration.exited, migration.output()).toBe(0);
    expect(migration.output()).toContain("The tables are up to date.");
  });
  afterAll(async () => {
    for (const { child } of running) child.kill("SIGKILL");
    await database?.drop();
    image?.remove();
  });

  /** Runs it as the image does, without this process's environment. */
  function run(name: string, script: string, env: Record<string, string>) {
    const [command = "", ...args] = image.command.with(-1, script);
    return { name, ...startProcess(command, args, { cwd: image.dir, env }) };
  }

  const diedEarly = async ({ name, exited, output }: Run): Promise<never> => {
    throw new Error(`${name} ended with ${await exited}: ${output()}`);
  };

  it("hand the indexer's role to another process that waits for it", { timeout: 300_000 }, async () => {
    const port = await freePort();
    const [first] = running;
    const next = run("standby", "dist/service/indexer.mjs", { ...env, INDEXER_PORT: String(port) });
    running.push(next);
    const statusOf = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
    const isReady = async () => (await statusOf("/ready")) === 200;
    const waits = () =>
      next.output().includes("Another indexer is writing this index. Standing by to take over.");
    await Promise.race([
      until("the standby waits", async () => waits(), { timeoutMs: 120_000 }),
      diedEarly(next),
    ]);
    // An orchestrator would kill a process that does not respond.
    await expect.poll(() => statusOf("/health")).toBe(200);
    expect(await statusOf("/ready")).toBe(503);

    first?.child.kill("SIGTERM");

    await Promise.race([
      until("the standby has taken over", isReady, { timeoutMs: 110_000 }),
      diedEarly(next),
    ]);
    expect(first?.child.exitCode).toBe(0);
  });

  it("accept a payment in USDC from a stock x402 client with its own spending controls, and pay it out", async () => {
    const payer = privateKeyToAccount(generatePrivateKey());
    const payee = privateKeyToAccount(generatePrivateKey());
    await mint(payer.address, "1");
    await mint(payee.address, "1");
    const client = await connect({ baseUrl: url, account: payer, domain: "contracts.example" });
    const worker = await connect({
      baseUrl: url,
      account: payee,
      domain: "contracts.example",
      spendingLimit: { perCall: "1" },
    });

    const body = JSON.stringify({
      title: "Say hello",
      taskDescription: "Say hello on Base.",
      acceptanceCriteria: ["It says hello"],
      contractType: "fixed",
      awardMethod: "open_tender",
      budgetOrPrice: "0.5",
      ...(await client.deadlines({ match: "1h", withdrawal: "2h", delivery: "3h", review: "4h" })),
    });
    const request = {
      method: "POST",
      headers: { authorization: `Bearer ${client.apiKey}`, "content-type": "application/json" },
      body,
    };
    const quoted = await fetch(`${url}/v1/contracts`, request);
    expect(quoted.status).toBe(402);
    const { accepts } = decodePaymentRequiredHeader(quoted.headers.get("payment-required") as string);
    expect(accepts[0]).toMatchObject({
      scheme: "exact",
      network: "eip155:8453",
      amount: "500000",
      extra: { name: "USD Coin", version: "2" },
    });
    expect(accepts[0]?.asset.toLowerCase()).toBe(asset.address.toLowerCase());

    const stock = new x402Client().register("eip155:8453", new ExactEvmScheme(payer));
    const created = await wrapFetchWithPayment(fetch, stock)(`${url}/v1/contracts`, request);
    expect(created.status).toBe(200);
    const { id } = ((await created.json()) as { data: { id: string } }).data;
    await worker.accept(id);
    await worker.deliver(id, "hello");
    await client.approve(id);
    await client.waitFor(id, "settled-all-met", { timeoutMs: 60_000, intervalMs: 250 });
    expect(await held(payer.address)).toBe(500_000n);
    expect(await held(payee.address)).toBe(1_475_000n);
  });

  it("end on SIGTERM within their grace period", async () => {
    const alive = running.filter(({ child }) => child.exitCode === null);
    const ends = alive.map(async ({ name, child, exited }) => {
      child.kill("SIGTERM");
      return `${name} ${await exited}`;
    });
    const names = ["api", "worker", "relayer", "standby"];
    expect(await Promise.all(ends)).toEqual(names.map((name) => `${name} 0`));
    expect(image.files(), "nothing was written into the image").toEqual(untouched);
  }, 45_000);
});

function settingsOf(path: string): Record<string, string> {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  return Object.fromEntries(lines.filter((line) => /^\w+=/.test(line)).map((line) => line.split("=")));
}

async function mint(to: `0x${string}`, amount: string): Promise<void> {
  const hash = await node.wallet(5).writeContract({
    address: asset.address,
    abi: testUsdAbi,
    functionName: "mint",
    args: [to, parseUnits(amount, 6)],
  });
  await node.mined(hash);
}

function held(address: `0x${string}`): Promise<bigint> {
  return node.publicClient.readContract({
    address: asset.address,
    abi: testUsdAbi,
    functionName: "balanceOf",
    args: [address],
  });
}
