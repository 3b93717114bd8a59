import { expect, it } from "vitest";
import { createLogger } from "../../src/logger.js";

it("cuts credentials out, at the top and two levels down, in headers of either case", () => {
  const lines: string[] = [];
  const logger = createLogger("info", { write: (line: string) => void lines.push(line) });
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
