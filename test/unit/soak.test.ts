import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { checkLongRun, requireProof, type Usage } from "../../tools/soak/report.js";
import type { Cluster } from "../faults/support/cluster.js";
import { createCustomers } from "../faults/support/customers.js";
import type { Agent } from "../support/agent.js";

test("a soak that checked nothing, or injected no fault, fails", () => {
  const findings = (looked: number, faults: number) =>
    requireProof([{ name: "books", looked, wrong: [] }], new Map([["kill", faults]])).flatMap(
      ({ wrong }) => wrong,
    );
  expect(findings(1, 1)).toEqual([]);
  expect(findings(0, 1)).toEqual(["Nothing to check: books"]);
  expect(findings(1, 0)).toEqual(["Nothing to check: faults were injected"]);
});

test("a long soak needs every kind of fault, flat memory, and as much disk for later contracts as for earlier ones", () => {
  const growth = (first: number, early: number, late: number) => ({ first, early, late, last: late });
  const findings = (api: number, disk: number, faults: Record<string, number> = { kill: 1 }) => {
    const usage: Usage = new Map([
      ["api-1", growth(100, 200, api)],
      ["anvil", growth(30, 1500, 3000)],
      ["disk: logs", growth(0, 100, disk)],
      ["number of contracts", growth(0, 1000, 3000)],
    ]);
    return checkLongRun(usage, new Map(Object.entries(faults))).flatMap(({ wrong }) => wrong);
  };
  // 200 MiB for 2,000 later contracts would be as many for each.
  expect(findings(282, 432)).toEqual([]);
  expect(findings(283, 432)).toEqual(["api-1 took 200 MiB in the first half hour, 283 MiB after it"]);
  expect(findings(282, 433)).toEqual([
    "disk: logs grew by 333 MiB after the first half hour; its contracts would have taken 200",
  ]);
  expect(findings(282, 432, { kill: 1, reorg: 0 })).toEqual(["Never injected: reorg"]);
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
