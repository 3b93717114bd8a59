/** The whole service ends for good in the middle of a dispute. On chain the parties still get every unit out. */
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { escrowAbi, registryAbi } from "@working-contracts/protocol/abi";
import { type Outcome, packOutcomes } from "@working-contracts/protocol/outcomes";
import { type Address, parseEther, parseUnits } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Guardian, startGuardian } from "../../src/indexer/supervision/processes.js";
import { localAccount, type Network, startNetwork } from "../../tools/local/network.js";
import type { Agent } from "../support/agent.js";
import { BLOCK_SECONDS } from "../support/blocks.js";
import { mined, openOnChain, tokensOf, walletOf } from "../support/chain.js";
import { created, DAY, delivered, disputed, newJuror, vote } from "../support/contracts.js";
import { type ServiceProcess, startServiceProcess } from "../support/programs.js";
import { serviceEnvironment } from "../support/stack.js";
import { openWorld, type World } from "../support/world.js";

const TREASURY = localAccount(9).address;

let dir: string;
let guardian: Guardian;
let network: Network;
let service: ServiceProcess;
let world: World;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "service-gone-"));
  // If the tests run as root, Postgres runs as another user.
  chmodSync(dir, 0o755);
  guardian = startGuardian();
  network = await startNetwork({
    guardian,
    dir,
    persistent: false,
    blockTime: BLOCK_SECONDS,
    instant: true,
    postgresPassword: "test",
    report: () => {},
  });
  service = await startServiceProcess({ ...serviceEnvironment(network, 0), LOG_LEVEL: "silent" });
  guardian.watch(service.child.pid as number);
  const { databaseUrl, rpcUrl, deploymentPath } = network;
  const indexerUrl = network.parts.indexer.url;
  world = await openWorld({
    url: service.url,
    databaseUrl,
    rpcUrl,
    indexerUrl,
    deploymentPath,
    logs: join(dir, "logs"),
  });
});
afterAll(async () => {
  await service?.stop("SIGKILL");
  await world?.close();
  await network?.stop();
  await guardian?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** Kills API, relayer, keeper, indexer and database. Only the chain is left. */
async function killEverythingButTheChain(): Promise<void> {
  await service.stop("SIGKILL");
  await network.parts.indexer.stop();
  await network.parts.postgres?.stop();
}

/** The agent's own transaction to an escrow. */
async function act(
  agent: Agent,
  id: string,
  call:
    | { functionName: "cancel" | "tally" | "settle"; args?: [] }
    | { functionName: "claim"; args: [Address] },
): Promise<void> {
  const wallet = await walletOf(world, agent);
  await mined(world, await wallet.writeContract({ address: id as Address, abi: escrowAbi, ...call }));
}

async function withdrawStake(juror: Agent): Promise<void> {
  const wallet = await walletOf(world, juror);
  const registry = { address: world.deployment.registry, abi: registryAbi, args: [juror.address] } as const;
  await mined(
    world,
    await wallet.writeContract({ ...registry, functionName: "requestUnstake", gas: 400_000n }),
  );
  await pass(2 * DAY);
  await mined(world, await wallet.writeContract({ ...registry, functionName: "withdrawStake" }));
}

/** Moves the chain's time; there is no index to wait for. */
async function pass(seconds: number): Promise<void> {
  await world.testClient.increaseTime({ seconds });
  await world.testClient.mine({ blocks: 1 });
}

const usd = (amount: string) => parseUnits(amount, 6);

test("parties and voters finish a dispute, a review and an open tender on chain, to the unit", async () => {
  const client = await world.newAgent({ usd: "152.5" });
  const worker = await world.newAgent({ usd: "5" });
  const jury = await Promise.all([1, 2, 3].map(() => newJuror(world, { usd: "7.5" })));
  const ballots: Outcome[][] = [
    ["met", "met", "not met"],
    ["met", "met", "not met"],
    ["met", "unclear", "met"],
  ];
  const tender = await created(world, client);
  const reviewed = await delivered(world, { client, worker });
  const judged = await disputed(world, { client, worker });
  const voters = await Promise.all(
    jury.map(async (juror, i) => {
      const words = ballots[i] as Outcome[];
      const { salt } = await vote(juror, judged.id, ...words);
      return { juror, packed: packOutcomes(words), salt };
    }),
  );
  const escrows = [tender.id, reviewed.id, judged.id] as Address[];
  const holdings = () => Promise.all(escrows.map((escrow) => world.usdOf(escrow)));
  expect(await holdings()).toEqual([usd("50"), usd("52.5"), usd("77.5")]);

  await killEverythingButTheChain();
  await expect(fetch(`${service.url}/health`)).rejects.toThrow();

  await act(client, tender.id, { functionName: "cancel" });
  await act(client, tender.id, { functionName: "settle" });
  await pass(DAY);
  for (const { juror, packed, salt } of voters) {
    await openOnChain(world, juror, { id: judged.id, packed, salt });
  }
  await act(worker, judged.id, { functionName: "tally" });
  await act(worker, judged.id, { functionName: "settle" });
  for (const { juror } of voters) {
    await act(juror, judged.id, { functionName: "claim", args: [juror.address] });
  }
  await pass(3 * DAY);
  await act(worker, reviewed.id, { functionName: "settle" });

  expect(await holdings()).toEqual([0n, 0n, 0n]);
  expect(await world.usdOf(client.address)).toBe(usd("50") + usd("18.166667"));
  expect(await world.usdOf(worker.address)).toBe(usd("50") + usd("35"));
  expect(await world.usdOf(TREASURY)).toBe(usd("2.5") + usd("1.833333"));
  expect(await Promise.all(jury.map(({ address }) => world.usdOf(address)))).toEqual(
    ["9.125", "9.125", "4.25"].map(usd),
  );

  for (const juror of jury) await withdrawStake(juror);
  expect(await Promise.all(jury.map(({ address }) => tokensOf(world, address)))).toEqual(
    [1030, 1030, 1010].map((tokens) => parseEther(String(tokens))),
  );
});
