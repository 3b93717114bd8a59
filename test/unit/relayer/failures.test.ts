import { escrowAbi } from "@working-contracts/protocol/abi";
import { encodeErrorResult } from "viem";
import { describe, expect, it } from "vitest";
import { failureReason, judgeFailure, retryDelay } from "../../../src/relayer/failures.js";

const facts = { fromKeeper: false, tries: 0, reported: false, tokenPaused: false } as const;

describe("why an operation failed", () => {
  it("names the Solidity error", () => {
    const data = encodeErrorResult({ abi: escrowAbi, errorName: "AlreadySettled" });
    expect(failureReason(data)).toBe("AlreadySettled");
  });

  it("distinguishes running out of gas from failing without a reason", () => {
    expect(failureReason("0x", { outOfGas: true })).toBe("OutOfGas");
    expect(failureReason("0x")).toBe("Reverted");
    const within = encodeErrorResult({ abi: escrowAbi, errorName: "FailedCall" });
    expect(failureReason(within), "an action within withDirectTransfer").toBe("Reverted");
    expect(failureReason("0xdeadbeef")).toBe("UnknownError");
  });

  it("rejects operations that the escrow rejects", () => {
    expect(judgeFailure({ ...facts, reason: "WrongStatus" }).verdict).toBe("reject");
    expect(judgeFailure({ ...facts, reason: "PaymentFailed" }).verdict).toBe("reject");
  });

  it("holds operations that fail because the token is paused", () => {
    expect(judgeFailure({ ...facts, reason: "PaymentFailed", tokenPaused: true })).toMatchObject({
      verdict: "hold",
      reason: "TokenPaused",
    });
  });

  it("holds a keeper's premature action for a while, and rejects an agent's", () => {
    expect(judgeFailure({ ...facts, reason: "VotingOpen", fromKeeper: true }).verdict).toBe("hold");
    expect(judgeFailure({ ...facts, reason: "VotingOpen", fromKeeper: true, tries: 50 }).verdict).toBe(
      "reject",
    );
    expect(judgeFailure({ ...facts, reason: "VotingOpen" }).verdict).toBe("reject");
  });

  it("holds, for a while, an operation that a reorg undid after its caller got a success response", () => {
    const lost = { ...facts, reason: "WrongStatus", reported: true };
    expect([judgeFailure(lost).verdict, judgeFailure({ ...lost, tries: 34 }).verdict]).toEqual([
      "hold",
      "reject",
    ]);
  });

  it("waits longer after each try, up to a limit", () => {
    const delays = [0, 1, 2, 3, 50].map((tries) => retryDelay(tries));
    expect(delays).toEqual([...delays].sort((a, b) => a - b));
    expect(delays.at(-1)).toBe(300_000);
    const reported = Array.from({ length: 34 }, (_, tries) => retryDelay(tries, { reported: true }));
    expect(reported.at(-1)).toBe(8_000);
    expect(reported.reduce((sum, delay) => sum + delay)).toBe(255_000);
  });
});
