/** Deliveries that the service stores and cannot open: sealed to keys that agents sign, shared with the jury in a dispute. */
import type { Agent } from "@working-contracts/client/index";
import { encryptionKeyText } from "@working-contracts/protocol/signatures";
import { exportJWK, generateKeyPair } from "jose";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, test } from "vitest";
import type { Agent as Caller } from "../support/agent.js";
import {
  type AgentOptions,
  draftOf,
  lying,
  makeJuror,
  newAgent as newAgentIn,
} from "../support/client-agents.js";
import { delivered, disputed, newJuror, ok, vote } from "../support/contracts.js";
import { useWorld } from "../support/world.js";

const REFERENCE = "ipfs://bafy-for-the-client-only";

const world = await useWorld();
const [client, worker] = await Promise.all([newAgent(), newAgent()]);

function newAgent(options: AgentOptions = {}): Promise<Agent> {
  return newAgentIn(world, { usd: "1000", node: world.info.rpcUrl, ...options });
}

async function matched(by: Agent = client, to: Agent = worker): Promise<string> {
  const { id } = await by.create(await draftOf(by));
  await to.accept(id);
  return id;
}

const staked = async () => makeJuror(world, await newAgent());

async function newKey(): Promise<string> {
  const { publicKey } = await generateKeyPair("ECDH-ES+A256KW", { extractable: true, crv: "X25519" });
  return (await exportJWK(publicKey)).x as string;
}

test("an agent whose wallet rejects the messages that make its key is signed in, and has none", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  const signMessage: typeof account.signMessage = async ({ message }) => {
    if (!String(message).includes("Nonce: ")) throw new Error("The user rejected the request");
    return account.signMessage({ message });
  };
  const agent = await newAgent({ account: { ...account, signMessage } });
  const path = { address: agent.address };
  const { data } = await agent.call("GET /v1/agents/{address}/encryption-key", { path });
  expect(data.key).toBeNull();
});

test("the chain names who voted, if the service does not; one without a key is reported", async () => {
  let hidden: object = { error: { code: "internal_error", message: "Sorry" } };
  let status = 400;
  const seller = await newAgent({
    fetch: lying((url, response) =>
      url.pathname === "/v1/events" ? Response.json(hidden, { status }) : response,
    ),
  });
  const [juror, keyless] = await Promise.all([staked(), newJuror(world)]);
  const id = await matched(client, seller);
  await seller.deliver(id, REFERENCE, { seal: true });
  await client.dispute(id);
  await juror.vote(id, ["met"]);
  await vote(keyless, id, "met");
  const failures: string[] = [];
  const onFailure = ({ message }: Error) => void failures.push(message);
  expect(await seller.shareDelivery(id, { onFailure })).toEqual([juror.address]);
  expect(failures).toEqual([
    expect.stringContaining(`${keyless.address} cannot read the delivery of ${id}`),
    expect.stringContaining("Sorry"),
  ]);
  await expect(seller.shareDelivery(id)).rejects.toThrow("Sorry");
  [hidden, status] = [{ data: [], hasMore: false, nextAfter: "0" }, 200];
  expect(await seller.shareDelivery(id, { onFailure })).toEqual([juror.address]);
  expect(await juror.readReference(id, "delivery")).toBe(REFERENCE);
});

test("parties that follow the events share what was asked for before, in each of their disputes, and what is asked for later", async () => {
  const juror = await staked();
  const ids = await Promise.all([matched(), matched(worker, client)]);
  await worker.deliver(ids[0], REFERENCE, { seal: true });
  await client.deliver(ids[1], REFERENCE, { seal: true });
  await Promise.all([client.dispute(ids[0]), worker.dispute(ids[1])]);
  for (const id of ids) expect(await juror.readReference(id, "delivery")).toBeNull();
  // Their requests are in the log before anyone follows it.
  for (const id of ids) {
    const query = { contractId: id, type: "key.released", after: "0" };
    const askers = async () =>
      (await worker.call("GET /v1/events", { query })).data.map(({ data }) => data.releasedTo);
    await expect.poll(askers).toContain(juror.address);
  }
  const stopped = new AbortController();
  const serving = worker.shareDeliveries({ signal: stopped.signal });
  try {
    for (const id of ids) await expect.poll(() => juror.readReference(id, "delivery")).toBe(REFERENCE);
    const next = await matched();
    await worker.deliver(next, REFERENCE, { seal: true });
    await client.dispute(next);
    await expect.poll(() => juror.readReference(next, "delivery"), { interval: 500 }).toBe(REFERENCE);
  } finally {
    stopped.abort();
    await serving;
  }
});

describe("a request", () => {
  let caller: Caller;
  const path = "/v1/agents/me/encryption-key";
  const signed = async (key: string, by = caller) => {
    const { domain, chainId } = world.deployment;
    const message = encryptionKeyText({ domain, chainId, address: caller.address, key });
    return { key, signature: await by.account.signMessage({ message }) };
  };

  beforeAll(async () => {
    caller = await world.newAgent();
  });

  test("publishes a key that its agent signed, and replaces it", async () => {
    const none = { address: caller.address, key: null, signature: null, publishedAt: null };
    expect((await caller.get(`/v1/agents/${caller.address}/encryption-key`)).data).toEqual(none);
    for (const key of [await newKey(), await newKey()]) {
      ok(await caller.post(path, await signed(key)));
      const { data } = await caller.get<{ key: string }>(`/v1/agents/${caller.address}/encryption-key`);
      expect(data.key).toBe(key);
    }
  });

  test("is refused with another's signature, or a key of another length", async () => {
    const [key, stranger] = [await newKey(), await world.newAgent()];
    const forged = await caller.post(path, await signed(key, stranger));
    expect([forged.status, forged.error?.code]).toEqual([401, "invalid_signature"]);
    const short = await caller.post(path, await signed(key.slice(1)));
    expect([short.status, short.error?.code]).toEqual([400, "invalid_request"]);
  });

  test("publishes no key for a contract wallet, whatever the wallet takes for a signature", async () => {
    const { address, ...wallet } = await world.newAgent();
    // Returns the magic value of ERC-1271 for everything.
    await world.testClient.setCode({ address, bytecode: "0x631626ba7e60e01b60005260206000f3" });
    for (const signature of [`0x${"ab".repeat(130)}`, `0x${"00".repeat(64)}1f`]) {
      const refused = await wallet.post(path, { key: await newKey(), signature });
      expect([refused.status, refused.error?.code]).toEqual([401, "invalid_signature"]);
      expect(refused.error?.message).toContain("Contract wallets cannot publish");
    }
  });

  test("shares only for the parties of a dispute, with its Backup Agents", async () => {
    const [a, b, stranger] = await Promise.all([
      world.newAgent({ usd: "1000" }),
      world.newAgent({ usd: "1000" }),
      world.newAgent(),
    ]);
    const juror = await newJuror(world);
    const pair = { client: a, worker: b };
    const [calm, loud] = [await delivered(world, pair), await disputed(world, pair)];
    const jwe = "e30.a.b.c.d";
    const share = async (by: Caller, id: unknown, recipient: string) => {
      const { status } = await by.post(`/v1/contracts/${id}/delivery/shares`, { recipient, jwe });
      return status;
    };
    expect(await share(b, loud.id, juror.address)).toBe(403);
    await juror.get(`/v1/contracts/${loud.id}/keys`);
    expect(await share(stranger, loud.id, juror.address)).toBe(403);
    expect(await share(b, calm.id, juror.address)).toBe(409);
    expect(await share(b, loud.id, stranger.address)).toBe(403);
    expect(await share(b, loud.id, juror.address)).toBe(200);
    const { data } = await juror.get<{ sender: string }[]>(`/v1/contracts/${loud.id}/delivery/shares`);
    expect(data).toMatchObject([{ sender: b.address, recipient: juror.address, jwe }]);
    expect((await stranger.get<unknown[]>(`/v1/contracts/${loud.id}/delivery/shares`)).data).toEqual([]);
  });
});
