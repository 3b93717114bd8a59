import { escrowAbi } from "@working-contracts/protocol/abi";
import { encodeErrorResult } from "viem";
import { describe, expect, it } from "vitest";
import { canPass, failureReason, retryDelay } from "../../../src/relayer/failures.js";

const facts = { fromKeeper: false, tries: 0, response: null };

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
    expect(canPass("WrongStatus", facts)).toBe(false);
    expect(canPass("PaymentFailed", facts)).toBe(false);
  });

  it("holds a keeper's premature action for a while, and rejects an agent's", () => {
    const early = { ...facts, fromKeeper: true };
    expect(canPass("VotingOpen", early)).toBe(true);
    expect(canPass("VotingOpen", { ...early, tries: 50 })).toBe(false);
    expect(canPass("VotingOpen", facts)).toBe(false);
  });

  it("holds, for a while, an operation that a reorg undid after its caller got a success response", () => {
    const lost = { ...facts, response: {} as never };
    expect([canPass("WrongStatus", lost), canPass("WrongStatus", { ...lost, tries: 34 })]).toEqual([
      true,
      false,
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
