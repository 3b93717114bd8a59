/** Contract wallets as Client, Worker and Backup Agent, from the sign-in to the payout. */
import { type Agent, connect, contractWallet, RefusedToSign } from "@working-contracts/client/index";
import { toHex } from "@working-contracts/protocol/hex";
import type { Address, Hex } from "viem";
import { expect, test } from "vitest";
import { makeJuror, newAgent } from "../support/client-agents.js";
import { deployWallets } from "../support/contract-wallets.js";
import { DAY, draft } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();

test("a Safe, a passkey wallet and an account with code create, accept, dispute, vote and are paid", async () => {
  const agents = await Promise.all(
    Object.values(await deployWallets(world)).map(async (account) => {
      return makeJuror(world, await newAgent(world, { account }), "1000");
    }),
  );
  const salts: Record<string, Hex> = {};
  const judged = agents.map(async (client, i) => {
    const [worker, juror] = [agents[(i + 1) % 3], agents[(i + 2) % 3]] as [Agent, Agent];
    const { id } = await client.create((await draft(world)) as never);
    await worker.accept(id);
    await worker.deliver(id, "ipfs://summary");
    await client.dispute(id);
    salts[id] = toHex(crypto.getRandomValues(new Uint8Array(32)));
    await juror.vote(id, ["met", "met", "met"], { salt: salts[id] });
    return { id, juror };
  });
  const disputes = await Promise.all(judged);
  await world.increaseTime(DAY);
  for (const { id, juror } of disputes) {
    expect(await juror.openVotes({ id, salts, intervalMs: 500 })).toEqual([id]);
    expect((await juror.waitForPayout(id)).status).toBe("settled-all-met");
  }
  for (const { address } of agents) {
    // As Client it pays 52.5, as Worker it receives 50.0 beside its stake, as Backup Agent its bond of 7.5.
    expect(await world.usdOf(address as Address)).toBe(197_500_000n);
  }
}, 300_000);

test("a wallet that is not deployed yet signs nothing (ERC-6492)", async () => {
  const account = contractWallet(`0x${"12".repeat(20)}`, async () => `0x00${"6492".repeat(16)}`);
  await expect(connect({ baseUrl: world.url, account })).rejects.toBeInstanceOf(RefusedToSign);
});
