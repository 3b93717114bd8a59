import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { requireProof } from "../../tools/soak/report.js";
import type { Cluster } from "../faults/support/cluster.js";
import { createCustomers } from "../faults/support/customers.js";
import type { Agent } from "../support/agent.js";

test("a soak whose checks looked at nothing, or that injected no fault, has findings", () => {
  const findings = (looked: number, faults: number) =>
    requireProof([{ name: "books", looked, wrong: [] }], new Map([["kill", faults]])).flatMap(
      ({ wrong }) => wrong,
    );
  expect(findings(1, 1)).toEqual([]);
  expect(findings(0, 1)).toEqual(["Nothing to check: books"]);
  expect(findings(1, 0)).toEqual(["Nothing to check: faults were injected"]);
});

test("a limit that an agent meets is reported, though its repeated call succeeds", async () => {
  const codes = ["too_many_pending_attempts", "rate_limited"];
  const server = createServer((_, response) => {
    const code = codes.pop();
    response.writeHead(code === undefined ? 200 : 429);
    response.end(JSON.stringify(code === undefined ? {} : { error: { code, message: "Too many." } }));
  }).listen(0);
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const customers = createCustomers({ apis: [{ url }] } as Cluster, "test", { pauseMs: 1 });
  const read = async () => (await customers.read({ apiKey: "key" } as Agent, "1")).status;
  expect([await read(), await read(), customers.sent()]).toEqual([429, 200, 3]);
  expect(customers.limits).toEqual(["GET /v1/contracts/1: Too many."]);
  server.close();
});
