/**
 * A client in another language, generated from the published document by Perl's OpenAPI::Client (Debian's
 * libopenapi-client-perl), reads, posts and pays.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../../src/root.js";
import { draft, type Json } from "../support/contracts.js";
import { installPackage } from "../support/debian.js";
import { authorize, type Quote, version2 } from "../support/payment.js";
import { runProcess } from "../support/run-process.js";
import { openWorld, type World } from "../support/world.js";

/**
 * Perl's validator looks up the schema of OpenAPI 3.1 on the internet. A linter checks the document against it
 * (test/integration/start), so that this one can accept everything.
 */
const META_SCHEMA = "https://spec.openapis.org/oas/3.1/schema/2021-05-20";
const PACKAGE = "libopenapi-client-perl";
const isInstalled = async (): Promise<boolean> =>
  (await runProcess("perl", ["-MOpenAPI::Client", "-e", "1"])).code === 0;
const cache = mkdtempSync(join(tmpdir(), "perl-client-"));
let world: World;

beforeAll(async () => {
  if (!(await isInstalled())) installPackage(PACKAGE);
  if (!(await isInstalled()))
    throw new Error(`Perl's OpenAPI::Client not found. Install Debian's package ${PACKAGE}.`);
  world = await openWorld();
  const name = createHash("md5").update(META_SCHEMA).digest("hex");
  writeFileSync(join(cache, name), JSON.stringify({ $id: META_SCHEMA, type: "object" }));
});
afterAll(async () => {
  await world?.close();
  rmSync(cache, { recursive: true });
});

async function call(
  operation: string,
  parameters: Json,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Record<string, string>; body: Json }> {
  const { code, stdout, stderr } = await runProcess(
    "perl",
    [join(ROOT, "test/nightly/client.pl"), world.url, operation],
    { input: JSON.stringify({ parameters, headers }), env: { JSON_VALIDATOR_CACHE_PATH: cache } },
  );
  expect(code, stderr).toBe(0);
  return JSON.parse(stdout);
}

test("posts and pays a contract, and finds it", async () => {
  const client = await world.newAgent({ usd: "100" });
  const key = { authorization: `Bearer ${client.apiKey}` };
  const body = await draft(world, { title: "Posted from Perl" });

  const asked = await call("createContract", { body }, key);
  expect(asked.status).toBe(402);
  const required = asked.headers["payment-required"] ?? "";
  const [quote] = JSON.parse(Buffer.from(required, "base64").toString("utf8")).accepts as [Quote];
  const payment = version2(
    quote,
    await authorize(client, { ...quote, maxAmountRequired: quote.amount }, world),
  );
  const paid = await call("createContract", { body }, { ...key, ...payment });
  expect(paid).toMatchObject({ status: 200, body: { data: { status: "created", escrowedFunds: "50.0" } } });

  const { id } = paid.body.data;
  expect((await call("getContract", { id }, key)).body.data).toMatchObject({ id, title: "Posted from Perl" });
  const found = await call("listContracts", { client: client.address, limit: 1 }, key);
  expect(found.body.data).toMatchObject([{ id }]);
});

test("knows what the document declares", async () => {
  // Refused by the generated client, which sends nothing.
  const refused = await call("createContract", { body: { title: "Incomplete" } });
  expect(refused.status).toBe(400);
  expect(refused.body.errors).toContainEqual({ message: "Missing property.", path: "/body/taskDescription" });
  expect(await call("listContracts", {})).toMatchObject({
    status: 401,
    body: { error: { code: "unauthorized" } },
  });
});
