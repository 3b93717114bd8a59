/** `npm run try`: runs the documented programs of client and stock x402 clients from empty folders; at most two minutes. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../src/root.js";
import {
  clientProgram,
  newProject,
  type Project,
  packPackages,
  STOCK_CLIENTS,
  stockClients,
  stockProgram,
} from "../test/support/packages.js";
import { startOwnNetwork, writtenAddresses } from "./demo/network.js";

const MAX_SECONDS = 120;
const PROGRAM_TIMEOUT_MS = 300_000;
const OURS = "@working-contracts/client";

interface Row {
  program: string;
  when: "before the demo" | "after the demo";
  seconds: number;
  outcome: string;
}

const running = await runningUrl();
const own = running === null ? await startOwnNetwork() : null;
const baseUrl = running ?? (writtenAddresses(own?.dir).baseUrl as string);
console.log(`Uses the network at ${baseUrl}.`);
const folders: { remove(): void }[] = [];
try {
  const packed = keep(await packPackages());
  const startedAt = Date.now();
  const client = await installed(OURS, packed.client);
  const before = [run(OURS, client, "before the demo")];
  const settledAfter = secondsSince(startedAt);
  const stock = await installed("the stock clients", ...stockClients());
  const runStock = (when: Row["when"]): Row[] => STOCK_CLIENTS.map((name) => run(name, stock, when));
  before.push(...runStock("before the demo"));

  const demo = spawn(process.execPath, ["--import", "tsx", "tools/demo/main.ts"], {
    cwd: ROOT,
    stdio: "ignore",
  });
  const [demoCode] = await once(demo, "close");
  console.log(`The demo ${demoCode === 0 ? "is complete" : "failed; see `npm run demo`"}.`);
  const rows = [...before, run(OURS, client, "after the demo"), ...runStock("after the demo")];

  console.table(rows);
  console.log(`From an empty folder to a settled contract: ${settledAfter} s, at most ${MAX_SECONDS} s.`);
  const isGood =
    demoCode === 0 && settledAfter <= MAX_SECONDS && rows.every(({ outcome }) => outcome === "ok");
  process.exitCode = isGood ? 0 : 1;
} finally {
  for (const folder of folders) folder.remove();
  await own?.stop();
}

async function installed(what: string, ...specifiers: string[]): Promise<Project> {
  const startedAt = Date.now();
  const project = keep(await newProject(...specifiers));
  console.log(`Installed ${what} in ${secondsSince(startedAt)} s.`);
  return project;
}

/** Runs a client's documented program in the folder where it is installed. */
function run(name: string, { dir }: Project, when: Row["when"]): Row {
  const isOurs = name === OURS;
  const file = join(dir, "program.mjs");
  writeFileSync(file, isOurs ? clientProgram(dir, baseUrl) : stockProgram(name, baseUrl));
  const startedAt = Date.now();
  const options = { cwd: dir, encoding: "utf8", timeout: PROGRAM_TIMEOUT_MS } as const;
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], options);
  const succeeded = status === 0 && (isOurs ? / is settled-/ : /^200 .*"status":"created"/).test(stdout);
  if (!succeeded) console.error(`${name}, ${when}:\n${stdout}${stderr}`);
  return { program: name, when, seconds: secondsSince(startedAt), outcome: succeeded ? "ok" : "FAILED" };
}

/** Removes the folder at the end. */
function keep<T extends { remove(): void }>(folder: T): T {
  folders.push(folder);
  return folder;
}

function secondsSince(startedAt: number): number {
  return Math.round((Date.now() - startedAt) / 1000);
}

/** The network that `npm start` runs, or null if none does. */
async function runningUrl(): Promise<string | null> {
  const { baseUrl } = writtenAddresses();
  if (baseUrl === undefined) return null;
  const isReady = await fetch(`${baseUrl}/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
  return isReady ? baseUrl : null;
}
