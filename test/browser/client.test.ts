/** The published client in a page of another origin, with the wallet of the browser. */
import { rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Metafile } from "esbuild";
import { type Address, hexToString } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { ROOT } from "../../src/root.js";
// @ts-expect-error A plain module: it runs before anything is installed.
import { writePackages } from "../../tools/build.mjs";
import { listen } from "../support/listen.js";
import { openWorld, type World } from "../support/world.js";
import { faultsOf, useBrowser } from "./support/browser.js";

/** Of what a page loads to sign in and to pay. */
const MAX_GZIPPED_BYTES = 26_500;
/** With all that is loaded at its first use: sealed deliveries, receipts, own transactions, verification. */
const MAX_GZIPPED_BYTES_IN_ALL = 118_000;
const PROGRAM = `
import { connect, providerSigner } from "@working-contracts/client";

window.post = async (baseUrl) => {
  const account = await providerSigner(window.ethereum);
  const agent = await connect({ baseUrl, account, clock: "service", spendingLimit: { perCall: "60" } });
  const { id } = await agent.create({
    title: "Summarise a paper",
    taskDescription: "One page.",
    acceptanceCriteria: ["One page"],
    budgetOrPrice: 50,
    ...(await agent.deadlines({ match: "1d", withdrawal: "2d", delivery: "3d", review: "4d" })),
  });
  return agent.get(id);
};`;

const isSkipped = inject("chromium") === null;
const surfer = useBrowser();
let world: World;
let server: Server;
let origin: string;
const dir = join(ROOT, "node_modules/.cache/client-in-browser");
const files = new Map<string, string>();
let loaded: Set<string>;

beforeAll(async () => {
  if (isSkipped) return;
  world = await openWorld();
  // As published. Its dependencies, which it pins, are found further up.
  await writePackages(join(dir, "node_modules/@working-contracts"), { declarations: false });
  const { metafile, outputFiles, warnings } = await build({
    stdin: { contents: PROGRAM, resolveDir: dir },
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    platform: "browser",
    outdir: dir,
    write: false,
    metafile: true,
    logLevel: "silent",
    absWorkingDir: dir,
  });
  expect(warnings).toEqual([]);
  for (const { path, text } of outputFiles) files.set(basename(path), text);
  loaded = withStaticImports("stdin.js", metafile);
  server = createServer(({ url = "" }, response) => {
    const script = files.get(url.slice(1));
    response.setHeader("content-type", script === undefined ? "text/html" : "text/javascript");
    response.end(script ?? '<!doctype html><script type="module" src="stdin.js"></script>');
  });
  ({ url: origin } = await listen(server));
});
afterAll(async () => {
  server?.close();
  rmSync(dir, { recursive: true, force: true });
  await world?.close();
});

function withStaticImports(path: string, { outputs }: Metafile): Set<string> {
  const found = new Set([path]);
  for (const one of found)
    for (const { kind, path: imported } of outputs[one]?.imports ?? [])
      if (kind === "import-statement") found.add(imported);
  return found;
}

const gzippedBytes = (names: Iterable<string>): number =>
  [...names].reduce((sum, name) => sum + gzipSync(files.get(name) ?? "").length, 0);

describe.skipIf(isSkipped)("the client's package in a browser", () => {
  test(`loads at most ${MAX_GZIPPED_BYTES} bytes, gzipped, to sign in and pay`, () => {
    const [first, inAll] = [gzippedBytes(loaded), gzippedBytes(files.keys())];
    console.log(
      `Gzipped, the client takes ${first} bytes, and ${inAll} with all that is loaded at its first use.`,
    );
    expect(first).toBeLessThanOrEqual(MAX_GZIPPED_BYTES);
    expect(inAll).toBeLessThanOrEqual(MAX_GZIPPED_BYTES_IN_ALL);
  });

  test("signs in and pays from a page of another origin, with an EIP-1193 wallet", async () => {
    const wallet = privateKeyToAccount(generatePrivateKey());
    await world.fundUsd(wallet.address, "100");
    const page = await surfer.open("about:blank");
    await page.exposeFunction("walletRequest", async (method: string, params: [string, string]) => {
      if (method === "eth_requestAccounts") return [wallet.address];
      if (method === "personal_sign")
        return wallet.signMessage({ message: hexToString(params[0] as Address) });
      if (method === "eth_signTypedData_v4") return wallet.signTypedData(JSON.parse(params[1]));
      throw new Error(`${method} is not expected`);
    });
    await page.addInitScript(
      "window.ethereum = { request: ({ method, params }) => window.walletRequest(method, params) };",
    );
    await page.goto(origin);
    const contract = await page.evaluate(`window.post(${JSON.stringify(world.url)})`);
    expect(contract).toMatchObject({
      status: "created",
      client: wallet.address.toLowerCase(),
      escrowedFunds: "50.0",
    });
    expect(await world.usdOf(wallet.address)).toBe(50_000_000n);
    // The only error is the quote, which a browser logs as a failed request.
    expect(faultsOf(page).filter((fault) => !fault.includes("402"))).toEqual([]);
  });
});
