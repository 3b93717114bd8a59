/** How many SQL statements the API process sends for a call; the relayer's and the indexer's are not in it. */
import type { Address, Hex } from "@working-contracts/protocol/types";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { databaseOn } from "../../src/db/client.js";
import type { SettlementView } from "../../src/features/contracts/ledger.js";
import { viewContract } from "../../src/features/contracts/view.js";
import { createLogger } from "../../src/logger.js";
import { awaitOutcome } from "../../src/payments/relayed-call.js";
import { readOutboxState } from "../../src/relayer/limits.js";
import { cancelOperation } from "../../src/relayer/operations.js";
import { enqueue, readOperation } from "../../src/relayer/outbox.js";
import type { Agent } from "../support/agent.js";
import { ballot, draft, matched, newJuror, newPair, UNKNOWN, untilStatus } from "../support/contracts.js";
import { signedCall } from "../support/payment.js";
import { startApi } from "../support/stack.js";
import { openScene, useWorld } from "../support/world.js";

/** Not of one call: polls for index and operations serve all that wait, and a key is looked up once for many calls. */
const SHARED = /^(index_shows|api_key_owner|operations_awaited)$/;
const statements: string[] = [];
const query = pg.Client.prototype.query;
const world = await useWorld();
const service = await startApi(world.info);
const place = await openScene({ ...world.target, url: service.url });
const { client, worker } = await newPair(place);
/** Its statements count like those of the process. */
const pool = new pg.Pool({
  connectionString: world.info.databaseUrl,
  application_name: "working-contracts",
});
const db = databaseOn(pool);

beforeAll(() => {
  pg.Client.prototype.query = function (this: pg.Client, ...args: [{ name?: string; text?: string }]) {
    const { application_name: by } = (this as never as { connectionParameters: Record<string, string> })
      .connectionParameters;
    const [{ name, text = String(args[0]) }] = args;
    // The event feed polls by time.
    const isBackground = by !== "working-contracts" || text.includes('"app"."event"');
    if (!isBackground) statements.push(name ?? text);
    return (query as (...all: unknown[]) => unknown).apply(this, args);
  } as never;
});
afterAll(async () => {
  pg.Client.prototype.query = query;
  await service.stop();
  await pool.end();
});

/** The statements of one call. */
async function costOf<T>(call: () => Promise<T>): Promise<{ result: T; sent: string[] }> {
  statements.length = 0;
  const result = await call();
  return { result, sent: statements.filter((name) => !SHARED.test(name)) };
}

async function paidCall(agent: Agent, path: string, body: unknown) {
  const quoted = await costOf(() => signedCall<{ id: string }>(agent, path, body, world));
  const paid = await costOf(quoted.result.send);
  expect(paid.result.status).toBe(200);
  return { id: paid.result.data.id, quote: quoted.sent, payment: paid.sent };
}

test("a paid create takes 3 statements to quote and 5 to pay", async () => {
  const body = await draft(world);
  const { quote, payment } = await paidCall(client, "/v1/contracts", body);
  expect(quote).toEqual(["creation_attempt", "outbox_state", "creation_attempt_stored"]);
  expect(payment).toHaveLength(5);
  expect(payment.slice(0, 3)).toEqual(["outbox_state", "creation_attempt", "operation_insert"]);
  expect(payment.at(-1)).toBe("operation_response");
});

test("a paid accept takes 2 statements to quote and 5 to pay", async () => {
  const { id } = await paidCall(client, "/v1/contracts", await draft(world));
  const { quote, payment } = await paidCall(worker, `/v1/contracts/${id}/accept`, { accept: true });
  expect(quote).toHaveLength(2);
  expect(payment).toHaveLength(5);
});

test("an approval by a delegated agent takes 9 statements, and pays out in its own transaction", async () => {
  const { id } = await paidCall(client, "/v1/contracts", await draft(world));
  await paidCall(worker, `/v1/contracts/${id}/accept`, { accept: true });
  await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" });
  const other = await paidCall(client, "/v1/contracts", await draft(world));
  // The first unpaid action registers the delegation.
  expect((await client.post(`/v1/contracts/${other.id}/cancel`)).status).toBe(200);

  const { result, sent } = await costOf(() => client.post(`/v1/contracts/${id}/approve`));
  expect(result.status).toBe(200);
  expect(sent).toHaveLength(9);

  await untilStatus(client, id, "settled-all-met");
  const { data: settlement } = await client.get<SettlementView>(`/v1/contracts/${id}/settlement`);
  expect(settlement).toMatchObject({ ending: "approved", heldUntil: null });
  const rows = await world.query(
    "select kind, transaction_hash as hash from app.operation where escrow = $1 and kind in ('approve', 'settle') order by id",
    [id],
  );
  const hash = settlement.legs[0]?.transactionHash;
  expect(rows).toEqual([
    { kind: "approve", hash },
    { kind: "settle", hash },
  ]);
});

test("a delivery takes 10 statements, a dispute 3 and 6, a vote 3 and 10 with its delegation", async () => {
  const juror = await newJuror(place, { usd: "100" });
  const { id } = await matched<{ id: string }>(place, { client, worker });
  const registered = await matched<{ id: string }>(place, { client, worker });
  const deliver = (contract: string) =>
    worker.post(`/v1/contracts/${contract}/delivery`, { delivery: "ipfs://x" });
  expect((await deliver(registered.id)).status).toBe(200);

  const { result, sent } = await costOf(() => deliver(id));
  expect([result.status, sent.length]).toEqual([200, 10]);
  const dispute = await paidCall(client, `/v1/contracts/${id}/dispute`, {});
  expect([dispute.quote.length, dispute.payment.length]).toEqual([3, 6]);
  const voted = await paidCall(juror, `/v1/contracts/${id}/votes`, ballot("met", "met", "met"));
  expect([voted.quote.length, voted.payment.length]).toEqual([3, 10]);
});

test("reads of contracts in one turn of the event loop share statements, of thirty contracts each", async () => {
  const ids: string[] = [];
  for (let i = 0; i < 12; i++) ids.push((await paidCall(client, "/v1/contracts", await draft(world))).id);
  const asked = [...ids, UNKNOWN, ...ids, ...ids] as Address[];
  const deps = { db, clock: { now: () => Math.floor(Date.now() / 1000), knownBlock: () => 0n } };
  const view = (id: Address) => viewContract(deps, id).catch(({ code }) => ({ id: code }));
  const { result, sent } = await costOf(() => Promise.all(asked.map(view)));
  expect(result.map(({ id }) => id)).toEqual([...ids, "not_found", ...ids, ...ids]);
  expect(sent.filter((name) => name === "contracts_shown")).toHaveLength(2);
});

test("calls that ask the outbox in one turn of the event loop share a statement, and each gets its own state", async () => {
  for (let i = 0; i < 2; i++) await paidCall(client, "/v1/contracts", await draft(world));
  const rows = await world.query<{ id: string; asset: Address; payer: Address; nonce: Hex }>(
    "select id, asset, payer, nonce from app.operation where payer = $1 and state <> 'rejected' order by id desc limit 2",
    [client.address],
  );
  const [newer, older] = rows as [(typeof rows)[number], (typeof rows)[number]];
  const unknown = { ...newer, nonce: `0x${"00".repeat(32)}` as const };
  const asked = { caller: client.address, gasPolicy: { allowance: 0, budget: 0, perFee: 0 } };
  const ask = (authorization: typeof newer) => readOutboxState(db, { ...asked, authorization });
  const { result, sent } = await costOf(() => Promise.all([newer, unknown, older].map(ask)));
  expect(result.map(({ earlier }) => earlier)).toEqual([newer.id, null, older.id]);
  expect(sent).toEqual(["outbox_state"]);
});

test("operations that are stored in one turn of the event loop share a statement, also if two are the same", async () => {
  const escrows = [1, 2, 1].map((digit) => `0x${String(digit).repeat(40)}` as Address);
  const cancel = (escrow: Address) => enqueue(db, cancelOperation({ escrow, caller: client.address }));
  const { result, sent } = await costOf(() => Promise.all(escrows.map(cancel)));
  const ids = result.map(({ operation }) => operation.id);
  await pool.query("delete from app.operation where id = any($1)", [ids]);
  expect(result.map(({ existing, operation: { escrow } }) => [existing, escrow])).toEqual([
    [false, escrows[0]],
    [false, escrows[1]],
    [true, escrows[0]],
  ]);
  expect(ids[2]).toBe(ids[0]);
  expect(sent).toEqual(["operation_insert", "operation_by_once_key"]);
});

test("responses that are ready in one turn of the event loop share a statement; a locked row holds up no other", async () => {
  const created: string[] = [];
  for (let i = 0; i < 3; i++) created.push((await paidCall(client, "/v1/contracts", await draft(world))).id);
  const rows = await world.query<{ id: string }>(
    "update app.operation set response = null where escrow = any($1) and kind = 'create' returning id",
    [created],
  );
  const operations = await Promise.all(rows.map(({ id }) => readOperation(db, id)));
  type Row = (typeof operations)[number];
  const [locked, ...free] = operations as [Row, Row, Row];
  const deps = {
    db,
    config: { settlementWaitMs: 10_000 },
    outbox: { waitFor: async (id: bigint) => operations.find((one) => one.id === id) },
    clock: { now: () => 0 },
    logger: createLogger("fatal"),
  };
  const respond = ({ id }: { id: bigint }) => Promise.resolve({ data: id.toString() });
  const outcomeOf = (one: Row) => awaitOutcome(deps as never, one, respond);
  const other = await pool.connect();
  await other.query("begin");
  await other.query("select from app.operation where id = $1 for update", [locked.id]);

  const asked = [...free, ...free, ...free];
  // The first wait looks at the index alone, and all others together.
  const first = outcomeOf(free[0]);
  const late = outcomeOf(locked);
  const { result, sent } = await costOf(() => Promise.all([first, ...asked.map(outcomeOf)]));
  await other.query("commit");
  other.release();
  const bodyOf = (outcome: Awaited<typeof late>) => outcome.ok && JSON.parse(outcome.response.body).data;
  expect(result.map(bodyOf)).toEqual([free[0], ...asked].map(({ id }) => id.toString()));
  expect(sent.filter((name) => name === "operation_response").length).toBeLessThanOrEqual(2);
  expect(bodyOf(await late)).toBe(locked.id.toString());
  const kept = await world.query("select response->>'body' as body from app.operation where id = $1", [
    locked.id,
  ]);
  expect(kept).toEqual([{ body: JSON.stringify({ data: locked.id.toString() }) }]);
});
