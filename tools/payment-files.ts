/** `npm run size:payment`: source files with code that one paid create executes, from request to event log. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type Profiler, Session } from "node:inspector/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "../src/root.js";
import { draft } from "../test/support/contracts.js";
import { authorize, quoteOf, version2 } from "../test/support/payment.js";
import { startStack } from "../test/support/stack.js";
import { openWorld } from "../test/support/world.js";

const indexerCoverage = mkdtempSync(join(tmpdir(), "payment-files-"));
process.env.NODE_V8_COVERAGE = indexerCoverage;
const stack = await startStack();
delete process.env.NODE_V8_COVERAGE;
const world = await openWorld(stack.info);
const agent = await world.newAgent({ usd: "1000" });

async function pay(): Promise<void> {
  const body = JSON.stringify(await draft(world));
  const quote = quoteOf(await agent.post("/v1/contracts", body));
  const payment = version2(quote, await authorize(agent, quote, world));
  const { status, error } = await agent.post("/v1/contracts", body, payment);
  if (status !== 200) throw new Error(`The payment was refused: ${error?.code}`);
}

await pay();
const inspector = new Session();
inspector.connect();
await inspector.post("Profiler.enable");
await inspector.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
await pay();
const { result } = await inspector.post("Profiler.takePreciseCoverage");
await world.close();
await stack.stop();

const service = filesOf(result);
const indexer = readdirSync(indexerCoverage).flatMap((name) => {
  const { result } = JSON.parse(readFileSync(join(indexerCoverage, name), "utf8"));
  return filesOf(result).filter((file) => file.startsWith("src/indexer/src/"));
});
rmSync(indexerCoverage, { recursive: true });
const files = [...new Set([...service, ...indexer])].sort();
console.log(files.join("\n"));
console.log(`\n${files.length} source files have code that one paid create executes`);
process.exit(0);

/** Files of the product with a function that was called; a module's own code, from its first character on, does not count. */
function filesOf(scripts: Profiler.ScriptCoverage[]): string[] {
  return scripts
    .filter(({ url, functions }) => {
      if (!url.startsWith("file:")) return false;
      return functions.some(
        ({ ranges: [range] }) => range !== undefined && range.startOffset > 0 && range.count > 0,
      );
    })
    .map(({ url }) => relative(ROOT, fileURLToPath(url.split("?")[0] ?? url)))
    .filter((path) => /^(?:src|packages)\//.test(path));
}
