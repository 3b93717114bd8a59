import { expect, it } from "vitest";
import { agentOf, NETWORK } from "./fake-service.js";

const HOUR_MS = 3_600_000;
const AFTER = { match: "1h", withdrawal: "2h", delivery: "3h", review: "4h" } as const;

it.each([
  ["ahead", 310_000],
  ["behind", -310_000],
])(
  "deadlines are not counted from a service's clock that is over five minutes %s, unless the caller trusts it",
  async (_, by) => {
    const now = () => Date.now() + by;
    const message = expect.stringContaining("Check this machine's clock");
    const agent = await agentOf(() => undefined, { now });
    const refusal = { name: "RefusedToSign", field: "clock", message };
    await expect(agent.deadlines(AFTER)).rejects.toMatchObject(refusal);

    const trusting = await agentOf(() => undefined, { now, clock: "service" });
    const { matchDeadline } = await trusting.deadlines(AFTER);
    expect(Math.abs(Date.parse(matchDeadline) - now() - HOUR_MS)).toBeLessThan(10_000);
  },
);

it.each(["local", "service"] as const)(
  "deadlines are not counted from a clock that cannot be read (%s)",
  async (clock) => {
    const serve = () => Response.json({ data: { ...NETWORK, time: "soon" } });
    const agent = await agentOf(serve, { clock });
    const refusal = { name: "RefusedToSign", field: "clock" };
    await expect(agent.now()).rejects.toMatchObject(refusal);
    await expect(agent.deadlines(AFTER)).rejects.toMatchObject(refusal);
  },
);

it("deadlines can be times, which need no clock", async () => {
  const time = new Date("2030-01-01T00:00:00Z");
  const agent = await agentOf(() => undefined);
  const mixed = await agent.deadlines({ ...AFTER, review: time });
  expect(mixed).toMatchObject({ reviewDeadline: time.toISOString() });

  const wrong = await agentOf(() => undefined, { now: () => Date.now() + HOUR_MS });
  const times = { match: time, withdrawal: time, delivery: time, review: time };
  expect(new Set(Object.values(await wrong.deadlines(times)))).toEqual(new Set([time.toISOString()]));
  await expect(wrong.deadlines({ ...times, match: "1h" })).rejects.toMatchObject({ field: "clock" });
});

it.each([0, 999, -1, Number.NaN])(
  "a permission that ends at %s ms is refused, as the start of Unix time means no end",
  async (time) => {
    const operator = { actions: ["approve"], until: new Date(time) } as const;
    await expect(agentOf(() => undefined, { operator })).rejects.toThrow("until must be in the future");
  },
);
