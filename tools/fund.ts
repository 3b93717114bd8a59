/** Gives an address test dollars, and optionally protocol tokens, from the running local network's faucet. */
import { parseArgs } from "node:util";
import { createSandbox, writtenAddresses } from "./demo/network.js";

const { values, positionals } = parseArgs({
  options: { tokens: { type: "string" } },
  allowPositionals: true,
});
const [address, usd] = positionals;
const { tokens } = values;
if (address === undefined || usd === undefined) {
  fail("Usage: npm run fund -- <address> <dollars> [--tokens <protocol tokens>]");
}
const { baseUrl } = writtenAddresses();
if (baseUrl === undefined) fail("No running network found: run npm start in another terminal first.");
const gift = { address: address as `0x${string}`, usd, ...(tokens !== undefined && { tokens }) };
await createSandbox(baseUrl)
  .give(gift)
  .catch((error: Error) => fail(error.message));
console.log(`${address} has received ${usd} test dollars${tokens ? ` and ${tokens} WCT` : ""}.`);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
