/** Runs the programs of docs/x402.md unchanged: unmodified x402 clients beside `npm start`, with default settings. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ROOT } from "../../src/root.js";
import { startOwnNetwork } from "../../tools/demo/network.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { ensureClients } from "../../tools/install.mjs";
import { type Finished, runProcess } from "../support/run-process.js";
import { codeBlocks } from "../support/text-blocks.js";

const DEFAULT_URL = "http://127.0.0.1:3000";
const CLIENTS = ["@x402/fetch", "@x402/axios", "x402-fetch"];
const programs = codeBlocks(readFileSync(join(ROOT, "docs/x402.md"), "utf8"), "js");
const programOf = (client: string): string =>
  programs.find((program) => program.includes(`from "${client}"`)) as string;

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
  writeFileSync(file, programOf(client).replaceAll(DEFAULT_URL, baseUrl));
  return runProcess("node", [file], { cwd: folder, timeoutMs: 240_000 });
}

describe("a stock client with default settings", () => {
  test.each(CLIENTS)("%s posts a contract", { timeout: 300_000 }, async (client) => {
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
    expect(stdout).toMatch(/^402 /);
  });
});
