/** Stakes of Backup Agents: paid in protocol tokens, and withdrawn after 48 hours (docs/rules.md 44). */
import { registryAbi } from "@working-contracts/protocol/abi";
import { parseEther, toHex } from "viem";
import { describe, expect, test } from "vitest";
import type { StakeView } from "../../src/features/stakes/routes.js";
import { localAccount } from "../../tools/local/network.js";
import type { Agent } from "../support/agent.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { alone, tokensOf } from "../support/chain.js";
import { DAY, disputed, newJuror, untilStatus, vote } from "../support/contracts.js";
import { authorize, quoteOf, signedCall, version2 } from "../support/payment.js";
import { runOperator } from "../support/programs.js";
import { useWorld } from "../support/world.js";

const STAKE = "/v1/agents/me/stake";
const UNSTAKE = "/v1/agents/me/unstake";

const world = await useWorld();

const newHolder = (tokens: number) => world.newAgent({ tokens });

const stakeOf = async (agent: Agent, of: Agent = agent): Promise<StakeView> =>
  (await agent.get<StakeView>(`/v1/agents/${of.address}/stake`)).data;

const nothing = ({ address }: Agent): StakeView => ({
  agentId: address,
  staked: "0.0",
  stakedSince: null,
  eligible: false,
  releasableAt: null,
});

const registryHolds = (agent: Agent) =>
  world.publicClient.readContract({
    address: world.deployment.registry,
    abi: registryAbi,
    functionName: "stakes",
    args: [agent.address],
  });

describe("staking", () => {
  test("takes the tokens and makes its agent eligible; further stakes add up", async () => {
    const agent = await newHolder(1500);
    expect(await stakeOf(agent)).toEqual(nothing(agent));
    const first = await agent.pay<StakeView>(STAKE, { amount: "999.5" });
    expect(first.status).toBe(200);
    expect(first.headers.get("payment-response")).toBeTruthy();
    expect(first.data).toMatchObject({ agentId: agent.address, staked: "999.5", eligible: false });
    expect(Date.parse(first.data.stakedSince ?? "") / 1000).toBeGreaterThan((await world.chainNow()) - 60);

    const second = await agent.pay<StakeView>(STAKE, '{"amount": 0.500000000000000001}');
    expect(second.data).toMatchObject({
      staked: "1000.000000000000000001",
      eligible: true,
      releasableAt: null,
    });
    const stranger = await world.newAgent();
    expect(await stakeOf(stranger, agent)).toEqual(second.data);
    expect((await registryHolds(agent))[0]).toBe(parseEther("1000.000000000000000001"));
    expect(await tokensOf(world, agent.address)).toBe(parseEther("499.999999999999999999"));
  });

  test.each([
    ["zero", '{"amount": 0}'],
    ["19 decimals", '{"amount": "0.0000000000000000001"}'],
    ["more than the registry can store", '{"amount": "79228162514.264337593543950336"}'],
    ["a word", '{"amount": "all"}'],
  ])("refuses %s", async (_, body) => {
    const agent = await world.newAgent();
    const { status, error } = await agent.post(STAKE, body);
    expect([status, error?.code]).toEqual([400, "invalid_request"]);
  });

  test("says what is missing if the payer lacks the tokens or pays in dollars", async () => {
    const agent = await world.newAgent({ usd: "5000" });
    const { quote, send } = await signedCall(agent, STAKE, undefined, world);
    expect(quoteOf(await send()).error).toBe("insufficient_funds");
    const { address, name, version } = world.deployment.asset;
    const dollars = { ...quote, asset: address, extra: { name, version } };
    const wrong = version2(dollars, await authorize(agent, dollars, world));
    expect(quoteOf(await agent.post(STAKE, undefined, wrong)).error).toBe("invalid_payment_requirements");
    expect(await stakeOf(agent)).toEqual(nothing(agent));
  });
});

describe("unstaking", () => {
  test("pays the whole stake back after 48 hours without a call", async () => {
    const [agent, stranger] = [await newHolder(1000), await newHolder(1)];
    expect((await agent.post(UNSTAKE)).error?.code).toBe("conflict");
    // The operator pays for no one who stakes and leaves without it.
    const own = await alone(world, stranger);
    await own.stake("1");
    await own.unstake();

    expect((await agent.pay<StakeView>(STAKE)).status).toBe(200);
    const unstaked = await agent.post<StakeView>(UNSTAKE);
    expect(unstaked.status).toBe(200);
    expect(unstaked.data).toMatchObject({ staked: "1000.0", eligible: false });
    const releasableAt = Date.parse(unstaked.data.releasableAt ?? "") / 1000;
    const now = await world.chainNow();
    expect(releasableAt).toBeGreaterThan(now + 2 * DAY - 60);
    expect(releasableAt).toBeLessThanOrEqual(now + 2 * DAY);

    expect((await agent.post(UNSTAKE)).error?.code).toBe("conflict");
    expect((await agent.post(STAKE)).error?.code).toBe("conflict");
    await world.increaseTime(2 * DAY - 120);
    expect(await tokensOf(world, agent.address)).toBe(0n);

    await world.increaseTime(180);
    await expect.poll(() => stakeOf(agent)).toEqual(nothing(agent));
    expect(await tokensOf(world, agent.address)).toBe(parseEther("1000"));
    expect(await tokensOf(world, stranger.address)).toBe(0n);
    await own.withdrawStake();
    expect(await tokensOf(world, stranger.address)).toBe(parseEther("1"));
  });

  test("by its own transaction has gas for a newer block than the one for which a node estimates it", async () => {
    const [first, second] = [
      await alone(world, await newJuror(world)),
      await alone(world, await newJuror(world)),
    ];
    await first.unstake();
    const { timestamp } = await world.publicClient.getBlock();
    await pauseBlocks(world.testClient);
    try {
      // In a block of the same second, the pool's newest size would be overwritten.
      await world.testClient.setNextBlockTimestamp({ timestamp });
      const unstaked = second.unstake();
      await expect.poll(() => world.testClient.getTxpoolStatus()).toMatchObject({ pending: 1 });
      await world.testClient.setNextBlockTimestamp({ timestamp: timestamp + 1n });
      await world.testClient.mine({ blocks: 1 });
      expect(await unstaked).toMatch(/^0x/);
    } finally {
      await resumeBlocks(world.testClient);
    }
  });

  test("is the same call with an idempotency key, even after the stake was paid back and made again", async () => {
    const agent = await newHolder(1000);
    const key = { "idempotency-key": "once" };
    await agent.pay<StakeView>(STAKE);
    const first = await agent.post<StakeView>(UNSTAKE, undefined, key);
    expect(first.status).toBe(200);
    await world.increaseTime(2 * DAY + 60);
    await expect.poll(() => stakeOf(agent)).toEqual(nothing(agent));
    expect((await agent.post<StakeView>(UNSTAKE, undefined, key)).body).toEqual(first.body);

    const { data: again } = await agent.pay<StakeView>(STAKE);
    expect((await agent.post<StakeView>(UNSTAKE, undefined, key)).body).toEqual(first.body);
    expect(await stakeOf(agent)).toEqual(again);
    const second = await agent.post<StakeView>(UNSTAKE, undefined, { "idempotency-key": "twice" });
    expect(second.data.releasableAt).not.toBeNull();
    // Neither the request nor the withdrawal of the first round blocks the second.
    await world.increaseTime(2 * DAY + 60);
    await expect.poll(() => stakeOf(agent)).toEqual(nothing(agent));
  });

  test("waits for the tally of a dispute on which the agent has voted", async () => {
    const juror = await newJuror(world, { usd: "100" });
    const [client, worker] = [await world.newAgent({ usd: "100" }), await world.newAgent({ usd: "100" })];
    const { id } = await disputed(world, { client, worker });
    await vote(juror, id, "met", "met", "met");

    const refused = await juror.post(UNSTAKE);
    expect(refused.error).toMatchObject({ code: "conflict", details: { contractId: id } });
    expect(await stakeOf(juror)).toMatchObject({ eligible: true, releasableAt: null });

    await world.increaseTime(DAY);
    await untilStatus(juror, id, "settled-all-met");
    expect((await juror.post<StakeView>(UNSTAKE)).data.releasableAt).not.toBeNull();
  });
});

describe("the operator's grant", () => {
  const grant = (key: Uint8Array, ...args: string[]) =>
    runOperator(["grant", ...args], {
      RPC_URL: world.info.rpcUrl,
      DEPLOYMENT: world.info.deploymentPath,
      OWNER_PRIVATE_KEY: toHex(key),
    });
  const keyOf = (index: number) => localAccount(index).getHdKey().privateKey as Uint8Array;

  test("mints tokens for an address, with the owner's key only", async () => {
    const { address } = await world.newAgent();
    const { stdout } = await grant(keyOf(0), address, "12.5");
    expect(stdout).toContain("12.5 protocol tokens");
    expect(await tokensOf(world, address)).toBe(parseEther("12.5"));
    const foreign = await grant(keyOf(5), address, "1");
    expect([foreign.code, foreign.stderr]).toEqual([1, expect.stringContaining("the token's owner is")]);
    const unclear = await grant(keyOf(0), address, "1e3");
    expect([unclear.code, unclear.stderr]).toEqual([1, expect.stringContaining("Usage: grant")]);
    expect(await tokensOf(world, address)).toBe(parseEther("12.5"));
  });
});
