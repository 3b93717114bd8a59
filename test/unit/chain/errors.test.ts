import { delegationAbi, escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import { createPublicClient, encodeErrorResult, parseAbi, toFunctionSelector } from "viem";
import { afterEach, expect, it } from "vitest";
import { rpcTransport } from "../../../src/chain/clients.js";
import { errorNameOf, failedExecution, meaningOf } from "../../../src/chain/errors.js";
import { type FakeNode, json, startFakeNode } from "./node.js";

it("names an escrow's error, and nothing from empty, foreign and truncated data", () => {
  const data = encodeErrorResult({ abi: escrowAbi, errorName: "WrongStatus", args: [2, 1] });
  expect(errorNameOf(data)).toBe("WrongStatus");
  expect(errorNameOf("0x")).toBeNull();
  expect(errorNameOf(toFunctionSelector("error Foreign()"))).toBeNull();
  expect(errorNameOf(data.slice(0, 40) as `0x${string}`)).toBeNull();
});

it("every error of the four contracts has a meaning, and nothing else does", () => {
  const names = [...escrowAbi, ...factoryAbi, ...delegationAbi, ...registryAbi].flatMap((item) =>
    item.type === "error" ? [item.name] : [],
  );
  expect(names.filter((name) => meaningOf(name) === null)).toEqual([]);
  expect(meaningOf("toString")).toBeNull();
  expect(meaningOf("WrongStatus")?.code).toBe("conflict");
  expect(meaningOf("NotDrawn")?.code).toBe("forbidden");
});

let node: FakeNode | undefined;
afterEach(() => node?.stop());

const to = `0x${"11".repeat(20)}` as const;
const abi = parseAbi(["function paused() view returns (bool)"]);

/** The errors that a raw request, viem's `call` and its `readContract` throw if the node responds with this error. */
async function thrownFor(error: { code: number; message: string; data?: unknown }): Promise<unknown[]> {
  node = await startFakeNode((response, [call]) => json(response, { jsonrpc: "2.0", id: call?.id, error }));
  const client = createPublicClient({ transport: rpcTransport(node.url, { retryCount: 0 }) });
  return Promise.all(
    [
      client.request({ method: "eth_call", params: [{ to }, "latest"] }),
      client.call({ to }),
      client.readContract({ address: to, abi, functionName: "paused" }),
    ].map((call) =>
      call.then(
        () => null,
        (thrown) => thrown,
      ),
    ),
  );
}

it.each([
  ["geth's revert", { code: 3, message: "execution reverted", data: "0x1234" }, "0x1234", false],
  ["a revert without data", { code: 3, message: "execution reverted" }, "0x", false],
  ["Besu's revert", { code: -32_000, message: "Execution reverted", data: "0x1234" }, "0x1234", false],
  ["Nethermind's revert", { code: -32_015, message: "VM execution error.", data: "Reverted" }, "0x", false],
  [
    "Hardhat's revert",
    { code: -32_603, message: "VM Exception while processing transaction: reverted" },
    "0x",
    false,
  ],
  ["geth out of gas", { code: -32_000, message: "out of gas" }, "0x", true],
  ["reth out of gas", { code: -32_003, message: "out of gas: gas required exceeds: 3000000" }, "0x", true],
  ["anvil out of gas", { code: -32_003, message: "EVM error OutOfGas(Basic)" }, "0x", true],
  ["bad code", { code: -32_000, message: "invalid opcode: INVALID" }, "0x", false],
  ["a bad jump", { code: -32_000, message: "invalid jump destination" }, "0x", false],
  ["a full stack", { code: -32_000, message: "stack limit reached 1024 (1023)" }, "0x", false],
])("%s is the contract's failure", async (_name, error, data, outOfGas) => {
  const thrown = await thrownFor(error);
  expect(thrown.map(failedExecution)).toEqual(thrown.map(() => ({ data, outOfGas })));
});

it.each([
  ["an internal error", { code: -32_603, message: "Internal error" }],
  ["an internal error with data", { code: -32_603, message: "Internal error", data: "0x1234" }],
  ["a limit", { code: -32_005, message: "rate limit exceeded" }],
  ["another limit", { code: 429, message: "too many requests" }],
  ["a block that the node lacks", { code: -32_000, message: "header not found" }],
  ["state that the node has forgotten", { code: -32_000, message: "missing trie node 1234 (path )" }],
  ["the node's own time-out", { code: -32_000, message: "execution aborted (timeout = 5s)" }],
])("%s is the node's failure", async (_name, error) => {
  const thrown = await thrownFor(error);
  expect(thrown.map(failedExecution)).toEqual(thrown.map(() => null));
});

it("ignores errors that are not a node's response", () => {
  expect(failedExecution(new TypeError("out of gas"))).toBeNull();
  expect(failedExecution(undefined)).toBeNull();
});
