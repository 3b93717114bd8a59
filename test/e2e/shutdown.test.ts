/** On SIGTERM the service takes no new calls, completes earlier ones, loses nothing and leaves nothing open. */
import { type ChildProcess, spawn } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import { until } from "../../src/indexer/supervision/processes.js";
import { ROOT } from "../../src/root.js";
import { freePort } from "../../tools/local/ports.js";
import type { Agent } from "../support/agent.js";
import { serviceEnvironment } from "../support/stack.js";
import { openWorld, type World } from "../support/world.js";
import { draftBody, paymentHeader, quoteOf, signPayment } from "./contract-actors.js";

interface Process {
  child: ChildProcess;
  url: string;
  /** Everything that it wrote. */
  output(): string;
}

let world: World;
let client: Agent;
/** API processes beside the stack's own service, whose relayer executes their operations. */
let [patient, hasty]: Process[] = [];

beforeAll(async () => {
  world = await openWorld();
  client = await world.newAgent({ usd: "1000" });
  [patient, hasty] = await Promise.all([launch({}), launch({ SETTLEMENT_WAIT_MS: "1500" })]);
});
afterAll(async () => {
  for (const one of [patient, hasty]) one?.child.kill("SIGKILL");
  await world?.testClient.setIntervalMining({ interval: 1 });
  await world?.close();
});

async function launch(env: Record<string, string>): Promise<Process> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { PATH, HOME } = process.env;
  const child = spawn(process.execPath, ["--import", "tsx", "src/commands/serve.ts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH, HOME, ...serviceEnvironment(world.info, port), ROLES: "api", ...env },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  await until("the process responds", async () => (await fetch(`${url}/v1/protocol`)).ok, {
    timeoutMs: 60_000,
  });
  return { child, url, output: () => output };
}

/** A Create that is signed and can be sent to any process. */
async function paidCreation(requestId: string) {
  const body = JSON.stringify(await draftBody(world));
  const quote = quoteOf(await client.post("/v1/contracts", body));
  const headers = {
    ...paymentHeader(quote, await signPayment(world, client, quote)),
    authorization: `Bearer ${client.apiKey}`,
    "content-type": "application/json",
    "x-request-id": requestId,
  };
  return {
    id: quote.payTo,
    sendTo: (url: string) => fetch(`${url}/v1/contracts`, { method: "POST", headers, body }),
    isStored: async () => {
      const { rowCount } = await world.pool.query("select 1 from app.operation where escrow = $1", [
        quote.payTo,
      ]);
      return rowCount === 1;
    },
  };
}

async function terminate({ child, url }: Process): Promise<Promise<number | null>> {
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const isClosed = () =>
    fetch(`${url}/health`).then(
      () => false,
      () => true,
    );
  await until("new connections are refused", isClosed, { timeoutMs: 20_000 });
  return exited;
}

test("a pending call is completed, a new one is not accepted, and the process exits", async () => {
  const { child, url, output } = patient as Process;
  const creation = await paidCreation("shutdown-1");
  await world.testClient.setIntervalMining({ interval: 0 });
  const paid = creation.sendTo(url);
  await until("the operation is stored", creation.isStored, { timeoutMs: 20_000 });
  const exited = terminate(patient as Process);
  await until("the signal is sent", async () => child.killed, { timeoutMs: 5000 });
  expect(child.exitCode).toBeNull();
  await world.testClient.setIntervalMining({ interval: 1 });

  const answer = await paid;
  expect(answer.status).toBe(200);
  expect(((await answer.json()) as { data: ContractView }).data.id).toBe(creation.id);
  expect(await exited).toBe(0);

  // The log shows the request, its operation and its transaction.
  const lines = linesOf(output(), "shutdown-1");
  const operation = lines.find(({ msg }) => msg === "operation stored")?.operation;
  expect(operation).toMatch(/^\d+$/);
  expect(lines.find(({ msg }) => msg === "operation applied")).toMatchObject({
    operation,
    transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/),
  });
  expect(lines.find(({ msg }) => msg === "request")).toMatchObject({ status: 200, caller: client.address });
});

test("a call delayed by the chain is asked to retry, and finds its payment at another process", async () => {
  const { url, output } = hasty as Process;
  const [creation, second] = [await paidCreation("shutdown-2"), await paidCreation("shutdown-3")];
  await world.testClient.setIntervalMining({ interval: 0 });
  expect((await creation.sendTo(url)).status).toBe(503);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(
    /^working_contracts_http_errors_total\{status="503",code="settlement_pending"\} 1$/m,
  );

  const onItsWay = second.sendTo(url);
  await until("the operation is stored", second.isStored, { timeoutMs: 20_000 });
  const exited = terminate(hasty as Process);
  const answer = await onItsWay;
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await answer.json()).toMatchObject({ error: { code: "settlement_pending", retryable: true } });
  expect(await exited).toBe(0);
  for (const id of ["shutdown-2", "shutdown-3"]) {
    expect(linesOf(output(), id).find(({ msg }) => msg === "request")).toMatchObject({
      status: 503,
      code: "settlement_pending",
    });
  }

  await world.testClient.setIntervalMining({ interval: 1 });
  for (const { id, sendTo } of [creation, second]) {
    const found = await sendTo(world.url);
    expect(found.status).toBe(200);
    expect(((await found.json()) as { data: ContractView }).data.id).toBe(id);
  }
});

function linesOf(output: string, requestId: string): Record<string, unknown>[] {
  return output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .filter((line) => line.requestId === requestId);
}
