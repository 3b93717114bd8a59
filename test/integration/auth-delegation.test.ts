import { createServer } from "node:http";
import { FULL_PERMISSION } from "@working-contracts/protocol/signatures";
import type { Address } from "@working-contracts/protocol/types";
import type pg from "pg";
import {
  concatHex,
  encodeAbiParameters,
  encodeErrorResult,
  type Hex,
  numberToHex,
  parseAbi,
  size,
} from "viem";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { ADVISORY_LOCKS } from "../../src/db/client.js";
import type { Deps } from "../../src/deps.js";
import { ensureDelegation } from "../../src/features/agents/delegation.js";
import { delegateOperation } from "../../src/relayer/operations.js";
import { enqueue } from "../../src/relayer/outbox.js";
import { alone } from "../support/chain.js";
import { type Json, ok } from "../support/contracts.js";
import { waitingForLock } from "../support/database.js";
import { listen } from "../support/listen.js";
import { addressOf, authClient, newAgent, refusal, useAuthNetwork } from "./auth-network.js";

const network = await useAuthNetwork();
const client = authClient(network.app());

async function operationsOf(agent: Address, kind: string) {
  const { rows } = await network.pool.query(
    "select * from app.operation where caller = $1 and kind = $2 order by id",
    [agent, kind],
  );
  return rows as { id: string; target: Address; data: Hex; state: string }[];
}

/** The delegation that the agent's newest issued key depends on, as an outbox entry. */
async function delegationOf(agent: Address) {
  const { rows } = await network.pool.query(
    "select * from app.challenge where address = $1 and purpose = 'issue' order by issued_at desc, redeemed_at desc limit 1",
    [agent],
  );
  const { nonce, issued_at, expires_at, signature } = rows[0];
  return delegateOperation({
    deployment: network.deps.deployment,
    agent,
    ...FULL_PERMISSION,
    nonce,
    issuedAt: Number(issued_at),
    expiresAt: Number(expires_at),
    signature,
  });
}

/** Executes an agent's queued operations as the relayer does. */
async function carryOutAll(agent: Address, kind: string) {
  for (const { id, target, data } of await operationsOf(agent, kind)) {
    await network.relay(target, data);
    await network.pool.query("update app.operation set state = 'mined' where id = $1", [id]);
    await network.pool.query("select pg_notify('operation_done', $1)", [id]);
  }
}

async function delegate(agent: Address) {
  const { target, data } = await delegationOf(agent);
  await network.relay(target, data);
  expect(await network.isDelegated(agent)).toBe(true);
}

/** As a call does that has checked the limits. */
function register(agent: Address) {
  const { gasPolicy } = network.deps.config;
  return ensureDelegation(network.deps as Deps, agent, "vote", gasPolicy);
}

/** Runs `run` while a transaction that sent `statements` is open; `blocked` waits until so many others wait for it. */
async function whileBlocked<T>(
  statements: string,
  run: (blocked: (count: number) => Promise<void>, holder: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const holder = await network.pool.connect();
  await holder.query(`begin; ${statements}`);
  try {
    return await run(async (count) => {
      // Before Postgres ends the idle transaction.
      await expect.poll(() => waitingForLock(network.pool), { timeout: 15_000 }).toBe(count);
    }, holder);
  } finally {
    await holder.query("commit").finally(() => holder.release());
  }
}

describe("delegation", () => {
  it("is not registered from a sign-in before the newest, which can be narrower", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    await network.moveTime(1);
    await client.signIn(agent);
    const { rows } = await network.pool.query(
      "select signature is not null as kept from app.challenge where address = $1 order by issued_at",
      [addressOf(agent)],
    );
    expect(rows.map(({ kept }) => kept)).toEqual([false, true]);
  });

  it("is registered by no second sign-in that allows the same, and ends with a narrower one", async () => {
    const agent = newAgent();
    const address = addressOf(agent);
    await client.signIn(agent);
    await delegate(address);
    await network.moveTime(60);
    await client.signIn(agent);
    expect(await register(address)).toBe(true);
    expect(await operationsOf(address, "delegate")).toEqual([]);

    // As if its registration had failed: the chain still allows all.
    const newest = "select max(issued_at) from app.challenge where address = $1 and purpose = 'issue'";
    await network.pool.query(
      `update app.challenge set actions = 0 where address = $1 and issued_at = (${newest})`,
      [address],
    );
    expect(await network.isDelegated(address)).toBe(true);
    expect(await register(address)).toBe(false);
  });

  it("is registered by no sign-in older than the chain's, which that sign-in would not replace", async () => {
    const account = newAgent();
    const address = addressOf(account);
    await client.signIn(account);
    await network.moveTime(1);
    const { config, deployment } = network.deps;
    const world = { ...network, deployment, info: config } as never;
    await (await alone(world, { account })).register("none");
    expect(await ensureDelegation(network.deps as Deps, address, "approve")).toBe(false);
    expect(await register(address)).toBe(false);
    expect(await operationsOf(address, "delegate")).toEqual([]);
  });

  it("is revoked on chain, once, when the last key is revoked, not before", async () => {
    const agent = newAgent();
    const [one] = [await client.signIn(agent), await client.signIn(agent)];
    await delegate(addressOf(agent));
    await client.revoke(agent.address, { ...(await client.prove(agent)), keyId: one.keyId });
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(0);
    expect(await client.revoke(agent.address, await client.prove(agent))).toMatchObject({ status: 200 });
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(1);
    await carryOutAll(addressOf(agent), "revoke-delegation");
    expect(await network.isDelegated(addressOf(agent))).toBe(false);
  });

  it("ends together with webhooks that are being matched, whichever of them is matched first", async () => {
    const agent = newAgent();
    const { apiKey } = await client.signIn(agent);
    const proof = await client.prove(agent);
    const create = async () => {
      const headers = { authorization: `Bearer ${apiKey}` };
      const body = { url: "https://1.1.1.1/" };
      const hook = await client.call<Json>("POST", "/v1/agents/me/webhooks", { headers, body });
      return ok(hook, 201).id as string;
    };
    const [first, second] = [await create(), await create()];
    const match = (id: string) => `update app.webhook set wanted_up_to = wanted_up_to where id = '${id}'`;
    const matching = `select pg_advisory_xact_lock(${ADVISORY_LOCKS.webhookMatching})`;
    const { revocation } = await whileBlocked(`${matching}; ${match(second)}`, async (blocked, holder) => {
      const revocation = client.revoke(agent.address, proof);
      await blocked(1);
      await holder.query(match(first));
      return { revocation };
    });
    expect(await revocation).toMatchObject({ status: 200 });
    const sql = "select 1 from app.webhook where owner = $1 and disabled_at is not null";
    expect((await network.pool.query(sql, [addressOf(agent)])).rowCount).toBe(2);
  });

  it("costs no transaction if the agent never delegated", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    await client.revoke(agent.address, await client.prove(agent));
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(0);
  });

  it("is revoked even while the registration is still pending", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    await enqueue(network.deps.db, await delegationOf(addressOf(agent)));
    await client.revoke(agent.address, await client.prove(agent));
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(1);
    // The relayer executes one agent's operations in order.
    for (const kind of ["delegate", "revoke-delegation"]) await carryOutAll(addressOf(agent), kind);
    expect(await network.isDelegated(addressOf(agent))).toBe(false);
  });

  it("is revoked even if the registration arrived after the chain was read", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    const { operation } = await enqueue(network.deps.db, await delegationOf(addressOf(agent)));
    // The outbox knows what this node's head does not show yet.
    await network.pool.query("update app.operation set state = 'mined' where id = $1", [operation.id]);
    await client.revoke(agent.address, await client.prove(agent));
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(1);
    // There is no second revocation when nothing is left to revoke.
    await network.pool.query("update app.operation set state = 'final' where caller = $1", [
      addressOf(agent),
    ]);
    await client.revoke(agent.address, await client.prove(agent));
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(1);
  });

  it("ends with a narrower sign-in even if the node does not show its registration yet", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    const { operation } = await enqueue(network.deps.db, await delegationOf(addressOf(agent)));
    await network.pool.query("update app.operation set state = 'mined' where id = $1", [operation.id]);
    await network.moveTime(1);
    await client.signIn(agent);
    expect(await operationsOf(addressOf(agent), "delegate")).toHaveLength(2);
  });

  it("is revoked even if it is stored while the keys are being revoked", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    const registered = { promise: Promise.resolve(false) };
    const revoked = await whileBlocked("lock table app.operation in share mode", async (blocked) => {
      registered.promise = register(addressOf(agent));
      await blocked(1);
      const revocation = client.revoke(agent.address, await client.prove(agent));
      await blocked(2);
      return { revocation };
    });
    await expect(registered.promise).rejects.toMatchObject({ code: "settlement_pending" });
    expect(await revoked.revocation).toMatchObject({ status: 200 });
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(1);
  });

  it("is not stored once its sign-in is being revoked, unless there is a newer one", async () => {
    const [left, back] = [newAgent(), newAgent()];
    await client.signIn(left);
    await client.signIn(back);
    const revocation = `update app.challenge set signature = null where address in ('${addressOf(left)}', '${addressOf(back)}')`;
    const signIn = `insert into app.challenge select id || 'newer', address, nonce, message, issued_at, expires_at, actions,
      until, failed_attempts, redeemed_at, '0xabcd', purpose from app.challenge where address = '${addressOf(back)}'`;
    const { ofLeft, ofBack } = await whileBlocked(`${revocation}; ${signIn}`, async (blocked) => {
      const calls = { ofLeft: register(addressOf(left)), ofBack: register(addressOf(back)) };
      await blocked(2);
      return calls;
    });
    const [, refused] = await Promise.allSettled([ofBack, ofLeft]);
    expect(refused).toEqual({ status: "fulfilled", value: false });
    expect(await operationsOf(addressOf(left), "delegate")).toEqual([]);
    const stored = await operationsOf(addressOf(back), "delegate");
    expect(stored.map(({ data }) => data.includes("abcd"))).toEqual([true]);
  });

  it("can be granted again right after a revocation, because the new challenge is dated after it", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    await delegate(addressOf(agent));
    await client.revoke(agent.address, await client.prove(agent));
    // The next challenge waits for the revocation, which arrives a moment later.
    const waiting = authClient(network.app({ settlementWaitMs: 5_000 })).prove(agent);
    await carryOutAll(addressOf(agent), "revoke-delegation");
    expect(await client.issue(agent.address, await waiting)).toMatchObject({ status: 201 });
    await delegate(addressOf(agent));

    await client.revoke(agent.address, await client.prove(agent));
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(2);
  });

  it("is not promised while a revocation is pending: issuing returns 503 and keeps the challenge", async () => {
    const agent = newAgent();
    await client.signIn(agent);
    await delegate(addressOf(agent));
    await client.revoke(agent.address, await client.prove(agent));
    const proof = await client.prove(agent);
    const early = await client.issue(agent.address, proof);
    expect(early).toMatchObject(refusal(503, "unavailable", { retryable: true }));
    expect(early.headers.get("retry-after")).toBe("5");
    // Revoking is always possible, and costs no second transaction.
    expect(await client.revoke(agent.address, await client.prove(agent))).toMatchObject({ status: 200 });
    expect(await operationsOf(addressOf(agent), "revoke-delegation")).toHaveLength(1);

    await carryOutAll(addressOf(agent), "revoke-delegation");
    const outdated = await client.issue(agent.address, proof);
    const message = "The address was revoked on chain after this challenge was issued.";
    expect(outdated).toMatchObject(refusal(400, "invalid_challenge", { message }));
    expect(await client.issue(agent.address, await client.prove(agent))).toMatchObject({ status: 201 });
  });
});

/** Code that copies the data behind it and reverts with that data. */
function revertingWith(data: Hex): Hex {
  const length = numberToHex(size(data), { size: 2 });
  return concatHex(["0x61", length, "0x600c5f39", "0x61", length, "0x5ffd", data]);
}

describe("contract wallets", () => {
  it("sign in by ERC-1271, and their signature delegates on chain", async () => {
    const owner = newAgent();
    const wallet = await network.deployCompiled("ContractWallet", [owner.address]);
    const answer = await client.issue(wallet, await client.prove(owner, wallet));
    expect(answer).toMatchObject({ status: 201, body: { data: { address: wallet } } });
    await delegate(wallet);
  });

  it("are rejected with anyone else's signature, and without ERC-1271", async () => {
    const wallet = await network.deployCompiled("ContractWallet", [newAgent().address]);
    const message = "The contract at this address does not accept the signature (ERC-1271 isValidSignature).";
    for (const address of [wallet, network.deps.deployment.factory]) {
      const answer = await client.issue(address, await client.prove(newAgent(), address));
      expect(answer).toMatchObject(refusal(401, "invalid_signature", { message, details: { triesLeft: 4 } }));
    }
  });

  it("make us fetch nothing if they name a URL to query instead (ERC-3668)", async () => {
    let fetched = 0;
    const server = createServer((_request, response) => {
      fetched++;
      response.end("{}");
    });
    const { url } = await listen(server);
    const wallet = privateKeyToAddress(generatePrivateKey()).toLowerCase() as Address;
    const lookup = encodeErrorResult({
      abi: parseAbi(["error OffchainLookup(address, string[], bytes, bytes4, bytes)"]),
      args: [wallet, [url], "0x", "0x12345678", "0x"],
    });
    await network.testClient.setCode({ address: wallet, bytecode: revertingWith(lookup) });

    const answer = await client.issue(wallet, await client.prove(newAgent(), wallet));

    server.close();
    expect(answer).toMatchObject(refusal(401, "invalid_signature"));
    expect(fetched).toBe(0);
  });

  it("get 401 and cause no internal error if they run out of gas, or return or revert with a bomb", async () => {
    const wallet = await network.deployCompiled("MaliciousWallet");
    for (const attack of [0, 1, 2]) {
      const value = numberToHex(attack, { size: 32 });
      await network.testClient.setStorageAt({ address: wallet, index: 0, value });
      const answer = await client.issue(wallet, await client.prove(newAgent(), wallet));
      expect(answer).toMatchObject(refusal(401, "invalid_signature"));
    }
  });

  it("are asked to deploy first if they are not deployed yet (ERC-6492)", async () => {
    const agent = newAgent();
    const { challengeId, message } = await client.challenge(agent.address);
    const wrapped = concatHex([
      encodeAbiParameters(
        [{ type: "address" }, { type: "bytes" }, { type: "bytes" }],
        [agent.address, "0x1234", await agent.signMessage({ message })],
      ),
      `0x${"6492".repeat(16)}`,
    ]);
    const answer = await client.issue(agent.address, { challengeId, signature: wrapped });
    const reason =
      "Signatures of wallets that are not deployed yet (ERC-6492) are not accepted: deploy the wallet first, then sign again.";
    expect(answer).toMatchObject(refusal(401, "invalid_signature", { message: reason }));
  });

  it("decide alone: a key whose address got code is no longer enough", async () => {
    const agent = newAgent();
    const proof = await client.prove(agent);
    const wallet = await network.deployCompiled("ContractWallet", [newAgent().address]);
    const bytecode = await network.publicClient.getCode({ address: wallet });
    await network.testClient.setCode({ address: agent.address, bytecode: bytecode as Hex });
    expect(await client.issue(agent.address, proof)).toMatchObject({ status: 401 });
  });
});
