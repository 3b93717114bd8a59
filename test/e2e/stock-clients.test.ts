/**
 * Runs the programs of docs/x402.md and docs/events.md unchanged, beside `npm start`: unmodified x402 clients with
 * default settings, and readers of the event log. Lints the OpenAPI document.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, generatePrivateKey, privateKeyToAccount } from "@working-contracts/client/index";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../../src/root.js";
import { startOwnNetwork } from "../../tools/demo/network.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { ensureClients } from "../../tools/install.mjs";
import { freePort } from "../../tools/local/ports.js";
import { DEFAULT_URL, documentedPrograms, STOCK_CLIENTS, stockProgram } from "../../tools/packages.js";
import { type Finished, runProcess } from "../support/run-process.js";

let network: Awaited<ReturnType<typeof startOwnNetwork>>;
let baseUrl: string;
let folder: string;

beforeAll(async () => {
  await ensureClients();
  network = await startOwnNetwork();
  ({ baseUrl } = JSON.parse(readFileSync(join(network.dir, "network.json"), "utf8")));
  // Inside the folder of the clients, so that Node finds them.
  const cache = join(ROOT, "test/clients/node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  folder = mkdtempSync(join(cache, "program-"));
}, 600_000);
afterAll(async () => {
  await network?.stop();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

async function run(client: string): Promise<Finished> {
  const file = join(folder, `${client.replace("/", "-")}.mjs`);
  writeFileSync(file, stockProgram(client, baseUrl));
  return runProcess("node", [file], { cwd: folder, timeoutMs: 240_000 });
}

describe("the event log", () => {
  const [follow = "", receive = ""] = documentedPrograms("docs/events.md");

  test.each([
    ["is followed by the documented iterator", follow],
    ["reaches the documented webhook receiver", receive],
  ])("%s", { timeout: 300_000 }, async (_title, program) => {
    const key = generatePrivateKey();
    const port = await freePort();
    const file = join(folder, `events-${port}.mjs`);
    writeFileSync(file, program.replaceAll(DEFAULT_URL, baseUrl).replaceAll("4000", String(port)));
    const child = spawn("node", [file], { cwd: folder, env: { ...process.env, AGENT_KEY: key } });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    try {
      const account = privateKeyToAccount(key);
      const agent = await connect({ baseUrl, account, spendingLimit: { perCall: "1" } });
      await fetch(`${baseUrl}/sandbox/faucet`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ address: account.address, usd: "1" }),
      });
      const isListening = () =>
        program === follow || agent.webhooks.list().then(({ length }) => length === 1);
      await expect.poll(isListening, { timeout: 60_000 }).toBe(true);
      const { id } = await agent.create({
        title: "Summarise a paper",
        taskDescription: "One page.",
        acceptanceCriteria: ["One page"],
        budgetOrPrice: 1,
        ...(await agent.deadlines({ match: "1d", withdrawal: "2d", delivery: "3d", review: "4d" })),
      });
      await expect
        .poll(() => output, { timeout: 60_000 })
        .toMatch(new RegExp(`^\\d+ contract.created ${id}$`, "m"));
    } finally {
      child.kill();
    }
  });
});

test("the OpenAPI document passes a linter without a warning", { timeout: 300_000 }, async () => {
  const clients = join(ROOT, "test/clients");
  const redocly = join(clients, "node_modules/@redocly/cli/bin/cli.js");
  const args = [redocly, "lint", `${baseUrl}/openapi.json`, "--config=redocly.yaml", "--format=json"];
  const env = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const { stdout } = await runProcess("node", args, { cwd: clients, env, timeoutMs: 240_000 });
  expect(JSON.parse(stdout).problems).toEqual([]);
});

describe("a stock client with default settings", () => {
  test.each(STOCK_CLIENTS)("%s posts a contract", { timeout: 300_000 }, async (client) => {
    const { code, stdout, stderr } = await run(client);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^200 .*"status":"created"/);
  });

  // Last, because the clock never goes back.
  test("is refused after the sandbox's clock was moved", { timeout: 300_000 }, async () => {
    const moved = await fetch(`${baseUrl}/sandbox/clock`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ advanceSeconds: 600 }),
    });
    expect(moved.status).toBe(200);
    const { stdout } = await run("@x402/fetch");
    expect(stdout).toMatch(/^402 .*clock is \d+ minutes ahead of the real time, as in a sandbox/);
  });
});
