/** Gives an address test dollars, and optionally protocol tokens, from the running local network's faucet. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../src/root.js";
import { createSandbox } from "./demo/sandbox.js";

const { values, positionals } = parseArgs({
  options: { tokens: { type: "string" } },
  allowPositionals: true,
});
const [address, usd] = positionals;
const { tokens } = values;
if (address === undefined || usd === undefined) {
  fail("Usage: npm run fund -- <address> <dollars> [--tokens <protocol tokens>]");
}
const path = join(process.env.DATA_DIR || join(ROOT, ".local"), "network.json");
if (!existsSync(path)) fail("No running network found: run npm start in another terminal first.");
const { baseUrl } = JSON.parse(readFileSync(path, "utf8")) as { baseUrl: string };
const gift = { address: address as `0x${string}`, usd, ...(tokens !== undefined && { tokens }) };
await createSandbox(baseUrl)
  .give(gift)
  .catch((error: Error) => fail(error.message));
console.log(`${address} has received ${usd} test dollars${tokens ? ` and ${tokens} WCT` : ""}.`);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
