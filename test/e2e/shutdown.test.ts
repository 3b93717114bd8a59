/** On SIGTERM the service takes no new calls, completes earlier ones, loses nothing and leaves nothing open. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import type { ContractView } from "../../src/features/contracts/view.js";
import { until } from "../../tools/local/processes.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { draft } from "../support/contracts.js";
import { signedCall } from "../support/payment.js";
import { type ServiceProcess, startServiceProcess } from "../support/programs.js";
import { serviceEnvironment } from "../support/stack.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const client = await world.newAgent({ usd: "1000" });
/** API processes beside the stack's own service, whose relayer carries their operations; the first as its operator starts it. */
const [patient, hasty, waiting] = await Promise.all([
  launch({}, { command: ["npm", "run", "serve"] }),
  launch({ SETTLEMENT_WAIT_MS: "1500" }),
  launch({}),
]);
afterAll(() => resumeBlocks(world.testClient));

async function launch(
  env: Record<string, string>,
  options?: Parameters<typeof startServiceProcess>[1],
): Promise<ServiceProcess> {
  const settings = { ...serviceEnvironment(world.info, 0), ROLES: "api", ...env };
  const service = await startServiceProcess(settings, options);
  afterAll(() => service.stop("SIGKILL"));
  // Responses are checked against the process's document, which is read at the first one: not after it has closed.
  await fetch(`${service.url}/v1/protocol`);
  return service;
}

/** A Create that is signed and can be sent to any process. */
async function paidCreation(requestId: string) {
  const body = JSON.stringify(await draft(world));
  const { quote, headers: payment } = await signedCall(client, "/v1/contracts", body, world);
  const headers = {
    ...payment,
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

/** Sends SIGTERM and waits until the process refuses connections. */
async function terminate({ child, url }: ServiceProcess): Promise<void> {
  child.kill("SIGTERM");
  const isClosed = () =>
    fetch(`${url}/health`).then(
      () => false,
      () => true,
    );
  await until("new connections are refused", isClosed, { timeoutMs: 60_000 });
}

test("a pending call is completed, a new one is not accepted, and the process exits", async () => {
  const { child, exited, url, output } = patient;
  const creation = await paidCreation("shutdown-1");
  await pauseBlocks(world.testClient);
  const paid = creation.sendTo(url);
  await until("the operation is stored", creation.isStored, { timeoutMs: 60_000 });
  await terminate(patient);
  // As Ctrl-C does under npm.
  child.kill("SIGTERM");
  await delay(500);
  expect(child.exitCode).toBeNull();
  await resumeBlocks(world.testClient);

  const answer = await paid;
  expect(answer.status).toBe(200);
  expect(((await answer.json()) as { data: ContractView }).data.id).toBe(creation.id);
  expect(await exited).toBe(0);
  // The log is complete.
  expect(output()).toMatch(/"requestId":"shutdown-1".*"msg":"request"/);
});

test("a call delayed by the chain is asked to retry, and finds its payment at another process", async () => {
  const [creation, second] = [await paidCreation("shutdown-2"), await paidCreation("shutdown-3")];
  await pauseBlocks(world.testClient);
  expect((await creation.sendTo(hasty.url)).status).toBe(503);

  // It would wait for longer than its process still has.
  const onItsWay = second.sendTo(waiting.url);
  await until("the operation is stored", second.isStored, { timeoutMs: 60_000 });
  for (const { child } of [hasty, waiting]) child.kill("SIGTERM");
  const answer = await onItsWay;
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(await answer.json()).toMatchObject({ error: { code: "settlement_pending", retryable: true } });
  expect(await Promise.all([hasty.exited, waiting.exited])).toEqual([0, 0]);

  await resumeBlocks(world.testClient);
  for (const { id, sendTo } of [creation, second]) {
    const found = await sendTo(world.url);
    expect(found.status).toBe(200);
    expect(((await found.json()) as { data: ContractView }).data.id).toBe(id);
  }
});
