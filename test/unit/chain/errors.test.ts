import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import { encodeErrorResult, toFunctionSelector } from "viem";
import { expect, test } from "vitest";
import { decodeRevert, meaningOf } from "../../../src/chain/errors.js";

test("decodes an escrow's error with its arguments", () => {
  const data = encodeErrorResult({ abi: escrowAbi, errorName: "WrongStatus", args: [2, 1] });
  expect(decodeRevert(data)).toEqual({ name: "WrongStatus", args: [2, 1] });
});

test("decodes nothing from empty, foreign and truncated data", () => {
  const data = encodeErrorResult({ abi: escrowAbi, errorName: "WrongStatus", args: [2, 1] });
  expect(decodeRevert("0x")).toBeNull();
  expect(decodeRevert(toFunctionSelector("error Foreign()"))).toBeNull();
  expect(decodeRevert(data.slice(0, 40) as `0x${string}`)).toBeNull();
});

test("every error of the four contracts has a meaning, and nothing else does", () => {
  const names = [...escrowAbi, ...factoryAbi, ...delegationAbi, ...registryAbi].flatMap((item) =>
    item.type === "error" ? [item.name] : [],
  );
  expect(names.filter((name) => meaningOf(name) === null)).toEqual([]);
  expect(meaningOf("toString")).toBeNull();
  expect(meaningOf("WrongStatus")?.code).toBe("conflict");
  expect(meaningOf("NotDrawn")?.code).toBe("forbidden");
});
