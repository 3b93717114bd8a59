/**
 * The mechanisms to switch off, one at a time. Each mutant must make its tests fail; otherwise the tests prove nothing.
 * `npm run test:faults -- --mutants [name…]` applies each mutant to a copy of the sources and runs its tests there.
 */

/**
 * @typedef {object} Mutant
 * @property {string} file
 * @property {[from: string, to: string, file?: string][]} edits each `from` occurs exactly once in its file
 * @property {string} tests file of the tests
 * @property {string} only pattern of the tests that must fail
 */

/** @type {Record<string, Mutant>} */
export const MUTANTS = {
  "published-forgotten": {
    file: "src/payments/paid-call.ts",
    edits: [["isNotNull(operation.publishedAt)", "isNotNull(operation.transactionHash)"]],
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "that was published is never answered",
  },
  "published-quoted": {
    file: "src/payments/paid-call.ts",
    edits: [["if (state.published !== null) {", "if (state.published === undefined) {"]],
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "that was published is never answered",
  },
  "stake-answered-forever": {
    file: "src/relayer/limits.ts",
    edits: [["const STAKE_REPEAT_SECONDS = 3600;", "const STAKE_REPEAT_SECONDS = 36_000;"]],
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "a pending stake is quoted once",
  },
  "complaint-replayed": {
    file: "src/features/complaints/routes.ts",
    edits: [["    if (same) return same;\n", "    void same;\n"]],
    tests: "test/e2e/signed-actions.test.ts",
    only: "gets its first complaint again",
  },
  "gas-price-zero": {
    file: "src/relayer/transaction.ts",
    edits: [["const gasPrice = toHex(effectiveGasPrice(fees, head));", 'const gasPrice = fees && "0x0";']],
    tests: "test/integration/relayer-wallets.test.ts",
    only: "only at gas price 0",
  },
  "wallets-unbounded": {
    file: "src/relayer/claim.ts",
    edits: [["allowances: await readAllowances(tx, waiting)", "allowances: await readAllowances(tx, [])"]],
    tests: "test/integration/relayer-wallets.test.ts",
    only: "passes every simulation",
  },
  "wallet-retried": {
    file: "src/relayer/results.ts",
    edits: [["liar !== undefined || row.tries >= FAILED_TRIES", "row.tries >= FAILED_TRIES"]],
    tests: "test/integration/relayer-wallets.test.ts",
    only: "passes every simulation",
  },
  "signature-unnoticed": {
    file: "src/relayer/operations.ts",
    edits: [["    signed: true,\n", ""]],
    tests: "test/integration/relayer-wallets.test.ts",
    only: "signs actions for simulations only",
  },
  "signed-action-unthrottled": {
    file: "src/features/agents/delegation.ts",
    edits: [["const gasLimits = await limitsOfSigned(deps, agent);", "const gasLimits = undefined;"]],
    tests: "test/e2e/contract-payments.test.ts",
    only: "with actions that it signs",
  },
  "sign-in-unlocked": {
    file: "src/features/agents/delegation.ts",
    edits: [[" for update", ""]],
    tests: "test/integration/auth-delegation.test.ts",
    only: "while the keys are being revoked",
  },
  "refund-unthrottled": {
    file: "src/payments/direct-transfer.ts",
    edits: [
      [
        "  const gasLimits = await limitsOf(deps, payment.from);\n  return",
        "  const gasLimits = undefined;\n  return",
      ],
    ],
    tests: "test/e2e/contract-payments.test.ts",
    only: "for the refund of a direct transfer",
  },
  "liar-unlimited": {
    file: "src/relayer/limits.ts",
    edits: [
      ["if (state.isProven || !(await isContract", "if (state.isProven !== null || !(await isContract"],
    ],
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "refuse a contract wallet whose newest signature failed",
  },
  "gas-unreserved": {
    file: "src/relayer/outbox.ts",
    edits: [["gasLimits ?? { allowance: 0, budget: 0 }", "{ allowance: 0, budget: 0 }"]],
    tests: "test/integration/gas-accounts.test.ts",
    only: "pay at the same moment",
  },
  "gas-counted-alone": {
    file: "src/relayer/outbox.ts",
    edits: [["where earlier.n < call.n and", "where false and"]],
    tests: "test/integration/gas-accounts.test.ts",
    only: "pay at the same moment",
  },
  "gas-counted-at-once": {
    file: "src/relayer/outbox.ts",
    edits: [["{ inSequence: true }", "{ inSequence: false }"]],
    tests: "test/integration/gas-accounts.test.ts",
    only: "pay at the same moment",
  },
  "failed-gas-uncounted": {
    file: "src/relayer/results.ts",
    edits: [["hasFailures: failures.size > 0", "hasFailures: false"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "once its block is deep",
  },
  "attempts-counted-at-once": {
    file: "src/features/contracts/create-contract.ts",
    edits: [['  { apart: "caller" },\n', ""]],
    tests: "test/e2e/contract-payments.test.ts",
    only: "attempts at the same moment",
  },
  "response-waits-for-others": {
    file: "src/payments/relayed-call.ts",
    edits: [[" for update of o skip locked)", " for update of o)"]],
    tests: "test/e2e/write-cost.test.ts",
    only: "a locked row holds up no other",
  },
  "refund-charged-to-poster": {
    file: "src/relayer/operations.ts",
    edits: [
      [
        '    "refund-direct-transfer",\n    action,\n',
        '    "refund-direct-transfer",\n    { ...action, caller: undefined },\n',
      ],
    ],
    tests: "test/e2e/contract-payments.test.ts",
    only: "for the refund of a direct transfer",
  },
  "gas-uncharged": {
    file: "src/relayer/gas-accounts.ts",
    edits: [["* o.gas_limit / sum(", "* 0 / sum("]],
    tests: "test/faults/crash.test.ts",
    only: "after it stored the receipt",
  },
  "gas-charged-again": {
    file: "src/relayer/gas-accounts.ts",
    edits: [[" - coalesce(before.gas_used, 0)", " - 0 * coalesce(before.gas_used, 0)"]],
    tests: "test/faults/reorg.test.ts",
    only: "row 46: a batch that a reorg removed",
  },
  "gas-of-first-receipt": {
    file: "src/relayer/gas-accounts.ts",
    edits: [["* o.gas_limit / sum(", "* (before.gas_used is null)::int * o.gas_limit / sum("]],
    tests: "test/faults/reorg.test.ts",
    only: "row 46: a batch that uses other gas",
  },
  "receipt-dated-by-replay": {
    file: "src/payments/paid-call.ts",
    edits: [
      [
        "receiptExtension(config, paid, settledAt)",
        "receiptExtension(config, paid, settledAt && Date.now())",
      ],
    ],
    tests: "test/faults/crash.test.ts",
    only: "with the response stored but not sent",
  },
  "unanswered-unknown": {
    file: "src/features/contracts/actions.ts",
    edits: [["first ?? (await storeOperation", "(await storeOperation"]],
    tests: "test/faults/actions.test.ts",
    only: "before their responses are stored",
  },
  "opening-unknown": {
    file: "src/features/votes/ballots.ts",
    edits: [["onceKey: `open-vote:$", "onceKey: `opened-vote:$"]],
    tests: "test/faults/actions.test.ts",
    only: "before their responses are stored",
  },
  "complaint-filed-again": {
    file: "src/http/operation.ts",
    edits: [["if (key === undefined) return", 'if (key !== "") return']],
    tests: "test/faults/actions.test.ts",
    only: "key alone files",
  },
  "share-dated-by-repetition": {
    file: "src/features/encryption/routes.ts",
    edits: [[" = excluded.jwe then", " <> excluded.jwe then"]],
    tests: "test/faults/actions.test.ts",
    only: "after it is stored, gives",
  },
  "sent-when-claimed": {
    file: "src/webhooks/deliveries.ts",
    edits: [
      [
        "update app.webhook set claimed_until",
        "update app.webhook set sent_up_to = wanted_up_to, claimed_until",
      ],
    ],
    tests: "test/faults/crash.test.ts",
    only: "sends the same event again",
  },
  "pending-purged": {
    file: "src/keeper/purge.ts",
    edits: [["where is_open or is_live is null", "where true"]],
    tests: "test/faults/crash.test.ts",
    only: "its texts stay",
  },
  "replica-believed": {
    file: "src/db/replica.ts",
    edits: [["(await next) ? replica", "(await next) !== undefined ? replica"]],
    tests: "test/integration/replica.test.ts",
    only: "has not replayed yet",
  },
  "replica-failure-is-ours": {
    file: "src/db/replica.ts",
    edits: [
      [
        "    } catch {\n      leftAloneUntil",
        "    } catch (error) {\n      if (error !== null) throw error;\n      leftAloneUntil",
      ],
    ],
    tests: "test/integration/replica.test.ts",
    only: "after the replica has stopped",
  },
  "replica-silence-endured": {
    file: "src/db/replica.ts",
    edits: [["Promise.race([asked, silence()])", "Promise.race([asked, silence().catch(() => asked)])"]],
    tests: "test/integration/replica.test.ts",
    only: "does not respond",
  },
  "unknown-target-is-fast": {
    file: "src/webhooks/deliveries.ts",
    edits: [["fast: sql`failures = 0 and last_success_at is not null and", "fast: sql`failures = 0 and"]],
    tests: "test/e2e/webhooks.test.ts",
    only: "keeps half of its capacity",
  },
  "lane-unbounded": {
    file: "src/webhooks/sender.ts",
    edits: [["CONCURRENCY[lane] - turns[lane].size;", "CONCURRENCY[lane];"]],
    tests: "test/e2e/webhooks.test.ts",
    only: "keeps half of its capacity",
  },
  "strangers-walked": {
    file: "src/keeper/keeper.ts",
    edits: [["const CANDIDATES = 1_000;", "const CANDIDATES = 1_000_000;"]],
    tests: "test/e2e/query-plans.test.ts",
    only: "the due escrows of strangers",
  },
  "walk-without-end": {
    file: "src/features/contracts/list-contracts.ts",
    edits: [["row_number() over (order by", "0 * row_number() over (order by"]],
    tests: "test/e2e/list-cost.test.ts",
    only: "a bounded number of rows",
  },
  "stale-head": {
    file: "src/relayer/send.ts",
    // Either alone would do: a fresh head, and a check of how new it must be.
    edits: [
      ["      readHead(publicClient),\n", "      Promise.resolve(head),\n"],
      ["if (!isOnBranch)", "if (standsOn === undefined)"],
    ],
    tests: "test/integration/relayer-truth.test.ts",
    only: "no older state",
  },
  "node-behind": {
    file: "src/relayer/send.ts",
    edits: [["if (!isOnBranch)", "if (standsOn === undefined)"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "node is behind",
  },
  "answer-of-what-is-gone": {
    file: "src/payments/relayed-call.ts",
    edits: [["if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 })))", "if (target.timeoutMs < 0)"]],
    tests: "test/integration/event-log.test.ts",
    only: "undoes a match",
  },
  "checkpoint-held": {
    file: "src/events/log-writer.ts",
    edits: [
      [
        "if (!(await indexHolds(tx, state))) return false;",
        "if ((await indexProgress(tx)) === null || !(await indexHolds(tx, state))) return false;",
      ],
    ],
    tests: "test/integration/event-log.test.ts",
    only: "does not block the indexer",
  },
  "one-lock-for-two": {
    file: "src/db/client.ts",
    edits: [["eventLog: 7_402_005", "eventLog: 7_402_003"]],
    tests: "test/integration/relayer-queue.test.ts",
    only: "while the log is written",
  },
  "failure-told-at-once": {
    file: "src/relayer/results.ts",
    edits: [['isHere && isDeep && row.state === "sent"', 'isHere && row.state === "sent"']],
    tests: "test/integration/relayer-truth.test.ts",
    only: "failure on chain",
  },
  "newest-block-alone": {
    file: "src/relayer/claim.ts",
    edits: [["where state = 'mined' and block_hash", "where state = 'mined' and false and block_hash"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "own block is gone",
  },
  "promise-forgotten": {
    file: "src/relayer/choose.ts",
    edits: [["(isPromised || (caller", "(false || (caller"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "keeps a rival behind",
  },
  "batch-oversized": {
    file: "src/relayer/choose.ts",
    edits: [["bytes + size > MAX_BATCH_BYTES", "false"]],
    tests: "test/unit/relayer/choose.test.ts",
    only: "beyond what nodes accept",
  },
  "shared-endless": {
    file: "src/relayer/choose.ts",
    edits: [['caller !== null && onEscrow === "shared"', "false"]],
    tests: "test/unit/relayer/choose.test.ts",
    only: "takes no more shared operations",
  },
  "behind-believed": {
    file: "src/relayer/follow.ts",
    edits: [["blockNumber !== null && blockNumber > head.number", "blockNumber !== blockNumber"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "reopens no final batch",
  },
  "refusal-unnoticed": {
    file: "src/relayer/follow.ts",
    edits: [["context.memory.isAllowed = false;", ""]],
    tests: "test/integration/relayer-recovery.test.ts",
    only: "when a batch reverts as a whole",
  },
  "vain-settlement-counted": {
    file: "src/keeper/keeper.ts",
    edits: [["reason is distinct from 'WrongStatus'", "true"]],
    tests: "test/integration/keeper-lifecycle.test.ts",
    only: "settles without delay",
  },
  "refunded-texts-dropped": {
    file: "src/payments/paid-call.ts",
    edits: [["  await call.restore?.();\n", ""]],
    tests: "test/e2e/unpaid-texts.test.ts",
    only: "after the match deadline, too",
  },
  "unsettled-forgotten": {
    file: "src/keeper/purge.ts",
    edits: [["c.phase <> 'none' and not c.settled", "false"]],
    tests: "test/e2e/unpaid-texts.test.ts",
    only: "even if no one asks for it",
  },
  "late-refund-stranded": {
    file: "src/keeper/keeper.ts",
    edits: [
      [
        "(select e.id from app.expired_attempt e where",
        "(select e.id from app.expired_attempt e where false and",
      ],
    ],
    tests: "test/e2e/unpaid-texts.test.ts",
    only: "even if no one asks for it",
  },
  "no-caretaker": {
    file: "src/relayer/relayer.ts",
    edits: [["await followBatches({", "if (signer.length < 0) await followBatches({"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "removed signer has signed",
  },
  "absence-is-proof": {
    file: "src/relayer/follow.ts",
    edits: [["if (use === null || use.isOurs ||", "if (use === null ||"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "a missing receipt as proof",
  },
  "given-up-forgotten": {
    file: "src/relayer/results.ts",
    edits: [['if (receipt?.status !== "success" ||', "if (receipt !== null ||"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "given up was applied",
  },
  "broadcast-before-commit": {
    file: "src/relayer/send.ts",
    edits: [
      [
        '  await crashPoint("after_signing");',
        '  await broadcast(context, attempt);\n  await crashPoint("after_signing");',
      ],
    ],
    tests: "test/faults/crash.test.ts",
    only: "before the batch is stored",
  },
  "never-sent-again": {
    file: "src/relayer/follow.ts",
    edits: [
      [
        "    if (nonce === one.accountNonce && (await replaceIfStuck(context, one, head))) continue;\n    await rebroadcast(context, one, head);\n",
        "",
      ],
    ],
    tests: "test/faults/crash.test.ts",
    only: "stored but not broadcast",
  },
  "dropped-for-good": {
    file: "src/relayer/follow.ts",
    edits: [
      [
        "    if (nonce === one.accountNonce && (await replaceIfStuck(context, one, head))) continue;\n    await rebroadcast(context, one, head);\n",
        "",
      ],
    ],
    tests: "test/faults/node.test.ts",
    only: "row 14",
  },
  "no-epoch": {
    file: "src/relayer/context.ts",
    edits: [["::bigint for share", "::bigint or true for share"]],
    tests: "test/integration/relayer-recovery.test.ts",
    only: "zombie",
  },
  "silent-owner-kept": {
    file: "src/relayer/context.ts",
    edits: [['const LOCK_SILENCE = "20s";', 'const LOCK_SILENCE = "0";']],
    tests: "test/faults/ownership.test.ts",
    only: "row 3: a relayer that hangs",
  },
  "silent-indexer-kept": {
    file: "src/indexer/supervision/indexer.ts",
    edits: [['const LOCK_SILENCE = "40s";', 'const LOCK_SILENCE = "0";']],
    tests: "test/e2e/index-watch.test.ts",
    only: "goes silent",
  },
  "no-lock": {
    file: "src/relayer/context.ts",
    edits: [
      ["if (locked.rows[0]?.taken !== true) {", "if (locked.rows.length === 0) {"],
      ["return rows[0]?.owned === true;", "return rows.length === 0;"],
    ],
    tests: "test/faults/ownership.test.ts",
    only: "row 4",
  },
  "gas-not-asked": {
    file: "src/relayer/send.ts",
    edits: [["if (balance >= cost + committed) return true;", "if (balance >= 0n) return true;"]],
    tests: "test/faults/ownership.test.ts",
    only: "row 18",
  },
  "quotes-unlimited": {
    file: "src/payments/paid-call.ts",
    edits: [["await deps.quoting(find)", "await find()"]],
    tests: "test/e2e/quotes-in-turn.test.ts",
    only: "passes quotes that hang",
  },
  "flight-not-counted": {
    file: "src/relayer/send.ts",
    edits: [["balance >= cost + committed", "balance >= cost"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "does not cover beside those in flight",
  },
  "repetition-unknown": {
    file: "src/payments/paid-call.ts",
    edits: [["if (earlier === null || authorization.payer !== call.caller)", "if (earlier !== 0n)"]],
    tests: "test/faults/crash.test.ts",
    only: "repeated request gets the stored response",
  },
  "answer-not-kept": {
    file: "src/payments/relayed-call.ts",
    edits: [
      ["  if (stored.response !== null) return replayOf(stored.response);\n", ""],
      ["  if (row.response !== null) return replayOf(row.response);\n", ""],
      ["  if (kept !== undefined) return applied;", "  if (kept !== null) return applied;"],
    ],
    tests: "test/e2e/contract-payments.test.ts",
    only: "same bytes to a repetition",
  },
  "deaf-to-broken-connections": {
    file: "src/db/client.ts",
    edits: [['  pool.on("connect", (connection) => connection.on("error", onError));\n', ""]],
    tests: "test/integration/database-connection.test.ts",
    only: "fails the transaction",
  },
  "connection-kept": {
    file: "src/db/client.ts",
    edits: [
      [
        "Object.assign(drizzle(pool, CASING), { transaction: transactionsOf(pool) })",
        "drizzle(pool, CASING)",
      ],
    ],
    tests: "test/integration/database-connection.test.ts",
    only: "frees its place",
  },
  "outage-unnamed": {
    file: "src/http/responses.ts",
    edits: [
      [
        "  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENETUNREACH|08|53|57P|25006|25P03|40001|40P01)/;",
        "  /^never$/;",
      ],
    ],
    tests: "test/faults/database.test.ts",
    only: "unreachable",
  },
  "disk-full-unnamed": {
    file: "src/http/responses.ts",
    edits: [["|08|53|57P|", "|08|57P|"]],
    tests: "test/faults/database.test.ts",
    only: "row 33",
  },
  "read-only-unnamed": {
    file: "src/http/responses.ts",
    edits: [["|57P|25006|", "|57P|"]],
    tests: "test/faults/database.test.ts",
    only: "accepts no writes",
  },
  "read-only-kept": {
    file: "src/db/client.ts",
    edits: [["connection.release(isReadOnly);", "connection.release();"]],
    tests: "test/integration/database-connection.test.ts",
    only: "accepts no writes",
  },
  "silence-endured": {
    file: "src/db/client.ts",
    edits: [["return socket.setTimeout(silenceMs, () => socket.destroy());", "return socket;"]],
    tests: "test/faults/database.test.ts",
    only: "go silent",
  },
  "lease-kept": {
    file: "src/db/client.ts",
    edits: [["return askedAt < currentUntil;", "return currentUntil > 0;"]],
    tests: "test/integration/auth-keys.test.ts",
    only: "goes silent",
  },
  "no-poll": {
    file: "src/relayer/outbox.ts",
    edits: [["const POLL_INTERVAL_MS = 1000;", "const POLL_INTERVAL_MS = 3_600_000;"]],
    tests: "test/faults/database.test.ts",
    only: "row 8",
  },
  "database-restart-unseen": {
    file: "src/indexer/supervision/index-watch.ts",
    edits: [["if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();", ""]],
    tests: "test/faults/indexer.test.ts",
    only: "row 9",
  },
  "process-crash-unheard": {
    file: "src/indexer/supervision/index-watch.ts",
    edits: [["if (code === SQLSTATE.crashShutdown) onCrash();", ""]],
    tests: "test/e2e/index-watch.test.ts",
    only: "reports the crash",
  },
  "earlier-time-shown": {
    file: "src/db/onchain.ts",
    edits: [
      [
        "if (row === undefined ? await isWhole(db) : row.indexIsWhole) return;",
        "if (db !== undefined) return;",
      ],
    ],
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "that it already showed",
  },
  "state-by-number": {
    file: "src/relayer/transaction.ts",
    edits: [
      [
        '({ hash }: Pick<Head, "hash">) => ({ blockHash: hash, requireCanonical: true })',
        "({ number }: Head) => ({ blockNumber: toHex(number) })",
      ],
    ],
    tests: "test/integration/relayer-truth.test.ts",
    only: "on the block that one node names",
  },
  "choice-of-two-moments": {
    file: "src/relayer/claim.ts",
    edits: [
      ["blocksUnder(claimed, surroundings)", "blocksUnder(claimed, await readSurroundings(tx, signer))"],
    ],
    tests: "test/integration/relayer-truth.test.ts",
    only: "very moment of the choice",
  },
  "taken-back-refused": {
    file: "src/features/contracts/actions.ts",
    edits: [
      ["if (row.isReorganized) throw reorganized();", ""],
      ["throw rows[0]?.unsure === true ? reorganized() : noContract(id);", "throw noContract(id);"],
    ],
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "no one is refused",
  },
  "answer-before-index": {
    file: "src/payments/relayed-call.ts",
    edits: [
      ["  if (!(await waitForIndexed(db, target))) throw settlementPending();\n", ""],
      ["  if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 }))) throw settlementPending();\n", ""],
    ],
    tests: "test/faults/indexer.test.ts",
    only: "row 10",
  },
  "standstill-unseen": {
    file: "src/indexer/supervision/index-watch.ts",
    edits: [["      onStandstill();\n", ""]],
    tests: "test/faults/indexer.test.ts",
    only: "hangs",
  },
  "abandoned-rows-unseen": {
    file: "src/indexer/supervision/index-watch.ts",
    edits: [["    onAbandoned(index);\n", ""]],
    tests: "test/faults/indexer.test.ts",
    only: "row 21",
  },
  "anchor-unseen": {
    file: "src/indexer/supervision/index-watch.ts",
    edits: [["    if (await hasLostAnchor(finalBlock)) return abandon(index);\n", ""]],
    tests: "test/faults/indexer.test.ts",
    only: "not missed",
  },
  "undone-in-one-round": {
    file: "src/events/log-writer.ts",
    edits: [[" ?? (tail.length === TAIL ? lost.at(-1) : undefined)", ""]],
    tests: "test/integration/event-log.test.ts",
    only: "more events than it checks",
  },
  "own-block-unseen": {
    file: "src/relayer/follow.ts",
    edits: [
      ["standing.set(mined.blockHash, await stands(context, mined))", "standing.set(mined.blockHash, true)"],
    ],
    tests: "test/integration/relayer-truth.test.ts",
    only: "rechecks a batch",
  },
  "not-anchored": {
    file: "src/relayer/follow.ts",
    edits: [["newest === undefined || stands(context, newest)", "newest?.id !== 0n"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "records nothing",
  },
  "gap-unfilled": {
    file: "src/relayer/relayer.ts",
    edits: [
      ["isBehindGap(context, head)) return", "isBehindGap(context, head) && signer.length === 0) return"],
    ],
    tests: "test/integration/relayer-truth.test.ts",
    only: "fills an account nonce",
  },
  "unaffordable-replacement": {
    file: "src/relayer/replace.ts",
    edits: [["if (balance < gas * fees.maxFeePerGas) {", "if (balance < 0n) {"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "can pay for",
  },
  "expiry-waits-for-fees": {
    file: "src/relayer/relayer.ts",
    edits: [["      await rejectExpired(context, head);\n", ""]],
    tests: "test/integration/relayer-queue.test.ts",
    only: "beyond its cap",
  },
  "pause-ends-returns": {
    file: "src/relayer/send.ts",
    edits: [["(TRANSFER_FAILURES.has(reason) || PAYS_OUT.has(row.kind))", "TRANSFER_FAILURES.has(reason)"]],
    tests: "test/integration/relayer-queue.test.ts",
    only: "refund of a direct transfer",
  },
  "others-event-consumes": {
    file: "src/payments/direct-transfer.ts",
    edits: [["return args.counterparty.toLowerCase() === from;", "return args.counterparty !== null;"]],
    tests: "test/faults/payments.test.ts",
    only: "winner's own transaction",
  },
  "opened-for-good": {
    file: "src/features/contracts/create-contract.ts",
    edits: [["row.is_opened && (row.is_live || !(await wasReorganized(deps, id)))", "row.is_opened"]],
    tests: "test/e2e/contract-payments.test.ts",
    only: "removed the contract for good",
  },
  "half-answer-awaited": {
    file: "src/chain/clients.ts",
    edits: [
      [
        "async fetchFn(input, init) {",
        "async fetchFn(input, init) {\n      if (!batch) return fetch(input, init);",
      ],
    ],
    tests: "test/unit/chain/transport.test.ts",
    only: "no longer than the time-out",
  },
  "internal-error-is-revert": {
    file: "src/chain/errors.ts",
    edits: [
      ["if (code !== EXECUTION_REVERTED && ", "if (code !== EXECUTION_REVERTED && code !== -32_603 && "],
    ],
    tests: "test/integration/auth-outage.test.ts",
    only: "uses up no try either",
  },
  "batch-by-place": {
    file: "src/chain/clients.ts",
    edits: [["answersOf(String(init?.body), text)", "text"]],
    tests: "test/unit/chain/transport.test.ts",
    only: "answers no call",
  },
  "upgrade-unheard": {
    file: "src/webhooks/target.ts",
    edits: [['call.on("upgrade"', 'call.on("upgraded"']],
    tests: "test/unit/webhooks/target.test.ts",
    only: "changes the protocol",
  },
  "lookup-followed": {
    file: "src/chain/clients.ts",
    edits: [["ccipRead: false", "ccipRead: undefined"]],
    tests: "test/integration/auth-delegation.test.ts",
    only: "make us fetch nothing",
  },
  "node-failure-is-verdict": {
    file: "src/relayer/send.ts",
    edits: [
      [
        "  } catch (error) {\n    await release(context, claimed);\n    throw error;\n  }\n  if (passed",
        '  } catch {\n    const rejected = claimed.map((row) => ({ row, reason: "PaymentFailed", data: "0x" }));\n    await storeUnsent(context, { rejected, held: [], released: [] });\n    return false;\n  }\n  if (passed',
      ],
    ],
    tests: "test/faults/node.test.ts",
    only: "fails every simulation",
  },
  "broadcast-answer-decides": {
    file: "src/relayer/send.ts",
    edits: [
      [
        '    logger.debug({ signer, hash, error }, "broadcast returned an error");\n',
        '    logger.debug({ signer, hash }, "broadcast returned an error");\n    throw error;\n',
      ],
      [
        '  await broadcast(context, attempt);\n  await crashPoint("after_broadcast");',
        [
          "  await broadcast(context, attempt).catch(() =>",
          "    fenced(context, async (tx) => {",
          "      await tx.execute(sql.raw(\"update app.operation set state = 'queued', batch_id = null where batch_id = \" + id));",
          '      await tx.execute(sql.raw("delete from app.batch where id = " + id));',
          "    }),",
          "  );",
          '  await crashPoint("after_broadcast");',
        ].join("\n"),
      ],
    ],
    tests: "test/faults/node.test.ts",
    only: "row 12",
  },
  "no-replacement": {
    file: "src/relayer/follow.ts",
    edits: [["if (nonce === one.accountNonce && (await replaceIfStuck(context, one, head))) continue;", ""]],
    tests: "test/faults/node.test.ts",
    only: "row 15",
  },
  "no-fee-cap": {
    file: "src/relayer/transaction.ts",
    edits: [
      ["  if (lowest > cap) return null;\n", ""],
      ["maxFeePerGas: wanted > cap ? cap : wanted,", "maxFeePerGas: wanted,"],
    ],
    tests: "test/faults/node.test.ts",
    only: "row 16",
  },
  "foreign-nonce-unseen": {
    file: "src/relayer/follow.ts",
    edits: [["else if (head.number - since >= MISSING_HEADS) {", "else if (since < 0n) {"]],
    tests: "test/faults/node.test.ts",
    only: "row 17",
  },
  "reorganisation-unseen": {
    file: "src/relayer/follow.ts",
    // Each alone would do, some more slowly: blocks are compared at each head, before anything is stored beside them
    // and before they are final, and the chain's nonces are compared with ours.
    edits: [
      ["    if (standing) break;", "    if (standing !== undefined) break;"],
      ["standing.set(mined.blockHash, await stands(context, mined))", "standing.set(mined.blockHash, true)"],
      ["newest === undefined || stands(context, newest)", "newest?.id !== 0n"],
      ["  await checkShortNonces(context, head);\n", ""],
    ],
    tests: "test/faults/reorg.test.ts",
    only: "series 1",
  },
  "final-is-final": {
    file: "src/relayer/follow.ts",
    edits: [
      [
        'eq(batch.signer, signer), inArray(batch.state, ["mined", "final"])',
        'eq(batch.signer, signer), inArray(batch.state, ["mined"])',
      ],
      ["  await checkShortNonces(context, head);\n", ""],
    ],
    tests: "test/faults/reorg.test.ts",
    only: "row 20",
  },
  "direct-transfer-lost": {
    file: "src/payments/paid-call.ts",
    edits: [["  if (!(await isCreditable(deps, action, payment))) return result;\n", "  return result;\n"]],
    tests: "test/faults/payments.test.ts",
    only: "row 22: an authorization",
  },
  "nothing-simulated": {
    file: "src/relayer/send.ts",
    edits: [["if (result === undefined || result.success) {", "if (result !== null) {"]],
    tests: "test/integration/relayer-queue.test.ts",
    only: "poisoned operation",
  },
  "expiry-left-to-chain": {
    file: "src/relayer/claim.ts",
    // Either alone would do: expired operations are ended, and operations whose simulation fails are not sent.
    edits: [
      ["and not_after < ", "and not_after < 0 * "],
      ["if (result === undefined || result.success) {", "if (result !== null) {", "src/relayer/send.ts"],
    ],
    tests: "test/faults/payments.test.ts",
    only: "expires in the queue",
  },
  "expired-payer-blamed": {
    file: "src/relayer/failures.ts",
    edits: [["const checks = [isExpired, isUsed,", "const checks = [isUsed,"]],
    tests: "test/faults/payments.test.ts",
    only: "before its block is made",
  },
  "host-clock": {
    file: "src/chain/clients.ts",
    edits: [
      [
        "newest = Math.max(newest, head.timestamp + Math.floor((performance.now() - head.seenAt) / 1000));",
        "newest = Math.floor(Date.now() / 1000);",
      ],
    ],
    tests: "test/faults/time.test.ts",
    only: "an hour ahead",
  },
  "any-body": {
    file: "src/payments/paid-call.ts",
    edits: [["if (earlier.requestHash !== requestHash(call)) {", "if (earlier.requestHash === null) {"]],
    tests: "test/faults/payments.test.ts",
    only: "row 28: 100",
  },
  "rivals-at-once": {
    file: "src/relayer/choose.ts",
    edits: [['  "accept",\n', ""]],
    tests: "test/faults/payments.test.ts",
    only: "row 29",
  },
  "pause-is-verdict": {
    file: "src/relayer/failures.ts",
    edits: [['  if (tokenPaused) return { verdict: "hold", reason: TOKEN_PAUSED, data };\n', ""]],
    tests: "test/faults/payments.test.ts",
    only: "row 31: while",
  },
  "no-bound": {
    file: "src/relayer/limits.ts",
    edits: [["where state in ('queued', 'held') offset", "where state in ('none') offset"]],
    tests: "test/faults/payments.test.ts",
    only: "row 32",
  },
  "challenge-reused": {
    file: "src/features/agents/challenge.ts",
    edits: [
      ["    row.redeemedAt === null &&\n", ""],
      ["and(isNull(challenge.redeemedAt), lt(", "and(lt("],
    ],
    tests: "test/faults/abuse.test.ts",
    only: "row 37",
  },
  "depth-unbounded": {
    file: "src/http/schemas.ts",
    edits: [["  assertShallow(text);\n", ""]],
    tests: "test/faults/abuse.test.ts",
    only: "row 39",
  },
  "some-address-public": {
    file: "src/webhooks/target.ts",
    edits: [["!addresses.every(isPublicAddress)", "!addresses.some(isPublicAddress)"]],
    tests: "test/unit/webhooks/target.test.ts",
    only: "one of its addresses leads inside",
  },
  "statuses-wait-for-keeper": {
    file: "packages/protocol/src/status.ts",
    edits: [
      ['return now < facts.matchDeadline ? "created" : "cancelled-unmatched";', 'return "created";'],
      ['return now < facts.deliveryDeadline ? "matched" : "cancelled-absent";', 'return "matched";'],
    ],
    tests: "test/faults/time.test.ts",
    only: "row 35",
  },
  "gas-not-checked": {
    file: "contracts/Relay.sol",
    edits: [
      [
        "            require(gasleft() >= required, InsufficientGas(i, gasleft(), required));\n",
        "            required;\n",
      ],
    ],
    tests: "test/faults/payments.test.ts",
    only: "row 25",
  },
  "returndata-copied": {
    file: "contracts/Relay.sol",
    edits: [["Math.min(length, MAX_REASON_LENGTH)", "length"]],
    tests: "test/faults/payments.test.ts",
    only: "row 24",
  },
  "unseen-direct-transfer-pays": {
    file: "contracts/EscrowCustody.sol",
    edits: [["_acceptsDirectTransfer && ASSET", "msg.sender == OPERATOR && ASSET"]],
    tests: "test/integration/relayer-queue.test.ts",
    only: "money of someone else's authorization",
  },
  "unseen-is-untaken": {
    file: "src/payments/authorization-use.ts",
    edits: [
      [
        "if (timestamp <= payment.validAfter) throw cannotBeSearched();",
        "if (timestamp <= payment.validAfter) return null;",
      ],
    ],
    tests: "test/e2e/authorization-use.test.ts",
    only: "behind the one",
  },
  "direct-transfer-before-final": {
    file: "src/payments/direct-transfer.ts",
    edits: [["BigInt(deps.config.confirmations);", "1n;"]],
    tests: "test/e2e/authorization-use.test.ts",
    only: "before: its payer",
  },
  "direct-transfer-of-another-branch": {
    file: "src/payments/direct-transfer.ts",
    edits: [["(await isCanonical(deps, use.blockNumber, use.blockHash)) === true", "true"]],
    tests: "test/e2e/authorization-use.test.ts",
    only: "branch that the chain has left",
  },
  "lapsed-claim-sent": {
    file: "src/relayer/send.ts",
    edits: [[" and claimed_until > now()`", "`"]],
    tests: "test/integration/relayer-truth.test.ts",
    only: "claim that lapsed",
  },
  "used-is-paid": {
    file: "src/payments/paid-call.ts",
    edits: [["  if (!(await isCreditable(deps, action, payment))) return result;\n", ""]],
    tests: "test/faults/payments.test.ts",
    only: "row 23",
  },
  "request-takes-it-along": {
    file: "src/main.ts",
    edits: [
      [
        "const server = await listen(app, config);",
        [
          "const answer = app.fetch;",
          "app.fetch = (request, ...rest) => {",
          "  const forget = () => void pool.query(\"delete from app.operation where state in ('queued', 'sent')\");",
          '  request.signal.addEventListener("abort", forget);',
          "  return answer(request, ...rest);",
          "};",
          "const server = await listen(app, config);",
        ].join("\n"),
      ],
    ],
    tests: "test/faults/crash.test.ts",
    only: "leaves its operation pending",
  },
  "payee-stops-all": {
    file: "contracts/EscrowCustody.sol",
    edits: [
      [
        "if (!IERC20(address(ASSET)).trySafeTransfer(payee, amount)) {",
        "IERC20(address(ASSET)).safeTransfer(payee, amount);\n        if (payee == address(0)) {",
      ],
    ],
    tests: "test/faults/payments.test.ts",
    only: "row 31: a payee",
  },
  "no-match-deadline": {
    file: "contracts/EscrowState.sol",
    edits: [
      [
        "return block.timestamp < t.matchDeadline() ? Status.Created : Status.CancelledUnmatched;",
        "return block.timestamp > 0 ? Status.Created : Status.CancelledUnmatched;",
      ],
    ],
    tests: "test/faults/payments.test.ts",
    only: "row 34",
  },
  "settle-by-operator": {
    file: "contracts/WorkingContractEscrow.sol",
    edits: [
      [
        "        require(!f.settled, AlreadySettled());\n        require(\n            ended",
        "        require(!f.settled, AlreadySettled());\n        require(msg.sender == OPERATOR, AlreadySettled());\n        require(\n            ended",
      ],
    ],
    tests: "test/faults/time.test.ts",
    only: "row 36",
  },
  "fee-on-the-price": {
    file: "packages/protocol/src/ledger.ts",
    edits: [
      [
        "const fee = share(gross, parameters.protocolFee);",
        "const fee = share(price, parameters.protocolFee);",
      ],
    ],
    tests: "test/unit/protocol/ledger.test.ts",
    only: "dispute, 2 of 3 met",
  },
  "stake-slashed-whole": {
    file: "packages/protocol/src/ledger.ts",
    edits: [
      [
        "const slash = (stake * BigInt(tally.notMet)) / criteria;",
        "const slash = tally.notMet > 0 ? stake : 0n;",
      ],
    ],
    tests: "test/unit/protocol/ledger.test.ts",
    only: "dispute, 2 of 3 met",
  },
  "bond-lost-whole": {
    file: "packages/protocol/src/ledger.ts",
    edits: [
      [
        "const bondLost = (bond * BigInt(tally.met)) / criteria;",
        "const bondLost = tally.met > 0 ? bond : 0n;",
      ],
    ],
    tests: "test/unit/protocol/ledger.test.ts",
    only: "dispute, 2 met and 1 unclear",
  },
  "plurality-decides": {
    file: "packages/protocol/src/ledger.ts",
    edits: [['if (2 * votes.met > cast) return "met";', 'if (2 * votes.met >= cast) return "met";']],
    tests: "test/unit/protocol/ledger.test.ts",
    only: "dispute, tie",
  },
  "pot-to-everyone": {
    file: "packages/protocol/src/ledger.ts",
    edits: [
      ["const wins = vote === majorityOutcome && slashed.winners > 0;", "const wins = slashed.winners > 0;"],
    ],
    tests: "test/unit/protocol/ledger.test.ts",
    only: "dispute, all met",
  },
  "party-votes": {
    file: "src/features/votes/ballots.ts",
    edits: [
      [
        "if (agent !== chain.client && agent !== chain.worker) return;",
        "if (agent !== chain.client) return;",
      ],
    ],
    tests: "test/unit/votes/submit-votes.test.ts",
    only: "cannot be a party",
  },
  "window-never-closes": {
    file: "src/features/votes/ballots.ts",
    edits: [["if (now >= closesAt) {", "if (now > closesAt) {"]],
    tests: "test/unit/votes/submit-votes.test.ts",
    only: "last second of the window",
  },
  "key-checksum-ignored": {
    file: "src/features/agents/key-owners.ts",
    edits: [
      [
        "if (match === null || match[1] !== environment) return false;",
        "if (match === null || match[1] !== environment) return false;\n  if (text.length > 0) return true;",
      ],
    ],
    tests: "test/unit/features/keys/format.test.ts",
    only: "every single wrong character",
  },
  "secret-moves": {
    file: "src/master-key.ts",
    edits: [
      ["if (protectedHeader[name] !== value) {", 'if (protectedHeader[name] !== value && value === "") {'],
    ],
    tests: "test/unit/features/references/vault.test.ts",
    only: "does not unwrap for another",
  },
  "payment-sent-twice": {
    file: "src/payments/x402.ts",
    edits: [["if (v2 !== null && v1 !== null) {", 'if (v2 === "" && v1 !== null) {']],
    tests: "test/unit/payments/decode.test.ts",
    only: "both versions at once",
  },
  "signer-unchecked": {
    file: "contracts/AgentSignatures.sol",
    edits: [["require(_isSignedBy(", "require(agent != address(0) || _isSignedBy("]],
    tests: "test/e2e/trust.test.ts",
    only: "cannot carry a signature to another contract",
  },
  "stake-of-any-age": {
    file: "contracts/BackupAgentRegistry.sol",
    edits: [["s.since < before &&", "(s.since < before || required != 0) &&"]],
    tests: "test/e2e/trust.test.ts",
    only: "cannot pack the jury",
  },
  "bond-signs-any-votes": {
    file: "contracts/EscrowJury.sol",
    edits: [
      ["if (bond.nonce == keccak256(abi.encode(commitment))) _require", "if (bond.nonce != 0) _require"],
    ],
    tests: "test/e2e/trust-secrets.test.ts",
    only: "are not replaced by the operator",
  },
  "anyone-can-use-a-payment": {
    file: "packages/client/src/payment.ts",
    edits: [["const isReceived = lower(address) === stablecoin.address;", "const isReceived = false;"]],
    tests: "test/e2e/trust.test.ts",
    only: "a stock client's payment",
  },
  "leavers-cannot-vote": {
    file: "contracts/BackupAgentRegistry.sol",
    edits: [[" || before <= s.releasableAt - UNBONDING_PERIOD", ""]],
    tests: "test/e2e/trust.test.ts",
    only: "cannot unstake the jurors",
  },
  "nonce-taken-for-votes": {
    file: "contracts/EscrowJury.sol",
    edits: [["if (bond.nonce == keccak", "if (bond.nonce == commitment || bond.nonce == keccak"]],
    tests: "test/e2e/trust-secrets.test.ts",
    only: "are not replaced by the operator",
  },
  "vote-opened-otherwise": {
    file: "contracts/EscrowJury.sol",
    edits: [["require(bytes32(ballot) == commitment,", "require(ballot != 0 && commitment != 0,"]],
    tests: "test/e2e/trust-secrets.test.ts",
    only: "are opened with no other votes",
  },
  "encryption-key-unproven": {
    file: "packages/client/src/sealing.ts",
    edits: [["if (await verifyMessage(claim))", 'if ((await verifyMessage(claim)) || key !== "")']],
    tests: "test/e2e/sealed-deliveries.test.ts",
    only: "cannot put its own key",
  },
  "checkpoint-hidden": {
    file: "packages/client/src/actions.ts",
    edits: [["!leaves.includes(leaf)", 'leaf === "0x" && !leaves.includes(leaf)']],
    tests: "test/e2e/signed-actions.test.ts",
    only: "refuses to deliver without a checkpoint",
  },
};
