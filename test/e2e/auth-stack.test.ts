/** Sign-in and revocation on the real relayer and indexer. */

import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "@working-contracts/protocol/types";
import { afterAll, expect, it } from "vitest";
import { createNotifications } from "../../src/db/client.js";
import { ensureDelegation } from "../../src/features/agents/delegation.js";
import { createOutboxWaiter } from "../../src/relayer/outbox.js";
import { type Agent, signIn } from "../support/agent.js";
import { isDelegated } from "../support/chain.js";
import { signedChallenge } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { url, chainId, deployment, publicClient, pool, db } = world;
const notifications = createNotifications({ pool });
const outbox = createOutboxWaiter({ db, notifications });

afterAll(async () => {
  outbox.stop();
  await notifications.stop();
});

/** As every first unpaid action of an agent does. */
const delegate = (agent: Address) =>
  ensureDelegation(
    {
      db,
      pool,
      publicClient,
      deployment,
      outbox,
      clock: { now: () => 0 },
      config: { settlementWaitMs: 20_000, gasLimits: { allowance: 0, budget: 0, perFee: 0 } },
    } as never,
    agent,
    "deliver",
  );

const revokeAll = async (agent: Agent) =>
  agent.post(`/v1/agents/${agent.address}/api-key/revoke`, await signedChallenge(agent, agent));

it("revokes on chain when all keys are revoked, and allows a new sign-in at once, any number of times", async () => {
  let agent = await signIn({ url, chainId });
  const { account, address } = agent;
  for (let round = 0; round < 3; round++) {
    await delegate(address);
    expect(await isDelegated(world, agent, "approve")).toBe(true);
    expect(await revokeAll(agent)).toMatchObject({ status: 200, data: { address, revokedCount: 1 } });
    expect(await agent.get("/v1/agents/me/api-keys")).toMatchObject({ status: 401 });
    // The next challenge waits until the revocation is mined.
    agent = await signIn({ url, chainId, account });
    expect(await isDelegated(world, agent, "approve")).toBe(false);
  }
});

it("registers no second sign-in that allows what the chain does, and obeys one that allows less", async () => {
  const { account, address } = await signIn({ url, chainId });
  await delegate(address);
  // Challenges are dated in seconds.
  await delay(1100);
  await signIn({ url, chainId, account });
  expect(await delegate(address)).toBe(true);
  const registrations = "select 1 from app.operation where caller = $1 and kind = 'delegate'";
  expect((await pool.query(registrations, [address])).rowCount).toBe(1);

  // As if its registration had failed: the chain still allows all.
  const newest =
    "select id from app.challenge where address = $1 and purpose = 'issue' order by issued_at desc limit 1";
  await pool.query(`update app.challenge set actions = 0 where id = (${newest})`, [address]);
  expect(await isDelegated(world, { address }, "approve")).toBe(true);
  expect(await delegate(address)).toBe(false);
});

it("reports requests to Prometheus by route pattern, never by path", async () => {
  const { address } = await signIn({ url, chainId });
  await fetch(`${url}/v1/nothing/at/${address}`);
  const answer = await fetch(`${url}/metrics`);
  expect(answer.headers.get("content-type")).toMatch(/^text\/plain/);
  const text = await answer.text();
  expect(text).toMatch(
    /http_request_duration_seconds_count\{method="POST",route="\/v1\/agents\/:address\/challenge",status="200"\} \d+/,
  );
  expect(text).toMatch(/_count\{method="GET",route="unmatched",status="404"\} [1-9]/);
  expect(text).toMatch(/relayer_operations_total\{outcome="(mined|final)"\} [1-9]/);
  expect(text).not.toContain(address);
});
