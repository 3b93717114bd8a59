import { testUsdAbi } from "@working-contracts/protocol/abi";
import {
  ContractFunctionExecutionError,
  ContractFunctionZeroDataError,
  HttpRequestError,
  RpcRequestError,
  TimeoutError,
} from "viem";
import { expect, it } from "vitest";
import { isOutage } from "../../../../src/http/responses.js";

const body = { method: "eth_call" };
const url = "http://node";
const rpc = (code: number, message = "no") => new RpcRequestError({ body, url, error: { code, message } });
const inCall = (cause: Error) =>
  new ContractFunctionExecutionError(cause as never, {
    abi: testUsdAbi,
    functionName: "balanceOf",
    args: [],
  });

it.each([
  ["an unreachable node", inCall(new HttpRequestError({ body, url }))],
  ["a node that takes too long", new TimeoutError({ body, url })],
  ["a node that refuses the call", inCall(rpc(-32_005))],
  ["a node with an internal error", rpc(-32_603)],
  [
    "a node without the escrow's code",
    inCall(new ContractFunctionZeroDataError({ functionName: "signatureNonce" })),
  ],
  ["a refused connection", Object.assign(new Error("connect"), { code: "ECONNREFUSED" })],
  ["Postgres during its shutdown", Object.assign(new Error("terminating"), { code: "57P01" })],
  ["a lost deadlock", Object.assign(new Error("deadlock detected"), { code: "40P01" })],
  ["a connection that broke", new Error("Client has encountered a connection error and is not queryable")],
  [
    "an index that is being filled",
    Object.assign(new Error('relation "onchain.vote" does not exist'), { code: "42P01" }),
  ],
  ["a pool without a free connection", new Error("timeout exceeded when trying to connect")],
])("treats %s as an outage", (_name, error) => {
  expect(isOutage(error)).toBe(true);
});

it.each([
  ["a call that reverted", inCall(rpc(3))],
  ["a call that reverted by its message", inCall(rpc(-32_000, "execution reverted"))],
  ["a fault in the code", new TypeError("undefined is not a function")],
  ["a missing table", Object.assign(new Error('relation "app.vote" does not exist'), { code: "42P01" })],
  ["a broken constraint", Object.assign(new Error("duplicate key"), { code: "23505" })],
  ["no error at all", "nothing"],
])("does not treat %s as an outage", (_name, error) => {
  expect(isOutage(error)).toBe(false);
});
