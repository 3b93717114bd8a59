import { testUsdAbi } from "@working-contracts/protocol/abi";
import { ContractFunctionExecutionError, HttpRequestError, type RpcRequestError } from "viem";
import { expect, it } from "vitest";
import { createChainClients } from "../../src/chain/clients.js";
import { AppError } from "../../src/errors.js";
import { createLogger } from "../../src/logger.js";
import { ROOT } from "../../src/root.js";
import { runProcess } from "../support/run-process.js";

function capture() {
  const lines: string[] = [];
  return { lines, logger: createLogger("info", { write: (line: string) => void lines.push(line) }) };
}

it("removes credentials, at the top and two levels down, in headers of either case", () => {
  const { lines, logger } = capture();
  const secrets = {
    authorization: "SECRET",
    Authorization: "SECRET",
    "payment-signature": "SECRET",
    "PAYMENT-SIGNATURE": "SECRET",
    "x-payment": "SECRET",
    "X-PAYMENT": "SECRET",
    apiKey: "SECRET",
    signature: "SECRET",
    masterKey: "SECRET",
    relayerPrivateKeys: ["SECRET"],
    databaseUrl: "SECRET",
  };
  logger.info(secrets, "top");
  logger.info({ headers: secrets }, "one down");
  logger.info({ request: { headers: secrets } }, "two down");
  logger.child({ requestId: "1" }).info({ headers: secrets }, "child");
  expect(lines).toHaveLength(4);
  expect(lines.join("")).not.toContain("SECRET");
  expect(lines.join("")).toContain("[redacted]");
});

const SIGNATURE = `0x${"c0ffee11".repeat(16)}1b`;

/** As viem throws it: the URL contains the provider's key, the body a payment's signature. */
function requestError(): HttpRequestError {
  return new HttpRequestError({
    url: "https://rpc.example.com/v2/API_KEY_OF_THE_PROVIDER?token=SECOND_KEY",
    body: { method: "eth_call", params: [{ data: SIGNATURE }] },
    status: 429,
    details: "over https://rpc.example.com/v2/API_KEY_OF_THE_PROVIDER",
    cause: new TypeError("fetch https://user:PASSWORD@rpc.example.com failed"),
  });
}

it.each([
  ["of viem", requestError()],
  ["that another error wraps", new AppError("unavailable", { message: "No answer.", cause: requestError() })],
  ["that is only text", requestError().message],
  ["of Postgres", Object.assign(new Error("no connection to postgres://u:PASSWORD@db/x"), { code: "57P01" })],
])("keeps the node's key and payments out of an error %s", (_name, error) => {
  const { lines, logger } = capture();
  logger.error({ err: error }, "one");
  logger.child({}).warn({ error }, "other");
  const text = lines.join("");
  expect(lines).toHaveLength(2);
  for (const secret of ["API_KEY", "SECOND_KEY", "PASSWORD", "c0ffee11c0ffee11", "eth_call"]) {
    expect(text).not.toContain(secret);
  }
});

it("keeps the details that an operator needs: names, short messages, codes and causes", () => {
  const { lines, logger } = capture();
  const cause = Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:8545"), { code: "ECONNREFUSED" });
  logger.error({ err: new AppError("unavailable", { message: "No answer.", cause }) }, "unavailable");
  const { err } = JSON.parse(lines[0] ?? "");
  expect(err).toMatchObject({
    name: "AppError",
    message: "No answer.",
    code: "unavailable",
    cause: { name: "Error", message: "connect ECONNREFUSED 10.0.0.1:8545", code: "ECONNREFUSED" },
  });
  expect(err.stack[0]).toContain("logger.test.ts");
});

it("does the same for the errors that a client really throws", async () => {
  const { publicClient } = createChainClients({ rpcUrl: "http://127.0.0.1:1/v2/API_KEY", chainId: 1 });
  const call = publicClient.readContract({
    address: `0x${"11".repeat(20)}`,
    abi: testUsdAbi,
    functionName: "authorizationState",
    args: [`0x${"22".repeat(20)}`, `0x${"33".repeat(32)}`],
  });
  const error = await call.catch((thrown: ContractFunctionExecutionError | RpcRequestError) => thrown);
  expect(error).toBeInstanceOf(ContractFunctionExecutionError);
  const { lines, logger } = capture();
  logger.error({ err: error }, "failed");
  expect(lines[0]).toContain("HttpRequestError");
  expect(lines[0]).not.toContain("API_KEY");
});

it("keeps the process alive, and lets it end, while standard output and a file are full", async () => {
  const program = `
    const { createLogger } = await import("./src/logger.ts");
    const { destination } = await import("pino");
    const loggers = [createLogger("info"), createLogger("info", destination({ dest: "/dev/full", sync: false }))];
    // A second after a failure, lines are written again.
    for (const ms of [1100, 100]) {
      for (const logger of loggers) logger.info("a line");
      await new Promise((resolve) => setTimeout(resolve, ms));
    }
    console.error("alive");
    process.exit(0);`;
  const args = [
    "-c",
    'exec "$0" --import tsx --input-type=module -e "$1" > /dev/full',
    process.execPath,
    program,
  ];
  const { code, stderr } = await runProcess("sh", args, { cwd: ROOT, timeoutMs: 20_000 });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "alive\n" });
});
