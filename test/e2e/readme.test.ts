/** Runs the quickstarts of the README and the guides unchanged, beside a local network. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "viem";
import { afterAll, expect, it } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import { ROOT } from "../../src/root.js";
import { paidBy } from "../support/chain.js";
import { DEFAULT_URL } from "../support/packages.js";
import { type Finished, newProject, runProcess } from "../support/run-process.js";
import { useSandboxed } from "../support/sandboxed.js";
import { codeBlocks } from "../support/text-blocks.js";
import { useWorld } from "../support/world.js";

/** Dozens of programs start, possibly on a busy machine. */
const TIMEOUT_MS = 400_000;
const TOGETHER = { concurrent: true, timeout: TIMEOUT_MS };

const [js] = blocksOf("README.md", "js");
const [curl] = blocksOf("docs/x402.md", "sh");
const [cli] = blocksOf("docs/cli.md", "sh");
const [sandbox] = blocksOf("docs/sandbox.md", "sh");

function blocksOf(path: string, language: string): string[] {
  return codeBlocks(readFileSync(join(ROOT, path), "utf8"), language);
}

const world = await useWorld();
/** Like `npm start`: the service with the sandbox, and a file with its addresses. */
const service = await useSandboxed(world);
const folder = newProject();
afterAll(() => folder.remove());
const { rpcUrl, deploymentPath } = world.info;
writeFileSync(
  join(folder.dir, "network.json"),
  JSON.stringify({ baseUrl: service.url, rpcUrl, deploymentPath }),
);

async function execute(block: string | undefined, command: string, args: string[]): Promise<Finished> {
  const finished = await runProcess(command, args, {
    input: (block as string).replaceAll(DEFAULT_URL, service.url),
    timeoutMs: TIMEOUT_MS,
    env: { DATA_DIR: folder.dir, WC_CONFIG_DIR: join(folder.dir, "config") },
  });
  expect(finished, finished.stderr).toMatchObject({ code: 0 });
  return finished;
}

/** The only contract that the output names is paid out, on chain as well. */
async function expectPaidOut(output: string): Promise<void> {
  const reader = await world.newAgent();
  const ids = [...new Set(output.match(/0x[0-9a-f]{40}\b/g))];
  const answers = await Promise.all(ids.map((id) => reader.get<ContractView>(`/v1/contracts/${id}`)));
  const contracts = answers.filter(({ status }) => status === 200).map(({ data }) => data);
  expect(contracts).toMatchObject([{ status: "settled-all-met", budgetOrPrice: "50.0" }]);
  const [{ id, worker } = {}] = contracts;
  expect(await paidBy(world, id as string, worker as Address)).toBe(50_000_000n);
}

it("takes an agent with the client library from post to payout", TOGETHER, async () => {
  const { stdout } = await execute(js, "node", ["--input-type=module", "-"]);
  expect(stdout).toContain("delivered ipfs://sandbox/");
  expect(stdout).toContain("worker-pay 47.5 to the worker");
  await expectPaidOut(stdout);
});

it("takes an agent with curl from its first signature to payout", TOGETHER, async () => {
  const { stdout } = await execute(curl, "bash", ["-eu"]);
  expect(stdout).toMatch(/^matched\nunder-review$/m);
  await expectPaidOut(stdout);
});

it("gives an agent money and a client by two calls of the sandbox", TOGETHER, async () => {
  const { stdout } = await execute(sandbox, "bash", ["-eu"]);
  expect(stdout).toMatch(/^{"data":{"address":"0x1{40}","usd":"100.0"}}{"data":{.*"role":"client".*}}$/);
  expect(await world.usdOf(`0x${"11".repeat(20)}`)).toBe(100_000_000n);
});

it("takes two agents with wcontract from new keys to payout", TOGETHER, async () => {
  const { stdout } = await execute(cli, "bash", ["-eu"]);
  expect(stdout).toContain("delivery: ipfs://bafy…/summary.md");
  expect(stdout).toMatch(/^=\s+status\s+settled-all-met\s+settled-all-met$/m);
  expect(stdout).not.toContain("DIFFERS");
  await expectPaidOut(stdout);
});
