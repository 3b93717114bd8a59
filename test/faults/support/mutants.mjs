/**
 * The mechanisms switched off, one at a time: each must make its tests fail, or the tests prove nothing.
 * `npm run test:faults -- --mutants [name…]` applies each to a copy of the sources and runs the named tests there.
 */

/**
 * @typedef {object} Mutant
 * @property {string} name
 * @property {string} file
 * @property {[from: string, to: string, file?: string][]} edits every `from` stands exactly once in its file
 * @property {string} project
 * @property {string} tests file of the tests
 * @property {string} only pattern of the tests that must fail
 */

/** @type {Mutant[]} */
export const MUTANTS = [
  {
    name: "published-forgotten",
    file: "src/services/payments/perform-payment.ts",
    edits: [["isNotNull(operation.publishedAt)", "isNotNull(operation.transactionHash)"]],
    project: "e2e",
    tests: "test/e2e/contract-interrupted.test.ts",
    only: "published once",
  },
  {
    name: "stale-head",
    file: "src/relayer/send.ts",
    // Either alone would do: a fresh head, and a look at how new it has to be.
    edits: [
      ["current = await readHead(publicClient);", "current = head;"],
      ["!(await isOnOurBranch(context, standsOn, current))", "standsOn === undefined"],
    ],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "no older state",
  },
  {
    name: "node-behind",
    file: "src/relayer/send.ts",
    edits: [["!(await isOnOurBranch(context, standsOn, current))", "standsOn === undefined"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "node is behind",
  },
  {
    name: "answer-of-what-is-gone",
    file: "src/services/payments/answer.ts",
    edits: [["if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 })))", "if (target.timeoutMs < 0)"]],
    project: "integration",
    tests: "test/integration/indexer-reorg.test.ts",
    only: "takes back a match",
  },
  {
    name: "checkpoint-held",
    file: "src/events/appender.ts",
    edits: [
      [
        "if (!(await indexHolds(tx, state))) return false;",
        "if ((await indexProgress(tx)) === null || !(await indexHolds(tx, state))) return false;",
      ],
    ],
    project: "integration",
    tests: "test/integration/event-log.test.ts",
    only: "nobody's way",
  },
  {
    name: "one-lock-for-two",
    file: "src/db/advisory-locks.ts",
    edits: [["eventLog: 7_402_005", "eventLog: 7_402_003"]],
    project: "integration",
    tests: "test/integration/relayer-queue.test.ts",
    only: "while the log is written",
  },
  {
    name: "failure-told-at-once",
    file: "src/relayer/results.ts",
    edits: [['isHere && deep && row.state === "sent"', 'isHere && row.state === "sent"']],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "failure on chain",
  },
  {
    name: "newest-block-alone",
    file: "src/relayer/claim.ts",
    edits: [["and state = 'mined' and block_hash", "and state = 'mined' and false and block_hash"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "own block is gone",
  },
  {
    name: "promise-forgotten",
    file: "src/relayer/choose.ts",
    edits: [["!candidate.published && escrow", "false && escrow"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "keeps a rival behind",
  },
  {
    name: "no-caretaker",
    file: "src/relayer/caretaker.ts",
    edits: [["await followBatches({", "if (signer.length < 0) await followBatches({"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "removed signer has signed",
  },
  {
    name: "absence-is-proof",
    file: "src/relayer/follow.ts",
    edits: [["if (use === null || use.isOurs ||", "if (use === null ||"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "no missing receipt",
  },
  {
    name: "given-up-forgotten",
    file: "src/relayer/given-up.ts",
    edits: [['if (receipt?.status !== "success" ||', "if (receipt !== null ||"]],
    project: "integration",
    tests: "test/integration/relayer-truth.test.ts",
    only: "given up was applied",
  },
  {
    name: "broadcast-before-commit",
    file: "src/relayer/send.ts",
    edits: [
      [
        '  await crashPoint("after_signing");',
        '  await broadcast(context, attempt);\n  await crashPoint("after_signing");',
      ],
    ],
    project: "faults",
    tests: "test/faults/crash.test.ts",
    only: "before the batch is stored",
  },
  {
    name: "never-sent-again",
    file: "src/relayer/follow.ts",
    edits: [
      [
        "    if (nonce === one.accountNonce && (await replaceIfStuck(context, one, head))) continue;\n    await rebroadcast(context, one, head);\n",
        "",
      ],
    ],
    project: "faults",
    tests: "test/faults/crash.test.ts",
    only: "stored but not broadcast",
  },
  {
    name: "dropped-for-good",
    file: "src/relayer/follow.ts",
    edits: [
      [
        "    if (nonce === one.accountNonce && (await replaceIfStuck(context, one, head))) continue;\n    await rebroadcast(context, one, head);\n",
        "",
      ],
    ],
    project: "faults",
    tests: "test/faults/node.test.ts",
    only: "row 14",
  },
  {
    name: "no-epoch",
    file: "src/relayer/ownership.ts",
    edits: [["::bigint for share", "::bigint or true for share"]],
    project: "integration",
    tests: "test/integration/relayer-recovery.test.ts",
    only: "zombie",
  },
  {
    name: "no-lock",
    file: "src/relayer/ownership.ts",
    edits: [
      ["if (locked.rows[0]?.taken !== true) {", "if (locked.rows.length === 0) {"],
      ["return rows[0]?.owned === true;", "return rows.length === 0;"],
    ],
    project: "faults",
    tests: "test/faults/ownership.test.ts",
    only: "row 4",
  },
  {
    name: "gas-not-asked",
    file: "src/relayer/send.ts",
    edits: [["if (balance < gas * fees.maxFeePerGas) {", "if (balance < 0n) {"]],
    project: "faults",
    tests: "test/faults/ownership.test.ts",
    only: "row 18",
  },
  {
    name: "repetition-unknown",
    file: "src/services/payments/perform-payment.ts",
    edits: [
      [
        "const earlier = payment && (await findByAuthorization(deps.db, authorizationKey(deps, request, payment)));",
        "const earlier = undefined;",
      ],
    ],
    project: "faults",
    tests: "test/faults/crash.test.ts",
    only: "another process answers them",
  },
  {
    name: "answer-not-kept",
    file: "src/services/payments/answer.ts",
    edits: [
      ["  if (stored.response !== null) return replayOf(stored.response);\n", ""],
      ["  if (row.response !== null) return replayOf(row.response);\n", ""],
      ["  if (written.length > 0) return answered;", "  if (written.length >= 0) return answered;"],
    ],
    project: "e2e",
    tests: "test/e2e/contract-payments.test.ts",
    only: "answers its repetition",
  },
  {
    name: "deaf-to-broken-connections",
    file: "src/db/client.ts",
    edits: [['  pool.on("connect", (connection) => connection.on("error", onError));\n', ""]],
    project: "integration",
    tests: "test/integration/database-connection.test.ts",
    only: "fails the transaction",
  },
  {
    name: "outage-unnamed",
    file: "src/http/middleware/errors.ts",
    edits: [
      [
        "const OUTAGE_CODES = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENETUNREACH|08|53|57P)/;",
        "const OUTAGE_CODES = /^never$/;",
      ],
    ],
    project: "faults",
    tests: "test/faults/database.test.ts",
    only: "out of reach",
  },
  {
    name: "disk-full-unnamed",
    file: "src/http/middleware/errors.ts",
    edits: [["|08|53|57P)", "|08|57P)"]],
    project: "faults",
    tests: "test/faults/database.test.ts",
    only: "row 33",
  },
  {
    name: "silence-endured",
    file: "src/db/client.ts",
    edits: [["return socket.setTimeout(SILENCE_MS, () => socket.destroy());", "return socket;"]],
    project: "faults",
    tests: "test/faults/database.test.ts",
    only: "go silent",
  },
  {
    name: "no-poll",
    file: "src/relayer/outbox-waiter.ts",
    edits: [["  pollIntervalMs = 1000,", "  pollIntervalMs = 3_600_000,"]],
    project: "faults",
    tests: "test/faults/database.test.ts",
    only: "row 8",
  },
  {
    name: "database-restart-unseen",
    file: "src/local/index-watch.ts",
    edits: [["if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();", ""]],
    project: "faults",
    tests: "test/faults/indexer.test.ts",
    only: "row 9",
  },
  {
    name: "answer-before-index",
    file: "src/services/payments/answer.ts",
    edits: [
      ["  if (!(await waitForIndexed(db, target))) throw settlementPending();\n", ""],
      ["  if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 }))) throw settlementPending();\n", ""],
    ],
    project: "faults",
    tests: "test/faults/indexer.test.ts",
    only: "row 10",
  },
  {
    name: "standstill-unseen",
    file: "src/local/index-watch.ts",
    edits: [["      onStandstill();\n", ""]],
    project: "faults",
    tests: "test/faults/indexer.test.ts",
    only: "hangs",
  },
  {
    name: "abandoned-rows-unseen",
    file: "src/local/index-watch.ts",
    edits: [["      onAbandoned();\n", ""]],
    project: "faults",
    tests: "test/faults/indexer.test.ts",
    only: "row 21",
  },
  {
    name: "node-failure-is-verdict",
    file: "src/relayer/send.ts",
    edits: [
      [
        "  } catch (error) {\n    await release(context, claimed);\n    throw error;\n  }\n  if (passed",
        '  } catch {\n    const rejected = claimed.map((row) => ({ row, reason: "PaymentFailed", data: "0x" }));\n    await storeUnsent(context, { rejected, held: [], released: [] });\n    return false;\n  }\n  if (passed',
      ],
    ],
    project: "faults",
    tests: "test/faults/node.test.ts",
    only: "fails every simulation",
  },
  {
    name: "broadcast-answer-decides",
    file: "src/relayer/send.ts",
    edits: [
      [
        '    logger.debug({ signer, hash, error }, "broadcast answered with an error");\n',
        '    logger.debug({ signer, hash }, "broadcast answered with an error");\n    throw error;\n',
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
    project: "faults",
    tests: "test/faults/node.test.ts",
    only: "row 12",
  },
  {
    name: "no-replacement",
    file: "src/relayer/follow.ts",
    edits: [["if (nonce === one.accountNonce && (await replaceIfStuck(context, one, head))) continue;", ""]],
    project: "faults",
    tests: "test/faults/node.test.ts",
    only: "row 15",
  },
  {
    name: "no-fee-cap",
    file: "src/relayer/transaction.ts",
    edits: [
      ["  if (lowest > cap) return null;\n", ""],
      ["maxFeePerGas: wanted > cap ? cap : wanted,", "maxFeePerGas: wanted,"],
    ],
    project: "faults",
    tests: "test/faults/node.test.ts",
    only: "row 16",
  },
  {
    name: "foreign-nonce-unseen",
    file: "src/relayer/follow.ts",
    edits: [["else if (head.number - since >= MISSING_HEADS) {", "else if (since < 0n) {"]],
    project: "faults",
    tests: "test/faults/node.test.ts",
    only: "row 17",
  },
  {
    name: "reorganisation-unseen",
    file: "src/relayer/follow.ts",
    // Either alone would do, the second more slowly: blocks are compared, and the chain's nonces with ours.
    edits: [
      ["      if (!standing) {", "      if (standing === undefined) {"],
      ["  await checkShortNonces(context, head);\n", ""],
    ],
    project: "faults",
    tests: "test/faults/reorg.test.ts",
    only: "series 1",
  },
  {
    name: "final-is-final",
    file: "src/relayer/follow.ts",
    edits: [
      [
        'eq(batch.signer, signer), inArray(batch.state, ["mined", "final"])',
        'eq(batch.signer, signer), inArray(batch.state, ["mined"])',
      ],
      ["  await checkShortNonces(context, head);\n", ""],
    ],
    project: "faults",
    tests: "test/faults/reorg.test.ts",
    only: "row 20",
  },
  {
    name: "stray-money-lost",
    file: "src/services/payments/authorize.ts",
    edits: [["  if (!(await isCreditable(deps, act, payment))) return result;\n", "  return result;\n"]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 22: an authorization",
  },
  {
    name: "nothing-simulated",
    file: "src/relayer/send.ts",
    edits: [["if (result === undefined || result.success) {", "if (result !== null) {"]],
    project: "integration",
    tests: "test/integration/relayer-queue.test.ts",
    only: "poisoned operation",
  },
  {
    name: "expiry-left-to-chain",
    file: "src/relayer/claim.ts",
    // Either alone would do: what is over is ended, and what the simulation sees fail is not sent.
    edits: [
      ["and not_after < ", "and not_after < 0 * "],
      ["if (result === undefined || result.success) {", "if (result !== null) {", "src/relayer/send.ts"],
    ],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 26",
  },
  {
    name: "host-clock",
    file: "src/chain/clock.ts",
    edits: [
      [
        "newest = Math.max(newest, head.timestamp + Math.floor((performance.now() - head.seenAt) / 1000));",
        "newest = Math.floor(Date.now() / 1000);",
      ],
    ],
    project: "faults",
    tests: "test/faults/time.test.ts",
    only: "an hour ahead",
  },
  {
    name: "any-body",
    file: "src/services/payments/perform-payment.ts",
    edits: [["if (earlier.requestHash !== hash) {", "if (earlier.requestHash === null) {"]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 28: 60",
  },
  {
    name: "rivals-at-once",
    file: "src/relayer/choose.ts",
    edits: [['  "accept",\n', ""]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 29",
  },
  {
    name: "pause-is-verdict",
    file: "src/relayer/verdict.ts",
    edits: [['  if (tokenPaused) return { verdict: "hold", reason: "TokenPaused", data };\n', ""]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 31: while",
  },
  {
    name: "no-bound",
    file: "src/relayer/outbox.ts",
    edits: [["  return beyond.length === 0;", "  return beyond.length >= 0;"]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 32",
  },
  {
    name: "challenge-reused",
    file: "src/services/auth/prove-address.ts",
    edits: [
      ["    row.redeemedAt === null &&\n", ""],
      ["and(isNull(challenge.redeemedAt), lt(", "and(lt("],
    ],
    project: "faults",
    tests: "test/faults/abuse.test.ts",
    only: "row 37",
  },
  {
    name: "depth-unbounded",
    file: "src/http/body.ts",
    edits: [["  assertShallow(text);\n", ""]],
    project: "faults",
    tests: "test/faults/abuse.test.ts",
    only: "row 39",
  },
  {
    name: "some-address-public",
    file: "src/webhooks/target.ts",
    edits: [["!addresses.every(isPublicAddress)", "!addresses.some(isPublicAddress)"]],
    project: "unit",
    tests: "test/unit/webhooks/target.test.ts",
    only: "one of its addresses leads inside",
  },
  {
    name: "statuses-wait-for-keeper",
    file: "src/protocol/status.ts",
    edits: [
      ['return now < facts.matchDeadline ? "created" : "cancelled-unmatched";', 'return "created";'],
      ['return now < facts.deliveryDeadline ? "matched" : "cancelled-absent";', 'return "matched";'],
    ],
    project: "faults",
    tests: "test/faults/time.test.ts",
    only: "row 35",
  },
  {
    name: "gas-not-checked",
    file: "contracts/Relay.sol",
    edits: [
      [
        "            require(gasleft() >= required, InsufficientGas(i, gasleft(), required));\n",
        "            required;\n",
      ],
    ],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 25",
  },
  {
    name: "returndata-copied",
    file: "contracts/Relay.sol",
    edits: [["                if gt(length, maxLength) { length := maxLength }\n", ""]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 24",
  },
  {
    name: "used-is-paid",
    file: "src/services/payments/authorize.ts",
    edits: [["  if (!(await isCreditable(deps, act, payment))) return result;\n", ""]],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 23",
  },
  {
    name: "request-takes-it-along",
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
    project: "faults",
    tests: "test/faults/crash.test.ts",
    only: "leaves its operation on its way",
  },
  {
    name: "payee-stops-all",
    file: "contracts/EscrowCustody.sol",
    edits: [
      [
        "if (!IERC20(address(ASSET)).trySafeTransfer(payee, amount)) {",
        "IERC20(address(ASSET)).safeTransfer(payee, amount);\n        if (payee == address(0)) {",
      ],
    ],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 31: a payee",
  },
  {
    name: "no-match-deadline",
    file: "contracts/EscrowState.sol",
    edits: [
      [
        "return block.timestamp < t.matchDeadline() ? Status.Created : Status.CancelledUnmatched;",
        "return block.timestamp > 0 ? Status.Created : Status.CancelledUnmatched;",
      ],
    ],
    project: "faults",
    tests: "test/faults/payments.test.ts",
    only: "row 34",
  },
  {
    name: "settle-by-operator",
    file: "contracts/WorkingContractEscrow.sol",
    edits: [
      [
        "        require(!f.settled, AlreadySettled());\n        require(\n            ended",
        "        require(!f.settled, AlreadySettled());\n        require(msg.sender == OPERATOR, AlreadySettled());\n        require(\n            ended",
      ],
    ],
    project: "faults",
    tests: "test/faults/time.test.ts",
    only: "row 36",
  },
];
