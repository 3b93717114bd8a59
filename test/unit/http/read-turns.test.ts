import { expect, test } from "vitest";
import { AUTHORIZED, CALLER, testApp } from "./fixtures.js";

/** A database that never responds. `asked` counts the statements, or transactions, that were begun. */
function silentDatabase() {
  let asked = 0;
  const query: object = new Proxy(() => {}, {
    get: (_, name) => {
      if (name !== "then") return query;
      asked += 1;
      return () => {};
    },
    apply: () => query,
  });
  return { readDb: query, asked: () => asked };
}

const LONG = [
  "/v1/votes?majorityOutcome=met",
  "/v1/votes?status=resolved",
  `/v1/votes?client=${CALLER}`,
  `/v1/contracts?client=${CALLER}&sort=budgetOrPrice`,
  `/v1/contracts?client=${CALLER}&worker=${CALLER}`,
  `/v1/contracts?client=${CALLER}&status=disputed`,
  `/v1/contracts?worker=${CALLER}&minPrice=1`,
  "/v1/contracts?sort=reviewDeadline&minPrice=1",
  `/v1/contracts?backupAgent=${CALLER}`,
  "/v1/contracts?application=usageticket",
  "/v1/contracts?awardMethod=open_tender",
  "/v1/contracts?initiator=worker",
  "/v1/contracts?status=settled-none-met",
  "/v1/contracts?status=cancelled-absent",
  "/v1/contracts?status=open,resolved",
  `/v1/agents/${CALLER}/record`,
  `/v1/agents/${CALLER}/workload`,
  `/agents/${CALLER}`,
  `/agents/${CALLER}.json`,
  `/v1/contracts/${CALLER}/checkpoints/x/proof`,
];
const SHORT = [
  "/v1/votes",
  `/v1/votes?backupAgent=${CALLER}`,
  `/v1/votes?contractId=${CALLER}&status=resolved`,
  "/v1/contracts?sort=budgetOrPrice",
  "/v1/contracts?minPrice=1",
  `/v1/contracts?client=${CALLER}`,
  ...["open", "active", "closed", "disputed", "matched", "settled-*"].map(
    (status) => `/v1/contracts?status=${status}`,
  ),
];

test("long reads of one IP address wait for each other, and for no one else's; short ones never wait", async () => {
  const { readDb, asked } = silentDatabase();
  const { app } = testApp(
    { TRUSTED_PROXIES: "1" },
    { readDb, clock: { now: () => 2_000_000_000, knownBlock: () => 0n } },
  );
  /** How many statements begin with a call that is not responded to. */
  const begunBy = async (path: string, from: string): Promise<number> => {
    const before = asked();
    void app.request(path, { headers: { ...AUTHORIZED, "X-Forwarded-For": from } });
    await new Promise((resolve) => setTimeout(resolve, 50));
    return asked() - before;
  };
  expect(await begunBy(LONG[0] ?? "", "192.0.2.1")).toBe(1);
  for (const path of LONG) expect(await begunBy(path, "192.0.2.1"), path).toBe(0);
  for (const path of SHORT) expect(await begunBy(path, "192.0.2.1"), path).toBe(1);
  expect(await begunBy(`/v1/agents/${CALLER}/record`, "192.0.2.2")).toBe(4);
  expect(await begunBy(`/agents/${CALLER}`, "192.0.2.3")).toBeGreaterThan(10);
});
