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

/**
 * A single edit that fills more than a line is written as `from` and `to`.
 * @typedef {Omit<Mutant, "tests" | "edits"> & ({ from: string, to: string } | Pick<Mutant, "edits">)} Written
 */

/** @type {Record<string, Record<string, Written>>} */
const BY_TEST_FILE = {
  "test/conformance/05-payment-mechanics.test.ts": {
    "any-body": {
      file: "src/payments/paid-call.ts",
      edits: [["if (earlier.requestHash !== requestHash(call)) {", "if (earlier.requestHash === null) {"]],
      only: "pays for no other",
    },
  },
  "test/conformance/06-keys.test.ts": {
    "challenge-reused": {
      file: "src/features/agents/challenge.ts",
      edits: [
        ["    row.redeemedAt === null &&\n", ""],
        ["and(isNull(challenge.redeemedAt), lt(", "and(lt("],
      ],
      only: "redeemable once",
    },
  },
  "test/e2e/authorization-use.test.ts": {
    "unseen-is-untaken": {
      file: "src/payments/authorization-use.ts",
      from: "if (timestamp <= payment.validAfter) throw cannotBeSearched();",
      to: "if (timestamp <= payment.validAfter) return null;",
      only: "behind the one",
    },
    "direct-transfer-before-final": {
      file: "src/payments/direct-transfer.ts",
      edits: [["BigInt(deps.config.confirmations);", "1n;"]],
      only: "before: its payer",
    },
    "direct-transfer-of-another-branch": {
      file: "src/payments/direct-transfer.ts",
      edits: [["(await isCanonical(deps, blockNumber, blockHash)) !== true", "false"]],
      only: "branch that the chain has left",
    },
  },
  "test/e2e/direct-transfers.test.ts": {
    "direct-transfer-lost": {
      file: "src/payments/paid-call.ts",
      edits: [["  if (!(await isCreditable(deps, action, payment))) return result;\n", "  return result;\n"]],
      only: "very signature",
    },
    "deposit-refunded-again": {
      file: "src/payments/direct-transfer.ts",
      edits: [["!isBefore(transfer, opening) || (", "opening.deposit > 0n || ("]],
      only: "is refunded to no one",
    },
    "deposit-pays-again": {
      file: "src/payments/direct-transfer.ts",
      edits: [['(purpose === "refund" && isDeposit(opening, payment))', "isDeposit(opening, payment)"]],
      only: "pays for nothing else",
    },
    "answered-payment-forgotten": {
      file: "src/payments/direct-transfer.ts",
      edits: [["mark(deps, reported ?? payment)", "mark(deps, payment)"]],
      only: "before the service opened",
    },
    "second-payment-marked": {
      file: "src/payments/direct-transfer.ts",
      edits: [["if (reported !== null) await mark(deps, reported);", ""]],
      only: "reaches the escrow after its opening",
    },
    "outcome-of-another-call": {
      file: "src/payments/direct-transfer.ts",
      edits: [["payment.from && row.bodyHash === hashOfBody(call.rawBody);", "payment.from;"]],
      only: "with a payment for another escrow",
    },
    "wallet-signature-changed": {
      file: "src/payments/verify-payment.ts",
      from: "signatureOfKey(payment, digest) ?? payment.signature };",
      to: "signatureOfKey(payment, digest) ?? payment.signature.replace(/..$/, '1c') };",
      only: "with the very signature",
    },
  },
  "test/e2e/cli.test.ts": {
    "salt-ignored": {
      file: "packages/cli/src/commands/on-chain.ts",
      edits: [["own.openVote(id, salt as Hex | undefined)", "own.openVote(id)"]],
      only: "down to each voter's payout",
    },
  },
  "test/e2e/contract-interrupted.test.ts": {
    "other-vote-answered": {
      file: "src/payments/paid-call.ts",
      edits: [['unreported.kind === "vote" && ', "false && "]],
      only: "if it voted otherwise",
    },
    "published-forgotten": {
      file: "src/payments/paid-call.ts",
      edits: [["isNotNull(operation.publishedAt)", "isNotNull(operation.transactionHash)"]],
      only: "that was published is never answered",
    },
    "published-quoted": {
      file: "src/payments/paid-call.ts",
      edits: [["of state.published ?? []", "of [] as typeof state.published & object"]],
      only: "that was published is never answered",
    },
    "late-copy-refused": {
      file: "src/payments/paid-call.ts",
      edits: [["await findByAuthorization(deps.db, authorization);", "undefined;"]],
      only: "a copy of a call",
    },
    "stake-answered-forever": {
      file: "src/relayer/limits.ts",
      edits: [["const STAKE_REPEAT_SECONDS = 3600;", "const STAKE_REPEAT_SECONDS = 36_000;"]],
      only: "a pending stake is quoted once",
    },
    "debts-stop-votes": {
      file: "src/relayer/limits.ts",
      from: 'kind === "vote" ? { ...policy, budget: 0 } : policy',
      to: 'kind === "draw" ? { ...policy, budget: 0 } : policy',
      only: "refuse no vote",
    },
    "liar-unlimited": {
      file: "src/relayer/limits.ts",
      from: "if (state.isProven || !(await isContract",
      to: "if (state.isProven !== null || !(await isContract",
      only: "refuse a contract wallet whose newest signature failed",
    },
    "earlier-time-shown": {
      file: "src/db/onchain.ts",
      from: 'throw unavailable("The chain index is catching up after a restart. Retry the request.");',
      to: "return;",
      only: "that it already showed",
    },
    "stale-index-shown": {
      file: "src/db/onchain.ts",
      edits: [["if (behind > config.readiness.maxIndexLag)", "if (config === undefined)"]],
      only: "that it already showed",
    },
    "taken-back-refused": {
      file: "src/features/contracts/actions.ts",
      edits: [
        ["if (row.isReorganized) throw reorganized();", ""],
        ["throw rows[0]?.unsure === true ? reorganized() : noContract(id);", "throw noContract(id);"],
      ],
      only: "no one is refused",
    },
  },
  "test/e2e/contract-payments.test.ts": {
    "signed-action-unthrottled": {
      file: "src/features/agents/delegation.ts",
      edits: [["const gasPolicy = await admitSigned(deps, agent);", "const gasPolicy = undefined;"]],
      only: "with actions that it signs",
    },
    "refund-unthrottled": {
      file: "src/payments/direct-transfer.ts",
      from: "  const gasPolicy = await admitWithinLimits(deps, payment.from, purpose);\n  return",
      to: "  const gasPolicy = undefined;\n  return",
      only: "for the refund of a direct transfer",
    },
    "attempts-counted-at-once": {
      file: "src/features/contracts/create-contract.ts",
      edits: [['  { apart: "caller" },\n', ""]],
      only: "attempts at the same moment",
    },
    "refund-charged-to-poster": {
      file: "src/relayer/operations.ts",
      from: 'onEscrow("refund-direct-transfer", action,',
      to: 'onEscrow("refund-direct-transfer", { ...action, caller: undefined },',
      only: "for the refund of a direct transfer",
    },
    "answer-not-kept": {
      file: "src/payments/relayed-call.ts",
      edits: [
        ["  if (stored.response !== null) return replayOf(stored.response);\n", ""],
        ["  if (row.response !== null) return replayOf(row.response);\n", ""],
        ["  if (kept !== undefined) return applied;", "  if (kept !== null) return applied;"],
      ],
      only: "same bytes to a repetition",
    },
    "opened-for-good": {
      file: "src/features/contracts/create-contract.ts",
      edits: [["row.is_opened && (row.is_live || !(await wasReorganized(deps, id)))", "row.is_opened"]],
      only: "removed the contract for good",
    },
  },
  "test/e2e/index-watch.test.ts": {
    "process-crash-unheard": {
      file: "src/indexer/supervision/index-watch.ts",
      edits: [["code === SQLSTATE.crashShutdown && onDatabaseRestarted()", "code"]],
      only: "reports the crash",
    },
  },
  "test/e2e/list-cost.test.ts": {
    "walk-without-end": {
      file: "src/features/contracts/list-contracts.ts",
      edits: [["row_number() over (order by", "0 * row_number() over (order by"]],
      only: "a bounded number of rows",
    },
  },
  "test/e2e/newcomer.test.ts": {
    "guide-forgets-its-payment": {
      file: "src/features/discovery/texts/guide.md",
      edits: [["fetch(BASE + path, paid).catch(() => undefined)", "fetch(BASE + path, paid)"]],
      only: "pays once if",
    },
  },
  "test/e2e/query-plans.test.ts": {
    "strangers-walked": {
      file: "src/keeper/keeper.ts",
      edits: [["const CANDIDATES = 1_000;", "const CANDIDATES = 1_000_000;"]],
      only: "the due escrows of strangers",
    },
  },
  "test/e2e/quotes-in-turn.test.ts": {
    "quotes-unlimited": {
      file: "src/payments/paid-call.ts",
      edits: [["await deps.inQuoteTurn(find)", "await find()"]],
      only: "passes quotes that hang",
    },
  },
  "test/e2e/signed-actions.test.ts": {
    "complaint-replayed": {
      file: "src/features/complaints/routes.ts",
      edits: [["    if (same) return same;\n", "    void same;\n"]],
      only: "gets its first complaint again",
    },
    "checkpoint-hidden": {
      file: "packages/client/src/actions.ts",
      edits: [["!leaves.includes(leaf)", 'leaf === "0x" && !leaves.includes(leaf)']],
      only: "refuses to deliver without a checkpoint",
    },
  },
  "test/e2e/trust-secrets.test.ts": {
    "encryption-key-unproven": {
      file: "packages/client/src/sealing.ts",
      edits: [["if (await verifyMessage(claim))", 'if ((await verifyMessage(claim)) || key !== "")']],
      only: "is not sealed to a false key",
    },
    "bond-signs-any-votes": {
      file: "contracts/EscrowJury.sol",
      from: "if (bond.nonce == keccak256(abi.encode(commitment))) {",
      to: "if (bond.nonce != 0) {",
      only: "are not replaced by the operator",
    },
    "nonce-taken-for-votes": {
      file: "contracts/EscrowJury.sol",
      edits: [["if (bond.nonce == keccak", "if (bond.nonce == commitment || bond.nonce == keccak"]],
      only: "are not replaced by the operator",
    },
    "vote-opened-otherwise": {
      file: "contracts/EscrowJury.sol",
      edits: [["require(bytes32(ballot) == commitment,", "require(ballot != 0 && commitment != 0,"]],
      only: "are opened with no other votes",
    },
  },
  "test/e2e/trust.test.ts": {
    "signer-unchecked": {
      file: "contracts/AgentSignatures.sol",
      edits: [["require(_isSignedBy(", "require(agent != address(0) || _isSignedBy("]],
      only: "cannot carry a signature to another contract",
    },
    "stake-of-any-age": {
      file: "contracts/BackupAgentRegistry.sol",
      edits: [["s.since < before &&", "(s.since < before || required != 0) &&"]],
      only: "cannot pack the jury",
    },
    "anyone-can-use-a-payment": {
      file: "packages/client/src/payment.ts",
      edits: [["const isReceived = lower(address) === stablecoin.address;", "const isReceived = false;"]],
      only: "a stock client's payment",
    },
    "leavers-cannot-vote": {
      file: "contracts/BackupAgentRegistry.sol",
      edits: [[" || before <= s.releasableAt - UNBONDING_PERIOD", ""]],
      only: "cannot unstake the Backup Agents",
    },
  },
  "test/e2e/unpaid-texts.test.ts": {
    "refunded-texts-dropped": {
      file: "src/payments/paid-call.ts",
      edits: [["  await call.restore?.();\n", ""]],
      only: "after the match deadline, too",
    },
    "unsettled-forgotten": {
      file: "src/keeper/purge.ts",
      edits: [["c.phase <> 'none' and not c.settled", "false"]],
      only: "even if no one asks for it",
    },
    "late-refund-stranded": {
      file: "src/keeper/keeper.ts",
      from: "(select e.id from app.expired_attempt e where",
      to: "(select e.id from app.expired_attempt e where false and",
      only: "even if no one asks for it",
    },
  },
  "test/e2e/webhooks.test.ts": {
    "unknown-target-is-fast": {
      file: "src/webhooks/deliveries.ts",
      edits: [["fast: sql`failures = 0 and last_success_at is not null and", "fast: sql`failures = 0 and"]],
      only: "keeps half of its capacity",
    },
    "lane-unbounded": {
      file: "src/webhooks/sender.ts",
      edits: [["CONCURRENCY[lane] - turns[lane].size;", "CONCURRENCY[lane];"]],
      only: "keeps half of its capacity",
    },
  },
  "test/e2e/workload.test.ts": {
    "payee-stops-all": {
      file: "contracts/EscrowCustody.sol",
      from: "if (!IERC20(address(ASSET)).trySafeTransfer(payee, amount)) {",
      to: "IERC20(address(ASSET)).safeTransfer(payee, amount);\n        if (payee == address(0)) {",
      only: "that the token refused",
    },
  },
  "test/e2e/write-cost.test.ts": {
    "response-waits-for-others": {
      file: "src/payments/relayed-call.ts",
      edits: [[" for update of o skip locked)", " for update of o)"]],
      only: "a locked row holds up no other",
    },
  },
  "test/faults/actions.test.ts": {
    "unanswered-unknown": {
      file: "src/features/contracts/actions.ts",
      edits: [["and (response is null or ", "and (false or "]],
      only: "before their responses are stored",
    },
    "opening-unknown": {
      file: "src/features/votes/ballots.ts",
      edits: [["onceKey: `open-vote:$", "onceKey: `opened-vote:$"]],
      only: "before their responses are stored",
    },
    "complaint-filed-again": {
      file: "src/http/endpoint.ts",
      edits: [["if (key === undefined) return", 'if (key !== "") return']],
      only: "key alone files",
    },
    "share-dated-by-repetition": {
      file: "src/features/encryption/routes.ts",
      edits: [[" = excluded.jwe then", " <> excluded.jwe then"]],
      only: "after it is stored, the",
    },
  },
  "test/faults/crash.test.ts": {
    "gas-uncharged": {
      file: "src/relayer/gas-accounts.ts",
      edits: [["* o.gas_limit / sum(", "* 0 / sum("]],
      only: "after it stored the receipt",
    },
    "receipt-dated-by-replay": {
      file: "src/payments/paid-call.ts",
      edits: [["...paid, settledAt }", "...paid, settledAt: settledAt && Date.now() }"]],
      only: "with the response stored but not sent",
    },
    "sent-when-claimed": {
      file: "src/webhooks/deliveries.ts",
      from: "update app.webhook set claimed_until",
      to: "update app.webhook set sent_up_to = wanted_up_to, claimed_until",
      only: "sends the same event again",
    },
    "pending-purged": {
      file: "src/keeper/purge.ts",
      edits: [["where is_open or is_live is null", "where true"]],
      only: "its texts stay",
    },
    "broadcast-before-commit": {
      file: "src/relayer/send.ts",
      from: '  await crashPoint?.("after_signing");',
      to: '  await broadcast(context, attempt);\n  await crashPoint?.("after_signing");',
      only: "before the batch is stored",
    },
    "never-sent-again": {
      file: "src/relayer/follow.ts",
      from: "  if (isNext && (await replaceIfStuck(context, row, head))) return;\n  await rebroadcast(context, row, head);\n",
      to: "",
      only: "stored but not broadcast",
    },
    "repetition-unknown": {
      file: "src/payments/paid-call.ts",
      edits: [["if (authorization.payer !== call.caller) return", "if (authorization !== null) return"]],
      only: "repeated request gets the stored response",
    },
    "request-takes-it-along": {
      file: "src/main.ts",
      from: "const server = await listen(app, config);",
      to: [
        "const answer = app.fetch;",
        "app.fetch = (request, ...rest) => {",
        "  const forget = () => void pool.query(\"delete from app.operation where state in ('queued', 'sent')\");",
        '  request.signal.addEventListener("abort", forget);',
        "  return answer(request, ...rest);",
        "};",
        "const server = await listen(app, config);",
      ].join("\n"),
      only: "leaves its operation pending",
    },
  },
  "test/faults/database.test.ts": {
    "outage-unnamed": {
      file: "src/http/responses.ts",
      from: "  /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOST|ENETUNREACH|08|28|53|57P|25006|25P03|40001|40P01)/;",
      to: "  /^never$/;",
      only: "unreachable",
    },
    "disk-full-unnamed": {
      file: "src/http/responses.ts",
      edits: [["|08|28|53|57P|", "|08|28|57P|"]],
      only: "row 33",
    },
    "read-only-unnamed": {
      file: "src/http/responses.ts",
      edits: [["|57P|25006|", "|57P|"]],
      only: "accepts no writes",
    },
    "silence-endured": {
      file: "src/db/client.ts",
      edits: [["return socket.setTimeout(silenceMs, () => socket.destroy());", "return socket;"]],
      only: "go silent",
    },
    "no-poll": {
      file: "src/relayer/outbox.ts",
      edits: [["const POLL_INTERVAL_MS = 1000;", "const POLL_INTERVAL_MS = 3_600_000;"]],
      only: "row 8",
    },
  },
  "test/faults/indexer.test.ts": {
    "database-restart-unseen": {
      file: "src/indexer/supervision/index-watch.ts",
      edits: [["if (startedAt !== undefined && seen.startedAt !== startedAt) onDatabaseRestarted();", ""]],
      only: "row 9",
    },
    "answer-before-index": {
      file: "src/payments/relayed-call.ts",
      edits: [
        ["  if (!(await waitForIndexed(db, target))) throw settlementPending();\n", ""],
        ["  if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 }))) throw settlementPending();\n", ""],
      ],
      only: "row 10",
    },
    "standstill-unseen": {
      file: "src/indexer/supervision/index-watch.ts",
      edits: [["      onStandstill();\n", ""]],
      only: "hangs",
    },
    "abandoned-rows-unseen": {
      file: "src/indexer/supervision/index-watch.ts",
      edits: [["    onAbandoned(index);\n", ""]],
      only: "row 21",
    },
    "anchor-unseen": {
      file: "src/indexer/supervision/index-watch.ts",
      edits: [["    if (await hasLostAnchor(finalBlock)) return abandon(index);\n", ""]],
      only: "not missed",
    },
  },
  "test/faults/node.test.ts": {
    "dropped-for-good": {
      file: "src/relayer/follow.ts",
      from: "  if (isNext && (await replaceIfStuck(context, row, head))) return;\n  await rebroadcast(context, row, head);\n",
      to: "",
      only: "row 14",
    },
    "node-failure-is-verdict": {
      file: "src/relayer/send.ts",
      from: "  } finally {\n    if (!isSent) await release(context, claimed);\n  }\n",
      to: '  } catch {\n    const failed = claimed.map((row) => ({ row, state: "rejected", reason: "PaymentFailed", data: "0x" }));\n    await storeUnsent(context, { failed, released: [] });\n    return false;\n  }\n',
      only: "fails every simulation",
    },
    "broadcast-answer-decides": {
      file: "src/relayer/send.ts",
      edits: [
        [
          '      logger.debug({ signer, hash, error }, "broadcast returned an error");\n',
          '      logger.debug({ signer, hash }, "broadcast returned an error");\n      throw error;\n',
        ],
        [
          '  await broadcast(context, attempt);\n  await crashPoint?.("after_broadcast");',
          [
            "  await broadcast(context, attempt).catch(() =>",
            "    fenced(context, async (tx) => {",
            "      await tx.execute(sql.raw(\"update app.operation set state = 'queued', batch_id = null where batch_id = \" + id));",
            '      await tx.execute(sql.raw("delete from app.batch where id = " + id));',
            "    }),",
            "  );",
            '  await crashPoint?.("after_broadcast");',
          ].join("\n"),
        ],
      ],
      only: "row 12",
    },
    "no-fee-cap": {
      file: "src/relayer/transaction.ts",
      edits: [
        ["  if (lowest > cap) return null;\n", ""],
        ["maxFeePerGas: min(wanted, cap),", "maxFeePerGas: wanted,"],
      ],
      only: "row 16",
    },
  },
  "test/faults/ownership.test.ts": {
    "silent-owner-kept": {
      file: "src/relayer/context.ts",
      edits: [['const LOCK_SILENCE = "20s";', 'const LOCK_SILENCE = "0";']],
      only: "row 3: a relayer that hangs",
    },
    "no-lock": {
      file: "src/relayer/context.ts",
      edits: [
        ["if (locked.rows[0]?.taken !== true) {", "if (locked.rows.length === 0) {"],
        ["return rows[0]?.owned === true;", "return rows.length === 0;"],
      ],
      only: "row 4",
    },
    "gas-not-asked": {
      file: "src/relayer/send.ts",
      edits: [["if (balance >= cost + committed) return true;", "if (balance >= 0n) return true;"]],
      only: "row 18",
    },
  },
  "test/faults/payments.test.ts": {
    "others-event-consumes": {
      file: "src/payments/direct-transfer.ts",
      edits: [["return args.counterparty.toLowerCase() === from;", "return args.counterparty !== null;"]],
      only: "winner's own transaction",
    },
    "expiry-left-to-chain": {
      file: "src/relayer/claim.ts",
      // Either alone would do: expired operations are ended, and operations whose simulation fails are not sent.
      edits: [
        ["and not_after < ", "and not_after < 0 * "],
        ["if (result === undefined || result.success) {", "if (result !== null) {", "src/relayer/send.ts"],
      ],
      only: "expires in the queue",
    },
    "expired-payer-blamed": {
      file: "src/relayer/failures.ts",
      edits: [["const checks = [isExpired, isUsed,", "const checks = [isUsed,"]],
      only: "before its block is made",
    },
    "rivals-at-once": {
      file: "src/relayer/choose.ts",
      edits: [['  "accept",\n', ""]],
      only: "row 29",
    },
    "no-bound": {
      file: "src/relayer/limits.ts",
      edits: [["where state in ('queued', 'held') limit", "where state in ('none') limit"]],
      only: "row 32",
    },
    "gas-not-checked": {
      file: "contracts/Relay.sol",
      from: "            require(gasleft() >= required, InsufficientGas(i, gasleft(), required));\n",
      to: "            required;\n",
      only: "row 25",
    },
    "returndata-copied": {
      file: "contracts/Relay.sol",
      edits: [["Math.min(length, MAX_REASON_LENGTH)", "length"]],
      only: "row 24",
    },
    "used-is-paid": {
      file: "src/payments/paid-call.ts",
      edits: [["  if (!(await isCreditable(deps, action, payment))) return result;\n", ""]],
      only: "row 23",
    },
    "no-match-deadline": {
      file: "contracts/EscrowState.sol",
      from: "return block.timestamp < t.matchDeadline() ? Status.Created : Status.CancelledUnmatched;",
      to: "return block.timestamp > 0 ? Status.Created : Status.CancelledUnmatched;",
      only: "row 34",
    },
  },
  "test/faults/reorg.test.ts": {
    "gas-charged-again": {
      file: "src/relayer/gas-accounts.ts",
      edits: [[" - coalesce(before.gas_used, 0)", " - 0 * coalesce(before.gas_used, 0)"]],
      only: "row 46: a batch that a reorg removed",
    },
    "gas-of-first-receipt": {
      file: "src/relayer/gas-accounts.ts",
      edits: [["* o.gas_limit / sum(", "* (before.gas_used is null)::int * o.gas_limit / sum("]],
      only: "row 46: a batch that uses other gas",
    },
    "reorganisation-unseen": {
      file: "src/relayer/follow.ts",
      // Each alone would do, some more slowly: blocks are compared at each head, before anything is stored beside them
      // and before they are final, and the chain's nonces are compared with ours.
      edits: [
        ["    if (standing) break;", "    if (standing !== undefined) break;"],
        [
          "standing.set(mined.blockHash, await stands(context, mined))",
          "standing.set(mined.blockHash, true)",
        ],
        ["newest === undefined || stands(context, newest)", "newest?.id !== 0n"],
        ["  await checkShortNonces(context, head);\n", ""],
      ],
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
      only: "row 20",
    },
  },
  "test/faults/time.test.ts": {
    "host-clock": {
      file: "src/chain/clients.ts",
      from: "newest = Math.max(newest, head.timestamp + Math.min(elapsed, MAX_AHEAD_OF_HEAD));",
      to: "newest = Math.floor(Date.now() / 1000);",
      only: "an hour ahead",
    },
    "statuses-wait-for-keeper": {
      file: "packages/protocol/src/status.ts",
      edits: [
        [
          'return isAhead(facts.matchDeadline, facts, now) ? "created" : "cancelled-unmatched";',
          'return "created";',
        ],
        [
          'return isAhead(facts.deliveryDeadline, facts, now) ? "matched" : "cancelled-absent";',
          'return "matched";',
        ],
      ],
      only: "row 35: without a keeper",
    },
    "clock-outruns-chain": {
      file: "src/chain/clients.ts",
      edits: [["Math.min(elapsed, MAX_AHEAD_OF_HEAD)", "elapsed"]],
      only: "row 35: a delivery",
    },
    "settle-by-operator": {
      file: "contracts/WorkingContractEscrow.sol",
      from: "        require(!f.settled, AlreadySettled());\n        require(\n            ended",
      to: "        require(!f.settled, AlreadySettled());\n        require(msg.sender == OPERATOR, AlreadySettled());\n        require(\n            ended",
      only: "row 36",
    },
  },
  "test/integration/auth-delegation.test.ts": {
    "unshown-delegation-kept": {
      file: "src/features/agents/keys.ts",
      edits: [["newest.isPending || issuedAtOf(newest.data as Hex) > grant.issuedAt", "newest.isPending"]],
      only: "does not show its registration yet",
    },
    "sign-in-unlocked": {
      file: "src/features/agents/delegation.ts",
      edits: [[" for update", ""]],
      only: "while the keys are being revoked",
    },
    "lookup-followed": {
      file: "src/chain/clients.ts",
      // A wallet's code is asked by init code, which hides its URL as well.
      edits: [
        ["ccipRead: false", "ccipRead: undefined"],
        [
          "const data = concat([firstWordOf(address), encodeFunctionData(question)]);",
          "const data = encodeFunctionData(question);",
          "src/chain/signatures.ts",
        ],
        [
          "await callOrRevert(client, { data });",
          "await callOrRevert(client, { to: address, data });",
          "src/chain/signatures.ts",
        ],
      ],
      only: "make us fetch nothing",
    },
  },
  "test/integration/auth-keys.test.ts": {
    "lease-kept": {
      file: "src/db/client.ts",
      edits: [["return askedAt < currentUntil;", "return currentUntil > 0;"]],
      only: "goes silent",
    },
    "held-request-trusted": {
      file: "src/http/middleware.ts",
      edits: [['isRead(c) ? c.get("identity") : await c.get("currentIdentity")()', 'c.get("identity")']],
      only: "held back the rest",
    },
  },
  "test/integration/auth-outage.test.ts": {
    "internal-error-is-revert": {
      file: "src/chain/errors.ts",
      from: "if (code !== EXECUTION_REVERTED && ",
      to: "if (code !== EXECUTION_REVERTED && code !== -32_603 && ",
      only: "uses up no try either",
    },
  },
  "test/integration/database-connection.test.ts": {
    "deaf-to-broken-connections": {
      file: "src/db/client.ts",
      edits: [['  pool.on("connect", (connection) => connection.on("error", onError));\n', ""]],
      only: "fails the transaction",
    },
    "connection-kept": {
      file: "src/db/client.ts",
      from: "Object.assign(drizzle(pool, CASING), { transaction: transactionsOf(pool) })",
      to: "drizzle(pool, CASING)",
      only: "frees its place",
    },
    "read-only-kept": {
      file: "src/db/client.ts",
      edits: [["connection.release(isReadOnly);", "connection.release();"]],
      only: "accepts no writes",
    },
  },
  "test/integration/event-log.test.ts": {
    "answer-of-what-is-gone": {
      file: "src/payments/relayed-call.ts",
      edits: [["if (!(await waitForIndexed(db, { ...target, timeoutMs: 0 })))", "if (target.timeoutMs < 0)"]],
      only: "undoes a match",
    },
    "checkpoint-held": {
      file: "src/events/log-writer.ts",
      from: "if (!(await indexHolds(tx, state))) return false;",
      to: "if ((await indexProgress(tx)) === null || !(await indexHolds(tx, state))) return false;",
      only: "does not block the indexer",
    },
    "undone-in-one-round": {
      file: "src/events/log-writer.ts",
      edits: [[" ?? (tail.length === TAIL ? lost.at(-1) : undefined)", ""]],
      only: "more events than it checks",
    },
  },
  "test/integration/gas-accounts.test.ts": {
    "gas-unreserved": {
      file: "src/relayer/outbox.ts",
      edits: [["...gasPolicy, onceKey", "onceKey"]],
      only: "pay at the same moment",
    },
    "gas-counted-alone": {
      file: "src/relayer/outbox.ts",
      edits: [["where earlier.n < call.n and", "where false and"]],
      only: "pay at the same moment",
    },
    "gas-counted-at-once": {
      file: "src/relayer/outbox.ts",
      edits: [["{ inSequence: true }", "{ inSequence: false }"]],
      only: "pay at the same moment",
    },
    "operations-in-any-order": {
      file: "src/relayer/outbox.ts",
      edits: [['order by "onceKey", nonce, n', "order by n"]],
      only: "in a circle",
    },
    "deadlock-not-repeated": {
      file: "src/relayer/outbox.ts",
      edits: [['if ("$client" in db && hasSqlState', 'if ("$client" in {} && hasSqlState']],
      only: "whose nonces cross",
    },
  },
  "test/integration/indexer-lifecycle.test.ts": {
    "torn-index-shown": {
      file: "src/indexer/supervision/indexer.ts",
      edits: [["'is_ready' = '0')", "'is_ready' = 'never')"]],
      only: "never claims",
    },
  },
  "test/integration/indexer-lock.test.ts": {
    "silent-indexer-kept": {
      file: "src/indexer/supervision/indexer.ts",
      edits: [["schema, silence]", 'schema, "0"]']],
      only: "goes silent",
    },
  },
  "test/integration/keeper-lifecycle.test.ts": {
    "vain-settlement-counted": {
      file: "src/keeper/keeper.ts",
      edits: [["reason is distinct from 'WrongStatus'", "true"]],
      only: "settles without delay although settlements stored",
    },
    "early-rejection-counted": {
      file: "src/keeper/keeper.ts",
      edits: [["[...TOO_EARLY]);", '["NoReason"]);']],
      only: "settles without delay although settlements due",
    },
  },
  "test/integration/relayer-queue.test.ts": {
    "pause-is-verdict": {
      file: "src/relayer/send.ts",
      edits: [["if (tokenPaused === true && (", "if (tokenPaused === null && ("]],
      only: "holds payments while",
    },
    "one-lock-for-two": {
      file: "src/relayer/claim.ts",
      from: 'await lock(tx, "choice of operations");',
      to: "await tx.execute(sql`select from app.event_log for update`);",
      only: "while the log is written",
    },
    "expiry-waits-for-fees": {
      file: "src/relayer/relayer.ts",
      edits: [["    await rejectExpired(context, head);\n", ""]],
      only: "beyond its cap",
    },
    "pause-ends-returns": {
      file: "src/relayer/send.ts",
      edits: [["(TRANSFER_FAILURES.has(reason) || PAYS_OUT.has(row.kind))", "TRANSFER_FAILURES.has(reason)"]],
      only: "refund of a direct transfer",
    },
    "nothing-simulated": {
      file: "src/relayer/send.ts",
      edits: [["if (result === undefined || result.success) {", "if (result !== null) {"]],
      only: "poisoned operation",
    },
    "unseen-direct-transfer-pays": {
      file: "contracts/EscrowCustody.sol",
      edits: [["_acceptsDirectTransfer && ASSET", "msg.sender == OPERATOR && ASSET"]],
      only: "money of someone else's authorization",
    },
  },
  "test/integration/relayer-recovery.test.ts": {
    "foreign-nonce-unseen": {
      file: "src/relayer/follow.ts",
      edits: [["else if (head.number - since >= MISSING_HEADS) {", "else if (since < 0n) {"]],
      only: "used their nonce for good",
    },
    "no-replacement": {
      file: "src/relayer/follow.ts",
      from: "if (isNext && (await replaceIfStuck(context, row, head))) return;",
      to: "",
      only: "too cheap",
    },
    "refusal-unnoticed": {
      file: "src/relayer/follow.ts",
      edits: [["context.memory.isAllowed = false;", ""]],
      only: "when a batch reverts as a whole",
    },
    "no-epoch": {
      file: "src/relayer/context.ts",
      edits: [["::bigint for share", "::bigint or true for share"]],
      only: "zombie",
    },
  },
  "test/integration/relayer-truth.test.ts": {
    "failed-gas-uncounted": {
      file: "src/relayer/results.ts",
      edits: [["hasFailures: failures.size > 0", "hasFailures: false"]],
      only: "once its block is deep",
    },
    "failed-stops-rivals": {
      file: "src/relayer/claim.ts",
      edits: [["case when batch_state <> 'mined' then escrow end as escrow", "escrow"]],
      only: "once its block is deep",
    },
    "stale-head": {
      file: "src/relayer/send.ts",
      // Either alone would do: a fresh head, and a check of how new it must be.
      edits: [
        ["    readHead(publicClient),\n", "    Promise.resolve(seen),\n"],
        ["if (!isOnBranch)", "if (standsOn === undefined)"],
      ],
      only: "no older state",
    },
    "node-behind": {
      file: "src/relayer/send.ts",
      edits: [["if (!isOnBranch)", "if (standsOn === undefined)"]],
      only: "node is behind",
    },
    "failure-told-at-once": {
      file: "src/relayer/results.ts",
      edits: [['isHere && isDeep && row.state === "sent"', 'isHere && row.state === "sent"']],
      only: "failure on chain",
    },
    "newest-block-alone": {
      file: "src/relayer/claim.ts",
      edits: [["where state = 'mined' and block_hash", "where state = 'mined' and false and block_hash"]],
      only: "own block is gone",
    },
    "reported-forgotten": {
      file: "src/relayer/choose.ts",
      edits: [["(isReported || (caller", "(false || (caller"]],
      only: "keeps a rival behind",
    },
    "behind-believed": {
      file: "src/relayer/follow.ts",
      edits: [["blockNumber !== null && blockNumber > head.number", "blockNumber !== blockNumber"]],
      only: "reopens no final batch",
    },
    "no-caretaker": {
      file: "src/relayer/relayer.ts",
      edits: [["      await followBatches(context, head);\n    } finally", "    } finally"]],
      only: "removed signer has signed",
    },
    "final-unattended": {
      file: "src/relayer/relayer.ts",
      edits: [["where newest.updated_at > now() -", "where newest.updated_at > now() +"]],
      only: "removed signer's final batch",
    },
    "absence-is-proof": {
      file: "src/relayer/follow.ts",
      edits: [["if (use === null || use.isOurs ||", "if (use === null ||"]],
      only: "a missing receipt as proof",
    },
    "abandoned-forgotten": {
      file: "src/relayer/results.ts",
      edits: [
        ['if (receipt?.status !== "success" ||', 'if (receipt === null || receipt.status === "success" ||'],
      ],
      only: "abandoned was applied",
    },
    "flight-not-counted": {
      file: "src/relayer/send.ts",
      edits: [["balance >= cost + committed", "balance >= cost"]],
      only: "does not cover beside those in flight",
    },
    "state-by-number": {
      file: "src/relayer/transaction.ts",
      from: '({ hash }: Pick<Head, "hash">) => ({ blockHash: hash, requireCanonical: true })',
      to: "({ number }: Head) => ({ blockNumber: toHex(number) })",
      only: "on the block that one node names",
    },
    "choice-of-two-moments": {
      file: "src/relayer/claim.ts",
      from: "blocksUnder(claimed, surroundings)",
      to: "blocksUnder(claimed, await readSurroundings(tx, { signer }))",
      only: "very moment of the choice",
    },
    "own-block-unseen": {
      file: "src/relayer/follow.ts",
      from: "standing.set(mined.blockHash, await stands(context, mined))",
      to: "standing.set(mined.blockHash, true)",
      only: "rechecks a batch",
    },
    "not-anchored": {
      file: "src/relayer/follow.ts",
      edits: [["newest === undefined || stands(context, newest)", "newest?.id !== 0n"]],
      only: "records nothing",
    },
    "gap-unfilled": {
      file: "src/relayer/relayer.ts",
      from: "isBehindGap(context, head)) return",
      to: "isBehindGap(context, head) && context.signer.length === 0) return",
      only: "fills an account nonce",
    },
    "unaffordable-replacement": {
      file: "src/relayer/send.ts",
      edits: [["if (balance < gas * fees.maxFeePerGas) {", "if (balance < 0n) {"]],
      only: "can pay for",
    },
    "lapsed-claim-sent": {
      file: "src/relayer/send.ts",
      edits: [[" and claimed_until > now()`", "`"]],
      only: "claim that lapsed",
    },
  },
  "test/integration/relayer-wallets.test.ts": {
    "gas-price-zero": {
      file: "src/relayer/transaction.ts",
      from: "const gasPrice = toHex(min(head.baseFeePerGas + fees.maxPriorityFeePerGas, fees.maxFeePerGas));",
      to: 'const gasPrice = fees && "0x0";',
      only: "only at gas price 0",
    },
    "wallets-unbounded": {
      file: "src/relayer/claim.ts",
      from: "signedQuotas: await readSignedQuotas(tx, waiting)",
      to: "signedQuotas: await readSignedQuotas(tx, [])",
      only: "passes every simulation",
    },
    "refund-dropped-with-signer": {
      file: "src/relayer/failures.ts",
      edits: [["      and kind not in ('delegate', 'refund-direct-transfer')\n", ""]],
      only: "still has its direct transfers refunded",
    },
    "sign-in-dropped-with-signer": {
      file: "src/relayer/failures.ts",
      edits: [["kind not in ('delegate', 'refund-direct-transfer')", "kind <> 'refund-direct-transfer'"]],
      only: "its sign-ins judged alone",
    },
    "use-is-payers-failure": {
      file: "src/relayer/send.ts",
      edits: [["used.has(row.id) ? PAYMENT_USED : ", ""]],
      only: "does not suffer for a payment",
    },
    "wallet-retried": {
      file: "src/relayer/results.ts",
      edits: [["signerAtFault !== undefined || row.tries >= FAILED_TRIES", "row.tries >= FAILED_TRIES"]],
      only: "passes every simulation",
    },
    "signature-unnoticed": {
      file: "src/relayer/operations.ts",
      edits: [["    signed: true,\n", ""]],
      only: "signs actions for simulations only",
    },
  },
  "test/integration/replica.test.ts": {
    "replica-believed": {
      file: "src/db/replica.ts",
      edits: [["(await nextCheck) ? replica", "(await nextCheck) !== undefined ? replica"]],
      only: "has not replayed yet",
    },
    "replica-failure-is-ours": {
      file: "src/db/replica.ts",
      from: "    } catch {\n      leftAloneUntil",
      to: "    } catch (error) {\n      if (error !== null) throw error;\n      leftAloneUntil",
      only: "after the replica has stopped",
    },
    "replica-silence-endured": {
      file: "src/db/replica.ts",
      edits: [["Promise.race([asked, silence()])", "Promise.race([asked, silence().catch(() => asked)])"]],
      only: "does not respond",
    },
  },
  "test/unit/chain/transport.test.ts": {
    "half-answer-awaited": {
      file: "src/chain/clients.ts",
      edits: [
        [
          "const response = await fetch(",
          "const head = new AbortController();\n    const timer = setTimeout(() => head.abort(new DOMException(undefined, 'TimeoutError')), timeout);\n    const response = await fetch(",
        ],
        ["signal: AbortSignal.timeout(timeout)", "signal: head.signal"],
        ["const text = await readWhole", "clearTimeout(timer);\n    const text = await readWhole"],
      ],
      only: "no longer than the time-out",
    },
    "batch-by-place": {
      file: "src/chain/clients.ts",
      edits: [["batch ? inOrder(text, calls.length) : [JSON.parse(text)]", "[JSON.parse(text)].flat()"]],
      only: "answers no call",
    },
  },
  "test/unit/client/chain-proof.test.ts": {
    "silent-node-final": {
      file: "packages/client/src/session.ts",
      edits: [["if (!(error instanceof ConnectionError || isAborted)) throw error;", "throw error;"]],
      only: "has an unknown outcome if the node",
    },
  },
  "test/unit/client/http.test.ts": {
    "body-without-time-out": {
      file: "packages/client/src/http.ts",
      edits: [['  signal?.addEventListener("abort", stop, { once: true });\n', ""]],
      only: "response stops in the middle",
    },
  },
  "test/unit/client/nodes.test.ts": {
    "half-answer-of-own-node": {
      file: "packages/client/src/on-chain.ts",
      edits: [["http(rpcUrl, { fetchFn: fetchWhole })", "http(rpcUrl)"]],
      only: "gives up on a node that sends half a response",
    },
  },
  "test/unit/features/keys/format.test.ts": {
    "key-checksum-ignored": {
      file: "src/features/agents/key-owners.ts",
      from: "if (match === null || match[1] !== environment) return false;",
      to: "if (match === null || match[1] !== environment) return false;\n  if (text.length > 0) return true;",
      only: "every single wrong character",
    },
  },
  "test/unit/features/references/vault.test.ts": {
    "secret-moves": {
      file: "src/master-key.ts",
      from: "if (protectedHeader[name] !== value) {",
      to: 'if (protectedHeader[name] !== value && value === "") {',
      only: "does not unwrap for another",
    },
  },
  "test/unit/http/body.test.ts": {
    "depth-unbounded": {
      file: "src/http/schemas.ts",
      edits: [['  if (depth > LIMITS.bodyDepth) throw fault("", TOO_DEEP);\n', ""]],
      only: "nesting of 65 levels",
    },
  },
  "test/unit/mcp/server.test.ts": {
    "cancelled-call-begun": {
      file: "packages/cli/src/mcp/write-tools.ts",
      edits: [["        signal.throwIfAborted();\n", ""]],
      only: "cancelled before it began is not made",
    },
  },
  "test/unit/payments/decode.test.ts": {
    "payment-sent-twice": {
      file: "src/payments/x402.ts",
      edits: [["if (v2 !== null && v1 !== null) {", 'if (v2 === "" && v1 !== null) {']],
      only: "both versions at once",
    },
  },
  "test/unit/protocol/ledger.test.ts": {
    "fee-on-the-price": {
      file: "packages/protocol/src/ledger.ts",
      from: "const fee = share(gross, parameters.protocolFee);",
      to: "const fee = share(price, parameters.protocolFee);",
      only: "dispute, 2 of 3 met",
    },
    "stake-slashed-whole": {
      file: "packages/protocol/src/ledger.ts",
      from: "const slash = (stake * BigInt(tally.notMet)) / criteria;",
      to: "const slash = tally.notMet > 0 ? stake : 0n;",
      only: "dispute, 2 of 3 met",
    },
    "bond-lost-whole": {
      file: "packages/protocol/src/ledger.ts",
      from: "const bondLost = (bond * BigInt(tally.met)) / criteria;",
      to: "const bondLost = tally.met > 0 ? bond : 0n;",
      only: "dispute, 2 met and 1 unclear",
    },
    "plurality-decides": {
      file: "packages/protocol/src/ledger.ts",
      edits: [['if (2 * votes.met > cast) return "met";', 'if (2 * votes.met >= cast) return "met";']],
      only: "dispute, tie",
    },
    "pot-to-everyone": {
      file: "packages/protocol/src/ledger.ts",
      from: "vote === outcome && winners > 0",
      to: "winners > 0",
      only: "dispute, all met",
    },
  },
  "test/unit/relayer/choose.test.ts": {
    "batch-oversized": {
      file: "src/relayer/choose.ts",
      edits: [["selection.bytes + operationBytes(candidate) > MAX_BATCH_BYTES", "false"]],
      only: "beyond what nodes accept",
    },
    "shared-endless": {
      file: "src/relayer/choose.ts",
      edits: [["PAYS_OUT.has(kind) && selection.awaited.has(escrow)", "false"]],
      only: "takes no refund",
    },
    "soonest-rival-first": {
      file: "src/relayer/choose.ts",
      edits: [["isUntried(candidate) ? escrow : null", "null"]],
      only: "takes the first of several payments",
    },
  },
  "test/unit/shared-statements.test.ts": {
    "statement-stops-others": {
      file: "src/db/statements.ts",
      edits: [["MAX_TURN_MS = 1000", "MAX_TURN_MS = 3_600_000"]],
      only: "a statement that hangs",
    },
  },
  "test/unit/votes/submit-votes.test.ts": {
    "party-votes": {
      file: "src/features/votes/ballots.ts",
      edits: [["if (roleOf(row, agent) !== null) throw", 'if (roleOf(row, agent) === "client") throw']],
      only: "cannot be a party",
    },
    "window-never-closes": {
      file: "src/features/votes/ballots.ts",
      edits: [["if (now >= closesAt) throw", "if (now > closesAt) throw"]],
      only: "last second of the window",
    },
  },
  "test/unit/webhooks/target.test.ts": {
    "upgrade-unheard": {
      file: "src/webhooks/target.ts",
      edits: [['call.on("upgrade"', 'call.on("upgraded"']],
      only: "changes the protocol",
    },
    "some-address-public": {
      file: "src/webhooks/target.ts",
      edits: [["!addresses.every(isPublicAddress)", "!addresses.some(isPublicAddress)"]],
      only: "one of its addresses leads inside",
    },
  },
};

/** @type {string[]} */
export const MUTANT_NAMES = Object.values(BY_TEST_FILE).flatMap((mutants) => Object.keys(mutants));

/** @type {Record<string, Mutant>} */
export const MUTANTS = Object.fromEntries(
  Object.entries(BY_TEST_FILE).flatMap(([tests, mutants]) =>
    Object.entries(mutants).map(([name, { file, from, to, edits = [[from, to]], only }]) => [
      name,
      { file, edits, only, tests },
    ]),
  ),
);
