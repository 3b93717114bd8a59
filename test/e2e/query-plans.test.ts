/** The loops of relayer and keeper read only open or due rows of a large database, never the whole history. */

import { isoTime } from "@working-contracts/protocol/time";
import type { Address } from "@working-contracts/protocol/types";
import { expect, it } from "vitest";
import { readDeployment } from "../../src/chain/deployment.js";
import type { Deps } from "../../src/deps.js";
import { readEarnings } from "../../src/features/records/routes.js";
import { viewStake } from "../../src/features/stakes/routes.js";
import { countLate, findDue } from "../../src/keeper/keeper.js";
import { createMemory, type Head, type SignerContext } from "../../src/relayer/context.js";
import { followBatches } from "../../src/relayer/follow.js";
import { leaseOperations, readWork } from "../../src/relayer/lease.js";
import { readOutboxState } from "../../src/relayer/limits.js";
import { readOpenOperations } from "../../src/relayer/outbox.js";
import { readUnattended } from "../../src/relayer/relayer.js";
import { recordAbandoned } from "../../src/relayer/results.js";
import { leaseDue } from "../../src/webhooks/deliveries.js";
import { sharedStack } from "../support/world.js";
import { useLargeDatabase } from "./index-tables.js";

const ROWS = 20_000;
const OPEN = 40;
const NOW = 2_000_000_000;
const SIGNER: Address = `0x${"51".repeat(20)}`;
const TERMS = {
  caller: "'0x'",
  document: "'{}'",
  title: "''",
  task_description: "''",
  acceptance_criteria: "'[]'",
  award_method: "'open_tender'",
  initiator: "'client'",
  escrow_terms: "'{}'",
};
/** The columns of a contract in a dispute with one vote, which is not opened. */
const DISPUTED = {
  phase: "'disputed'",
  settled: "false",
  created_at: "1",
  ba_voting_window: "3600",
  sealed_votes: "1",
  opened_votes: "0",
};

const { deploymentPath } = sharedStack();
const database = await useLargeDatabase(["working_contract", "vote", "draw", "deferred_payout", "stake"]);
const growing = await useLargeDatabase([]);
await fill();

/**
 * Fills in history: settled contracts, claimed votes, final operations. Among them are OPEN of each that are still to
 * do.
 */
async function fill(): Promise<void> {
  const done = `i > ${OPEN}`;
  await database.insert("onchain.working_contract", ROWS, {
    id: "'0x' || lpad(to_hex(i), 40, '0')",
    phase: `case when ${done} then (array['approved', 'tallied', 'cancelled', 'withdrawn'])[1 + i % 4]
      else (array['created', 'matched', 'delivered', 'tallied'])[1 + i % 4] end`,
    settled: done,
    match_deadline: String(NOW - 100),
    delivery_deadline: String(NOW - 100),
    review_deadline: String(NOW - 100),
    ended_at: String(NOW - 100),
    payout_hold: "0",
    disputed_at: "null",
    ba_voting_window: "86400",
    ba_recruit_count: "0",
    drawn: "false",
    sealed_votes: "0",
    opened_votes: "0",
  });
  // As many again that are still running: none of them is due.
  await database.insert("onchain.working_contract", ROWS, {
    id: "'0x1' || lpad(to_hex(i), 39, '0')",
    phase: "(array['created', 'matched', 'delivered'])[1 + i % 3]",
    settled: "false",
    match_deadline: String(NOW + 1000),
    delivery_deadline: String(NOW + 2000),
    review_deadline: String(NOW + 3000),
    payout_hold: "0",
    drawn: "false",
  });
  await database.insert("app.terms", ROWS, {
    ...TERMS,
    id: "'0x' || lpad(to_hex(i), 40, '0')",
    body_hash: "i::text",
  });
  await database.insert("onchain.vote", ROWS, {
    contract_id: "'0x' || lpad(to_hex(i), 40, '0')",
    backup_agent: `'0x${"ba".repeat(20)}'`,
    votes: "1",
    position: "0",
    claimed: done,
    reward_deferred: "false",
  });
  await database.insert("onchain.deferred_payout", ROWS, {
    contract_id: "'0x' || lpad(to_hex(i), 40, '0')",
    payee: `'0x${"ba".repeat(20)}'`,
    amount: `case when ${done} then 0 else 5 end`,
  });
  await database.insert("app.operation", ROWS, {
    kind: "'settle'",
    escrow: "'0x' || lpad(to_hex(i + 500), 40, '0')",
    target: "'0x'",
    data: "'0x'",
    gas_limit: "100000",
    once_key: "'done:' || i",
    state: `case when ${done} then 'final' else (array['queued', 'sent'])[1 + i % 2] end`,
    batch_id: `case when ${done} then i / 10 end`,
    signer: `'${SIGNER}'`,
  });
  await database.insert("app.batch", ROWS, {
    signer: `'${SIGNER}'`,
    epoch: "1",
    account_nonce: "i",
    attempts: "'[]'::jsonb",
    operation_ids: "array[i]",
    state: "'final'",
    block_number: "i",
    block_hash: "'0x'",
  });
  await database.pool.query("insert into app.signer_epoch (signer, epoch) values ($1, 1)", [SIGNER]);
  await database.pool.query("analyze");
}

/** Rows that Postgres read from tables and indexes while `work` ran. */
async function rowsRead(work: () => Promise<unknown>, { pool } = database): Promise<number> {
  const read = async (): Promise<number> => {
    await pool.query("select pg_stat_force_next_flush()");
    const { rows } = await pool.query<{ read: string }>(
      `select (select sum(seq_tup_read) from pg_stat_user_tables)
        + (select sum(idx_tup_read) from pg_stat_user_indexes) as read`,
    );
    return Number(rows[0]?.read);
  };
  const before = await read();
  await work();
  return (await read()) - before;
}

it("finds the due ones among 40,000 contracts by reading little more than those", async () => {
  const deployment = readDeployment(deploymentPath);
  const due: string[] = [];
  const read = await rowsRead(async () => {
    const round = { now: NOW, deployment, positions: new Map() };
    for await (const { kind } of findDue(database.db, round)) due.push(kind);
  });

  // All are due since NOW - 100.
  expect(await countLate(database.db, NOW)).toBe(0);
  const readLate = await rowsRead(async () => {
    expect(await countLate(database.db, NOW + 200)).toBe(OPEN);
  });
  expect(readLate).toBeLessThan(OPEN * 50);
  expect(due.filter((kind) => kind === "settle")).toHaveLength(OPEN);
  expect(due.filter((kind) => kind === "claim")).toHaveLength(OPEN / 4);
  expect(read).toBeLessThan(OPEN * 50);
});

it("finds the stakes that are due beside 20,000 draws of their agents, but none whose agent a dispute awaits", async () => {
  const [awaited, free]: Address[] = [`0x${"a1".repeat(20)}`, `0x${"a2".repeat(20)}`];
  const agents = `'{${awaited},${free}}'::text[]`;
  const id = "'0x7' || lpad(to_hex(i), 39, '0')";
  await database.insert("onchain.working_contract", 1, {
    id,
    ...DISPUTED,
    disputed_at: String(NOW - 100),
    ba_recruit_count: "3",
    drawn: "true",
  });
  await database.insert("onchain.draw", 1, { contract_id: id, backup_agent: `'${awaited}'` });
  await database.insert("onchain.draw", ROWS, {
    contract_id: "'0x' || lpad(to_hex(i), 40, '0')",
    backup_agent: `(${agents})[1 + i % 2]`,
  });
  const backup_agent = `(${agents})[i]`;
  await database.insert("onchain.stake", 2, {
    agent: backup_agent,
    amount: "1",
    since: "1",
    releasable_at: String(NOW - 50),
  });
  await database.insert("app.operation", 2, {
    kind: "'request-unstake'",
    caller: backup_agent,
    target: "'0x'",
    data: "'0x'",
    gas_limit: "100000",
    state: "'final'",
  });
  await database.pool.query("analyze");
  const round = { now: NOW, deployment: readDeployment(deploymentPath), positions: new Map() };
  const due: (string | null | undefined)[] = [];
  const find = async () => {
    for await (const { kind, caller } of findDue(database.db, round)) {
      if (kind === "withdraw-stake") due.push(caller);
    }
  };
  // In addition a thousand draws of each agent, with their contracts.
  expect(await rowsRead(find)).toBeLessThan(OPEN * 50 + 4_500);
  expect(due).toEqual([free]);
  await database.pool.query("delete from onchain.stake");
});

it("walks a bounded part of the due escrows of strangers, and still finds its own contracts", async () => {
  const STRANGERS = 5_000;
  const columns = {
    phase: "'created'",
    settled: "false",
    match_deadline: String(NOW - 200),
    payout_hold: "0",
    drawn: "false",
  };
  await database.insert("onchain.working_contract", STRANGERS, {
    id: "'0x2' || lpad(to_hex(i), 39, '0')",
    ...columns,
  });
  await database.insert("onchain.vote", STRANGERS, {
    contract_id: "'0x2' || lpad(to_hex(i), 39, '0')",
    backup_agent: `'0x${"ba".repeat(20)}'`,
    claimed: "false",
    reward_deferred: "true",
  });
  await database.insert("onchain.deferred_payout", STRANGERS, {
    contract_id: "'0x2' || lpad(to_hex(i), 39, '0')",
    payee: `'0x${"ba".repeat(20)}'`,
    amount: "1",
  });
  await database.pool.query("analyze");
  const round = { now: NOW, deployment: readDeployment(deploymentPath), positions: new Map() };
  const found = new Set<string>();
  // The rows of one round, and one more to begin again.
  for (let rounds = 0; rounds < STRANGERS / 1_000 + 1; rounds++) {
    const read = await rowsRead(async () => {
      for await (const due of findDue(database.db, round)) found.add(`${due.kind} ${due.escrow}`);
    });
    expect(read).toBeLessThan(STRANGERS * 5);
  }
  expect(await countLate(database.db, NOW + 200)).toBe(OPEN);
  const kinds = [...found].map((name) => name.split(" ")[0]);
  expect(kinds.filter((kind) => kind === "settle")).toHaveLength(OPEN);
  expect(kinds.filter((kind) => kind === "claim")).toHaveLength(OPEN / 4);
  expect(kinds.filter((kind) => kind === "claim-deferred")).toHaveLength(OPEN);
});

it("finds what a worker earned behind 10,000 escrows that strangers deployed and never paid", async () => {
  const worker: Address = `0x${"3e".repeat(20)}`;
  const named = {
    id: "'0x3' || lpad(to_hex(i), 39, '0')",
    phase: "'none'",
    settled: "false",
    worker: `'${worker}'`,
  };
  await database.insert("onchain.working_contract", 10_000, named);
  const times = { created_at: "1", matched_at: "2", settled_at: String(NOW) };
  const paid = {
    ...named,
    id: "'0x4' || i",
    phase: "'resolved'",
    settled: "true",
    worker_payout: "5000000",
    ...times,
  };
  await database.insert("onchain.working_contract", 2, paid);
  // The terms of the second one are unknown here, as those of an escrow that was opened without this service.
  await database.insert("app.terms", 1, { ...TERMS, id: "'0x4' || i", body_hash: "'0x4'" });
  const earned = await readEarnings({ db: database.db, clock: { now: () => NOW } } as never, worker);
  expect(earned.at(-1)).toMatchObject({ contracts: 1, received: "5.0" });
});

it("finds until when votes lock a stake beside 20,000 votes that no longer can", async () => {
  const agent: Address = `0x${"5e".repeat(20)}`;
  const vote = { backup_agent: `'${agent}'`, position: "0", claimed: "true", reward_deferred: "false" };
  const dispute = { phase: "'tallied'", settled: "true", disputed_at: String(NOW), drawn: "false" };
  await database.insert("onchain.working_contract", 10, {
    id: "'0x5' || lpad(to_hex(i), 39, '0')",
    ba_voting_window: "3600 * i",
    ...dispute,
  });
  const at = (time: number) => ({ ...vote, sealed_at: String(time) });
  await database.insert("onchain.vote", ROWS, {
    contract_id: "'0x' || lpad(to_hex(i), 40, '0')",
    ...at(NOW - 8 * 86_400),
  });
  await database.insert("onchain.vote", 10, {
    contract_id: "'0x5' || lpad(to_hex(i), 39, '0')",
    ...at(NOW - 8 * 86_400 + 1),
  });
  await database.insert("onchain.stake", 1, {
    agent: `'${agent}'`,
    amount: "1",
    since: "1",
    releasable_at: String(NOW),
  });
  await database.pool.query("analyze");
  const deps = {
    db: database.db,
    clock: { now: () => NOW, knownBlock: () => 0n },
    readParameters: async () => ({ baEligibilityStake: 1_000 }),
  } as unknown as Deps;
  const read = await rowsRead(async () => {
    const { releasableAt } = await viewStake(deps, agent);
    expect(releasableAt).toBe(isoTime(NOW + 36_000 + 86_400));
  });
  expect(read).toBeLessThan(200);
});

it("finds an entrusted vote that is due in the first round beside 5,000 that were never opened", async () => {
  const vote = {
    backup_agent: `'0x${"be".repeat(20)}'`,
    commitment: "'0xc0'",
    sealed_at: String(NOW),
    position: "0",
  };
  const unclaimed = { claimed: "false", reward_deferred: "false" };
  await database.insert("onchain.vote", 5_000, {
    contract_id: "'0x' || lpad(to_hex(i + 100), 40, '0')",
    ...vote,
    ...unclaimed,
  });
  const id = "'0xf' || lpad(to_hex(i), 39, '0')";
  await database.insert("onchain.working_contract", 1, {
    id,
    ...DISPUTED,
    disputed_at: String(NOW - 3600),
    ba_recruit_count: "0",
    drawn: "false",
  });
  await database.insert("onchain.vote", 1, { contract_id: id, ...vote, ...unclaimed });
  await database.insert("app.entrusted_vote", 1, {
    contract_id: id,
    backup_agent: vote.backup_agent,
    commitment: vote.commitment,
    votes: "1",
    salt: `'0x${"5a".repeat(32)}'`,
  });
  await database.pool.query("analyze");
  const round = { now: NOW, deployment: readDeployment(deploymentPath), positions: new Map() };
  const due: string[] = [];
  for await (const { kind } of findDue(database.db, round)) due.push(kind);
  expect(due.filter((kind) => kind === "open-vote")).toHaveLength(1);
});

it("leases a batch beside 20,000 finished operations", async () => {
  const context = {
    db: database.db,
    signer: SIGNER,
    epoch: 1n,
    options: { maxBatchSize: 100 },
    memory: createMemory(),
  };
  const head = { number: 5n, hash: "0x", timestamp: NOW, gasLimit: 60_000_000n, baseFeePerGas: 1n } as const;
  let leased = 0;
  const read = await rowsRead(async () => {
    const gasPolicy = { allowance: 0, budget: 0, perFee: 0 };
    expect((await readOutboxState(database.db, { caller: SIGNER, gasPolicy })).hasRoom).toBe(true);
    const [queued] = await readOpenOperations(database.db);
    expect(queued).toMatchObject({ state: "queued", kind: "settle", count: OPEN / 2 });
    expect(await readWork(context as SignerContext)).toEqual({ isOpen: false, isWaiting: true });
    leased = (await leaseOperations(context as SignerContext, head)).operations.length;
  });

  expect(leased).toBe(OPEN / 2);
  expect(read).toBeLessThan(OPEN * 50);
});

it("reads little although its plans are from before 20,000 operations came, and nothing has counted these", async () => {
  const { db, pool } = growing;
  const gasPolicy = { allowance: 10, budget: 10, perFee: 0 };
  const context = { db, signer: SIGNER, epoch: 1n, options: { maxBatchSize: 100 }, memory: createMemory() };
  const head = { number: 5n, hash: "0x", timestamp: NOW, gasLimit: 60_000_000n, baseFeePerGas: 1n } as const;
  const rounds = async () => {
    // Postgres keeps a plan after five executions.
    for (let round = 0; round < 6; round++) {
      await readOutboxState(db, { caller: SIGNER, gasPolicy });
      await leaseOperations(context as SignerContext, head);
      await readOpenOperations(db);
    }
  };
  const operations = { kind: "'settle'", target: "'0x'", data: "'0x'", gas_limit: "100000" };
  const batches = { epoch: "1", attempts: "'[]'::jsonb", operation_ids: "array[i]", block_hash: "'0x'" };
  await pool.query("alter table app.operation set (autovacuum_enabled = off)");
  await pool.query("insert into app.signer_epoch (signer, epoch) values ($1, 1)", [SIGNER]);
  await growing.insert("app.operation", 1, { ...operations, escrow: "'0x1'" });
  await rounds();
  await growing.insert("app.batch", 1, { ...batches, signer: "'0x1'", account_nonce: "1", state: "'sent'" });
  await growing.insert("app.operation", ROWS, { ...operations, state: "'final'", batch_id: "i + 1" });
  expect(await rowsRead(rounds, growing)).toBeLessThan(2_000);
});

it("finds signers without an owner", async () => {
  let found: Address[] = [];
  const read = await rowsRead(async () => {
    found = await readUnattended(database.db, 0);
  });
  expect(found).toEqual([SIGNER]);
  expect(read).toBeLessThan(100);
});

it("finds the batches of a signer that has rested for 20,000 batches of another one", async () => {
  const resting: Address = `0x${"52".repeat(20)}`;
  await database.insert("app.batch", ROWS / 5, {
    signer: `'${resting}'`,
    epoch: "1",
    account_nonce: "i",
    attempts: "'[]'::jsonb",
    operation_ids: "array[i]",
    state: "'final'",
    block_number: "0",
    block_hash: "'0x'",
  });
  await database.pool.query("analyze app.batch");
  const block = { number: 0n, hash: "0x" };
  const context = {
    db: database.db,
    signer: resting,
    options: { confirmations: 12 },
    publicClient: { getBlock: async () => block, getTransactionCount: async () => ROWS },
    memory: createMemory(),
  } as unknown as SignerContext;
  const read = await rowsRead(() =>
    followBatches(context, { number: 30_000n, hash: "0x" } as unknown as Head),
  );
  expect(read).toBeLessThan(ROWS / 2);
});

it("finds abandoned batches by their operations", async () => {
  const context = { db: database.db, signer: SIGNER } as SignerContext;
  const read = await rowsRead(() => recordAbandoned(context, [5n, 6n], {} as Head));
  expect(read).toBeLessThan(100);
});

it("leases webhooks that respond beside 20,000 slow ones that are due", async () => {
  const due = {
    ...{ owner: "'0x' || i", url: "''", wrapped_secret: "''", master_key_id: "''" },
    ...{ sent_up_to: "0", wanted_up_to: "1", next_attempt_at: "now() - interval '1 hour'" },
  };
  await database.insert("app.webhook", 20_000, { id: "'slow ' || i", ...due });
  await database.insert("app.webhook", 10, { id: "'fast ' || i", ...due, last_success_at: "now()" });
  await database.pool.query("analyze app.webhook");
  let leased: string[] = [];
  const read = await rowsRead(async () => {
    leased = (await leaseDue(database.db, { lane: "fast", limit: 100, except: [] })).map(({ id }) => id);
  });
  expect(leased.filter((id) => id.startsWith("fast"))).toHaveLength(10);
  expect(read).toBeLessThan(500);
});

it("counts late settlements up to a thousand: beyond that the count would take longer than a scrape", async () => {
  const id = "'0x6' || lpad(to_hex(i), 39, '0')";
  const late = { phase: "'delivered'", settled: "false", drawn: "false", payout_hold: "0" };
  await database.insert("onchain.working_contract", 3_000, {
    id,
    ...late,
    review_deadline: String(NOW - 500),
  });
  await database.insert("app.terms", 3_000, { ...TERMS, id, body_hash: id });
  await database.pool.query("analyze");
  const read = await rowsRead(async () => {
    expect(await countLate(database.db, NOW)).toBe(1_000);
  });
  expect(read).toBeLessThan(25_000);
});
