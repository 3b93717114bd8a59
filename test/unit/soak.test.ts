import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { checkLongRun, requireProof, type Usage, watchUsage } from "../../tools/soak/report.js";
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
  const growth = (first: number, early: number, late: number) => ({
    first,
    early,
    late,
    last: late,
    pids: new Set([1]),
  });
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

test("memory that a process takes after half an hour is a finding, and so is the end of a process that no fault ends", async () => {
  const code =
    "const all = []; process.stdin.on('data', () => console.log(all.push(Buffer.alloc(2 ** 27, 1)))); console.log(0)";
  const growing = spawn(process.execPath, ["-e", code]);
  onTestFinished(() => void growing.kill());
  await once(growing.stdout, "data");
  const pids: Record<string, number | undefined> = { "api-1": growing.pid, "api-2": 1, "relayer-1": 1 };
  const processes = Object.keys(pids).map((name) => ({ name, pid: () => pids[name] }));
  const none = { pid: () => undefined };
  const cluster = { dir: "/nowhere", processes, indexer: none, node: none } as unknown as Cluster;
  const now = vi.spyOn(performance, "now").mockReturnValue(0);
  const watch = watchUsage({ cluster, board: new Map() });
  const findings = () => checkLongRun(watch.stop(), new Map([["kill", 1]])).flatMap(({ wrong }) => wrong);
  now.mockReturnValue(31 * 60_000);
  expect(findings()).toEqual([]);
  growing.stdin.write("grow");
  await once(growing.stdout, "data");
  Object.assign(pids, { "api-2": growing.pid, "relayer-1": process.pid });
  expect(findings()).toEqual([
    expect.stringMatching(/^api-1 took \d+ MiB in the first half hour, \d+ MiB after it$/),
    "relayer-1 was restarted, so its memory shows nothing",
  ]);
  now.mockRestore();
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
