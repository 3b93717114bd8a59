/** An operator that holds every key of the service attacks votes, deliveries and terms. The results are a table of docs/trust.md. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ConnectOptions,
  connect,
  type DeliverOptions,
  provenTerms,
  type Agent as StrictAgent,
} from "@working-contracts/client/index";
import { seal } from "@working-contracts/client/sealing";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { type Outcome, packOutcomes } from "@working-contracts/protocol/outcomes";
import { FULL_PERMISSION } from "@working-contracts/protocol/signatures";
import { type Address, encodeFunctionData, type Hex, keccak256, zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { localAccount } from "../../tools/local/network.js";
import type { Agent } from "../support/agent.js";
import { alone, isDelegated, mined, paidBy, recruit, tokensOf, walletOf } from "../support/chain.js";
import { changing, makeJuror, newAgent } from "../support/client-agents.js";
import {
  ballot,
  DAY,
  disputed,
  draft,
  matched,
  newJuror,
  newPair,
  ok,
  posted,
  vote,
} from "../support/contracts.js";
import { expectShown, markdownOf, openOperator } from "../support/operator.js";
import { authorize, quoteOf, version2 } from "../support/payment.js";
import { lazy, useWorld } from "../support/world.js";

const REFERENCE = "ipfs://for-the-client-only";
const WORDS: Outcome[] = ["met", "met", "not met"];
const OTHERS = packOutcomes(["not met", "not met", "not met"]);
const rows: string[][] = [];

const world = await useWorld();
const operator = await openOperator(world);
/** A party of each kind. */
const { client, worker } = await newPair(world);
const [strictClient, strictWorker] = await Promise.all([strict(), strict()]);
afterAll(() => console.log(table()));

/** A row of the table. Throws if an attack has another result against the trusting agent, or against the strict one. */
function record(attack: string, results: string[], expected: string[]): void {
  rows.push([attack, ...results]);
  expect(results).toEqual(expected);
}

const table = () => markdownOf(["Attack", "Agent that trusts the service", "Agent that does not"], rows);

type Strict = StrictAgent & { account: Agent["account"] };

async function strict(options: Partial<ConnectOptions> = {}): Promise<Strict> {
  const account = privateKeyToAccount(generatePrivateKey());
  const given = { usd: "5000", account, node: world.info.rpcUrl, ...options };
  return { account, ...(await newAgent(world, given)) };
}

/** The agent's own client without a node: it takes the service's word. */
const NO_NODE = { node: undefined as never };

const strictJuror = async (options: Partial<ConnectOptions> = {}) => makeJuror(world, await strict(options));

/** A Backup Agent that takes the service's word, and one with a node. */
const sharedJurors = lazy(async () => [await strictJuror(NO_NODE), await strictJuror()] as const);

/** A contract between the two that do not trust the service. */
async function strictlyMatched(
  by: StrictAgent = strictClient,
  to: StrictAgent = strictWorker,
  overrides: object = {},
): Promise<Address> {
  const { id } = await by.create((await draft(world, overrides)) as never);
  await to.accept(id);
  return id as Address;
}

const refusal = (error: Error): string => `\`${error.name}\``;

/** Whether the agent's call notices the attack: it then fails with this in the error's name or message. */
const noticed = (call: Promise<unknown>, by: string): Promise<string> =>
  call.then(
    () => "succeeds",
    (error: Error) => (String(error).includes(by) ? "it notices" : String(error)),
  );

/** A service that answers some requests falsely; null passes the request on. */
function lying(
  answer: (path: string, init: RequestInit) => Response | Promise<Response> | null,
): typeof fetch {
  return async (url, init = {}) => (await answer(new URL(String(url)).pathname, init)) ?? fetch(url, init);
}

const CONTRACT = /^\/v1\/contracts\/0x[0-9a-f]{40}$/;
/** A service that changes this of the contracts that it shows. */
const showing = (changes: object): typeof fetch =>
  changing<object>(CONTRACT, (data) => ({ ...data, ...changes }));

/** How a lying service's act on a delivered contract ends, for a Client that takes its word and for one with a node. */
async function withAndWithoutNode(
  send: typeof fetch,
  act: (by: Strict, id: Address) => Promise<string>,
): Promise<string[]> {
  const results = [];
  for (const options of [NO_NODE, {}]) {
    const by = await strict({ fetch: send, ...options });
    const id = await strictlyMatched(by);
    await strictWorker.deliver(id, REFERENCE, { seal: true });
    results.push(await act(by, id));
  }
  return results;
}

/** The keeper of the running service can do the same at the same time. */
async function unlessDone(errorName: string, act: Promise<unknown>): Promise<void> {
  await act.catch((error: { errorName?: string }) => {
    if (error.errorName !== errorName) throw error;
  });
}

async function encryptionKeyOf({ address }: StrictAgent): Promise<string> {
  const path = { address };
  const { data } = await strictWorker.call("GET /v1/agents/{address}/encryption-key", { path });
  return data.key as string;
}

describe("votes", () => {
  let id: Address;
  /** A contract whose only vote is entrusted to the service. */
  let lost: Address;
  let plain: Agent;
  let careful: Strict;
  let plainSalt: Hex;
  let carefulSalt: Hex;
  let next: [Agent, Strict];
  /** Everything that the careful voter sent to its node, and to the service. */
  const asked: string[] = [];
  const posted: unknown[] = [];
  let isHiding = false;
  let hidden: typeof fetch;

  beforeAll(async () => {
    const node = {
      request: (request: never) => {
        asked.push(JSON.stringify(request));
        return world.publicClient.request(request);
      },
    };
    hidden = lying((path, { method, body }) => {
      posted.push(body);
      if (!isHiding) return null;
      if (path === "/v1/votes") return Response.json({ data: [], nextCursor: null });
      return method === "POST" && path.endsWith("/votes/open") ? Response.json({ data: [] }) : null;
    });
    [plain, careful] = [await newJuror(world), await strictJuror({ node, fetch: hidden })];
    next = [await newJuror(world), await strictJuror()];
    ({ id } = await matched<{ id: Address }>(world, { client, worker }));
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: REFERENCE }));
    ok(await client.pay(`/v1/contracts/${id}/dispute`));
    ({ id: lost } = await disputed<{ id: Address }>(world, { client, worker }));
    await vote(plain, lost, ...WORDS);
    ({ salt: plainSalt } = await vote(plain, id, ...WORDS));
    ({ salt: carefulSalt } = await careful.vote(id, WORDS));
  });

  test("are not replaced by the operator that carries the bond, if the bond signs them", async () => {
    const [trusting, cautious] = next;
    const [commitment, nonce] = [keccak256("0x01"), keccak256("0x02")];
    const quote = quoteOf(await trusting.post(`/v1/contracts/${id}/votes`, ballot(...WORDS)));
    const attack = async (
      { account }: Pick<Agent, "account">,
      { commitment, ...changes }: { commitment: Hex; nonce?: Hex },
    ) => {
      const payer = { account, address: account.address } as Agent;
      const payment = await authorize(payer, quote, { chainId: world.deployment.chainId, changes });
      const args = [payment.from, commitment, payment] as const;
      return operator.relayed(id, encodeFunctionData({ abi: escrowAbi, functionName: "vote", args }));
    };
    await operator.relayed(world.deployment.delegation, await operator.delegationOf(trusting));
    const results = [await attack(trusting, { commitment }), await attack(cautious, { commitment, nonce })];
    record("submit other votes with its bond", results, ["succeeds", "`NotParty`"]);
    // A nonce drawn at random, as by a stock client, is no commitment: no one could open such a vote.
    expect(await attack(cautious, { commitment: nonce, nonce })).toBe("`NotParty`");
  });

  test("are read before they are opened only if their voter named them", async () => {
    const { rows: tables } = await world.pool.query<{ name: string }>(
      "select quote_ident(table_name) as name from information_schema.tables where table_schema = 'app'",
    );
    const everything = await Promise.all(
      tables.map(({ name }) => world.pool.query(`select to_jsonb(t)::text as text from app.${name} t`)),
    );
    const database = everything.flatMap(({ rows }) => rows.map(({ text }) => text as string)).join("\n");
    const logs = readdirSync(world.info.logs).map((file) =>
      readFileSync(join(world.info.logs, file), "utf8"),
    );
    const places = [database, ...logs].join("\n");
    const stored = (salt: Hex) => (places.includes(salt.slice(2)) ? "succeeds" : "finds nothing");
    const results = [stored(plainSalt), stored(carefulSalt)];
    record("read its vote before it is opened", results, ["succeeds", "finds nothing"]);
    expect(await careful.openVotes({ wait: false })).toEqual([]);
    const sent = [...asked, ...posted].join();
    for (const known of ["eth_call", "commitment"]) expect(sent).toContain(known);
    for (const secret of ["not met", carefulSalt.slice(2)]) expect(sent).not.toContain(secret);
    expect(places.includes(REFERENCE)).toBe(false);
    const { data } = await client.get<{ vote: unknown }[]>(`/v1/contracts/${id}/votes`);
    expect(data.every((one) => one.vote === null)).toBe(true);
  });

  test("are opened with no other votes, and by their voter if the operator withholds the opening", async () => {
    await world.pool.query("delete from app.entrusted_vote where contract_id in ($1, $2)", [id, lost]);
    await world.increaseTime(DAY);
    const open = (voter: string, salt: Hex) => {
      const args = [voter as Address, OTHERS, salt] as const;
      return operator.relayed(id, encodeFunctionData({ abi: escrowAbi, functionName: "openVote", args }));
    };
    const changed = [await open(plain.address, plainSalt), await open(careful.address, zeroHash)];
    record("open its vote with other votes", changed, ["`CommitmentMismatch`", "`CommitmentMismatch`"]);

    const forgetful = await connect({ baseUrl: world.url, account: careful.account, fetch: hidden });
    isHiding = true;
    const opening = (agent: StrictAgent) => noticed(agent.openVotes({ wait: false }), "still sealed");
    const results = [await opening(forgetful), await opening(careful)];
    record("hide its vote until the bond is lost", results, ["succeeds", "it notices"]);

    await (await alone(world, plain)).openVote(id, plainSalt);
    await (await alone(world, careful)).openVote(id);
    const opened = await world.publicClient.readContract({
      address: id,
      abi: escrowAbi,
      functionName: "openedVotes",
    });
    expect(opened).toBe(2n);
    rows.push(["withhold the opening of its vote", ...Array(2).fill("it opens on chain")]);

    await world.increaseTime(DAY);
    const party = await alone(world, client);
    await unlessDone("WrongStatus", party.tally(lost));
    await party.settle(lost);
    // The fee on half of the price, and the bond.
    expect(await paidBy(world, lost, localAccount(9).address)).toBe(1_250_000n + 7_500_000n);
  });
});

describe("terms", () => {
  test("do not change after the quote, whatever the owner does to the parameters", async () => {
    const seats = async (id: string) => {
      const terms = { address: id as Address, abi: escrowAbi, functionName: "terms" } as const;
      return (await world.publicClient.readContract(terms)).parameters.baRecruitCount;
    };
    const body = await draft(world);
    const quote = quoteOf(await client.post("/v1/contracts", body));
    const agent = await strict({ beforePayment: () => recruit(world, 5) });
    try {
      const posted = await agent.create((await draft(world)) as never);
      const payment = version2(quote, await authorize(client, quote, { chainId: world.deployment.chainId }));
      ok(await client.post("/v1/contracts", body, payment));
      expect([await seats(quote.payTo), await seats(posted.id)]).toEqual([0, 0]);
    } finally {
      await recruit(world, 0);
    }
    rows.push(["change parameters after the quote", ...Array(2).fill("its terms stay")]);
  });

  test("are those of the address, whatever criteria the service shows to a Backup Agent", async () => {
    const [id, agent] = [await strictlyMatched(), await strict(NO_NODE)];
    const { acceptanceCriteria } = await agent.get(id);
    const texts = [acceptanceCriteria[0], "false"].map((text) => JSON.stringify(text));
    await world.pool.query(
      `update app.terms set document = replace(document, $2, $3),
       acceptance_criteria = replace(acceptance_criteria::text, $2, $3)::jsonb where id = $1`,
      [id, ...texts],
    );
    const trusting = (await agent.get(id)).acceptanceCriteria[0] === "false" ? "succeeds" : "finds nothing";
    const read = async () => provenTerms(id, await agent.terms(id), agent.network);
    const results = [trusting, await read().then(() => "succeeds", refusal)];
    record("show a Backup Agent other criteria", results, ["succeeds", "`RefusedToSign`"]);
  });
});

test("a delivery is shared with an agent that was not drawn only once it may vote", async () => {
  const jurors = [await strictJuror(), await strictJuror()];
  // A service that says at once that both asked for it.
  const asking = jurors.map(({ address }) => ({ data: { role: "backup-agent", releasedTo: address } }));
  const fetching = lying((path) =>
    path === "/v1/events" ? Response.json({ data: asking, hasMore: false, nextAfter: "1" }) : null,
  );
  const deceived = await strict({ fetch: fetching });
  await recruit(world, 1);
  const id = await strictlyMatched(strictClient, deceived).finally(() => recruit(world, 0));
  await deceived.deliver(id, REFERENCE, { seal: true });
  await strictClient.dispute(id);
  const at = { address: id, abi: escrowAbi } as const;
  const jury = () => world.publicClient.readContract({ ...at, functionName: "jury" });
  await expect.poll(async () => (await jury()).drawn).toBe(true);
  const drawn: string[] = [];
  for (const { address } of jurors) {
    const args = [address as Address] as const;
    if (await world.publicClient.readContract({ ...at, functionName: "isDrawn", args })) drawn.push(address);
  }
  const shared = new Set<string>();
  const share = async () => {
    for (const one of await deceived.shareDelivery(id)) shared.add(one);
    // Another one can be drawn as well.
    return jurors.map(({ address }) => address).filter((one) => shared.has(one));
  };
  await expect.poll(share).toEqual(drawn);
  await world.increaseTime(DAY / 2);
  for (const juror of jurors) await juror.readReference(id, "delivery");
  const all = jurors.map(({ address }) => address);
  await expect.poll(share).toEqual(all);
});

// The following suites run together: none moves the time or changes a parameter. The first two wait for half a minute.
describe.concurrent("an action", () => {
  test("is noticed with a node if the service pretends it", async () => {
    const pretending = lying((path) =>
      path.endsWith("/dispute") ? Response.json({ data: { status: "disputed" } }) : null,
    );
    const results = await withAndWithoutNode(pretending, (by, id) => noticed(by.dispute(id), "NotOnChain"));
    record("pretend an action, such as its dispute", results, ["succeeds", "it notices"]);
  });
});

describe.concurrent("a narrower sign-in", () => {
  test("is not replaced by a wider one that the operator kept back", async () => {
    const attack = async (options: Partial<ConnectOptions>) => {
      const victim = await strict(options);
      const id = await strictlyMatched(victim);
      await strictWorker.deliver(id, REFERENCE);
      const { account } = victim;
      const wider = await operator.delegationOf({ account, address: account.address }, FULL_PERMISSION, {
        secondsAhead: 30,
      });
      expect(await operator.relayed(world.deployment.delegation, wider)).toBe("succeeds");
      const again = { account, node: world.info.rpcUrl, patienceMs: 2_000, ...options };
      return newAgent(world, again).then(
        () => operator.relayed(id, encodeFunctionData({ abi: escrowAbi, functionName: "approve" })),
        ({ message }: Error) => (message.includes("a wider delegation") ? "it notices" : message),
      );
    };
    const results = [await attack(NO_NODE), await attack({})];
    record("use a wider sign-in that it kept back", results, ["succeeds", "it notices"]);
  });

  test("is not ended by a service that only says so", async () => {
    const pretending = lying((path) =>
      path.endsWith("/api-key/revoke") ? Response.json({ data: { revokedCount: 1 } }) : null,
    );
    const attack = async (options: Partial<ConnectOptions>) => {
      const victim = await strict({ fetch: pretending, operator: "all", ...options });
      const registered = await operator.delegationOf(victim as never);
      expect(await operator.relayed(world.deployment.delegation, registered)).toBe("succeeds");
      const result = await noticed(victim.revokeKeys(), "a wider delegation");
      if (result === "succeeds") return result;
      const { account } = victim;
      expect(await isDelegated(world, account, "approve")).toBe(true);
      const honest = await connect({ baseUrl: world.url, account, node: world.info.rpcUrl, apiKey: "" });
      await honest.revokeKeys();
      expect(await isDelegated(world, account, "approve")).toBe(false);
      return result;
    };
    const results = [await attack(NO_NODE), await attack({})];
    record("pretend that its sign-in was revoked", results, ["succeeds", "it notices"]);
  });

  test.each(["revoke", "register"] as const)(
    "fails while a wider delegation is in force, until the agent calls `%s`",
    async (remedy) => {
      const account = privateKeyToAccount(generatePrivateKey());
      const { address } = account;
      const wallet = await walletOf(world, { account, address });
      const { rpcUrl } = world.info;
      const own = await alone(world, { account });
      const connecting = () => newAgent(world, { account, node: rpcUrl, usd: "0", patienceMs: 3_000 });
      const data = await operator.delegationOf({ account, address }, FULL_PERMISSION, { secondsAhead: 30 });
      await mined(world, await wallet.sendTransaction({ to: world.deployment.delegation, data }));
      await expect(connecting()).rejects.toThrow(/a wider delegation .*`revoke` or `register`/);
      await own[remedy]();
      expect(await isDelegated(world, account, "approve")).toBe(false);
      await connecting();
    },
  );
});

describe.concurrent("a payment", () => {
  test("is not taken if the operator carries another action before it", async () => {
    const reordered = async (payer: Agent, contract: { id: string }, cancel: () => Promise<unknown>) => {
      const id = contract.id as Address;
      const before = await world.usdOf(payer.address);
      const quote = quoteOf(await payer.post(`/v1/contracts/${id}/accept`, { accept: true }));
      const payment = await authorize(payer, quote, { chainId: world.deployment.chainId });
      await cancel();
      const args = [payment.from, payment] as const;
      const data = encodeFunctionData({ abi: escrowAbi, functionName: "accept", args });
      const result = await operator.relayed(id, data);
      expect(await world.usdOf(payer.address)).toBe(before);
      return result;
    };
    // The other tests pay at the same time.
    const payer = await world.newAgent({ usd: "100" });
    const { contract } = await posted<{ id: string }>(world, client);
    const sealed = await strictClient.create((await draft(world)) as never);
    const results = [
      await reordered(payer, contract, () => client.post(`/v1/contracts/${contract.id}/cancel`)),
      await reordered(payer, sealed, () => strictClient.cancel(sealed.id)),
    ];
    record("carry another action before a payment", results, ["`WrongStatus`", "`WrongStatus`"]);
  });

  test("is not used to accept a contract in the voter's name if it is for a vote", async () => {
    const attack = async (options: Partial<ConnectOptions>) => {
      const { id } = await strictClient.create(
        (await draft(world, { acceptanceCriteria: ["One"] })) as never,
      );
      let signed: string | null = null;
      // With one criterion, a bond is as high as the Worker Stake.
      const fetching = lying(async (path, init) => {
        if (init.method !== "POST" || !path.endsWith("/votes")) return null as never;
        const headers = new Headers(init.headers);
        signed = headers.get("payment-signature");
        if (signed !== null) return Response.json({ data: [] });
        const accept = { ...init, headers, body: JSON.stringify({ accept: true }) };
        const quoted = await fetch(`${world.url}/v1/contracts/${id}/accept`, accept);
        const text = atob(quoted.headers.get("payment-required") as string).replaceAll("/accept", "/votes");
        return new Response("{}", { status: 402, headers: { "payment-required": btoa(text) } });
      });
      const voter = await strict({ fetch: fetching, ...options });
      const refused = await voter.vote(id, ["met"]).then(() => "succeeds", refusal);
      if (signed === null) return refused;
      const { signature, authorization } = JSON.parse(atob(signed)).payload;
      const args = [authorization.from, { ...authorization, signature }] as const;
      const data = encodeFunctionData({ abi: escrowAbi, functionName: "accept", args });
      return operator.relayed(id as Address, data);
    };
    const results = [await attack(NO_NODE), await attack({})];
    record("accept a contract with the payment of its vote", results, ["succeeds", "`RefusedToSign`"]);
  });
});

describe.concurrent("a delivery", () => {
  /** As it is stored, or in a part that is merely encoded. */
  const readable = async (id: string) => {
    const text = await operator.readDelivery(id);
    const decoded = text.split('"').map((part) => Buffer.from(part, "base64url").toString("latin1"));
    return [text, ...decoded].some((one) => one.includes(REFERENCE)) ? "succeeds" : "finds nothing";
  };

  test("is read with the master key only if it was not sealed", async () => {
    const { id } = await matched<{ id: Address }>(world, { client, worker });
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: REFERENCE }));
    const sealed = await strictlyMatched();
    await strictWorker.deliver(sealed, REFERENCE, { seal: true });
    const results = [await readable(id), await readable(sealed)];
    record("read its delivery with the master key", results, ["succeeds", "finds nothing"]);
    for (const party of [strictClient, strictWorker])
      expect(await party.readReference(sealed, "delivery")).toBe(REFERENCE);
  });

  test("is not sealed to a false key, nor made by a Worker that insists if there is none", async () => {
    const path = new RegExp(`${strictClient.address}/encryption-key$`);
    const shownKey = (shown: { key: string | null; signature?: null }) =>
      strict({ fetch: changing<object>(path, (data) => ({ ...data, ...shown })) });
    const attack = async (by: Strict, options: DeliverOptions) => {
      const id = await strictlyMatched(strictClient, by);
      return by.deliver(id, REFERENCE, options).then(
        () => readable(id),
        async (error: Error) => {
          expect((await strictClient.get(id)).status).toBe("matched");
          return refusal(error);
        },
      );
    };
    const hidden = await shownKey({ key: null, signature: null });
    const none = [await attack(hidden, {}), await attack(hidden, { seal: true })];
    record("hide the encryption key of the Client", none, ["succeeds", "`RefusedToSign`"]);
    const falsified = await shownKey({ key: await encryptionKeyOf(strictWorker) });
    const results = [await attack(falsified, { seal: false }), await attack(falsified, { seal: true })];
    record("name a false encryption key of the Client", results, ["succeeds", "`RefusedToSign`"]);
    expect(await attack(falsified, {})).toBe("`RefusedToSign`");
  });

  test("is read by no accomplice that the service names as the Client or a Backup Agent", async () => {
    const accomplice = await strict();
    const shares: string[] = [];
    const misnaming = changing<{ status: string }>(CONTRACT, (data) =>
      data.status === "disputed" ? data : { ...data, client: accomplice.address },
    );
    const deceived = await strict({
      fetch: async (url, init) => {
        const path = new URL(String(url)).pathname;
        if (path.endsWith("/delivery/shares") && init?.method === "POST") {
          shares.push(String(init.body));
          return Response.json({ data: {} });
        }
        if (path !== "/v1/events") return misnaming(url, init);
        const page = (await (await fetch(url, init)).json()) as object;
        const asked = { role: "backup-agent", releasedTo: accomplice.address };
        return Response.json({ ...page, data: [{ type: "key.released", data: asked }], hasMore: false });
      },
    });
    const { id: plain } = await matched<{ id: Address }>(world, { client, worker });
    const id = await strictlyMatched(strictClient, deceived);
    // Too late to vote on these, but a stake like any other.
    await makeJuror(world, accomplice);
    ok(await worker.post(`/v1/contracts/${plain}/delivery`, { delivery: REFERENCE }));
    /** The service releases a key by its index, which the operator changes. */
    const releasedIf = async (change: string) => {
      const index = await world.pool.connect();
      const update = (columns: string, ...values: unknown[]) =>
        index.query(`update onchain.working_contract set ${columns} where id = $1`, [plain, ...values]);
      try {
        // Without the indexer's triggers.
        await index.query("set session_replication_role = replica");
        const found = await index.query(
          "select client, matched_at from onchain.working_contract where id = $1",
          [plain],
        );
        await update(change);
        const read = await accomplice.readReference(plain, "delivery").catch(() => null);
        await update("client = $2, matched_at = $3", found.rows[0].client, found.rows[0].matched_at);
        return read === REFERENCE ? "succeeds" : "finds nothing";
      } finally {
        index.release(true);
      }
    };
    await deceived.deliver(id, REFERENCE, { seal: true });
    expect(await strictClient.readReference(id, "delivery")).toBe(REFERENCE);
    const stolen = async () =>
      shares.length > 0 || (await operator.readDelivery(id)).includes(accomplice.address)
        ? "succeeds"
        : "finds nothing";
    const asClient = [await releasedIf(`client = '${accomplice.address}'`), await stolen()];
    record("name an accomplice as the Client", asClient, ["succeeds", "finds nothing"]);
    ok(await client.pay(`/v1/contracts/${plain}/dispute`));
    await strictClient.dispute(id);
    expect(await deceived.shareDelivery(id)).toEqual([]);
    const asJuror = [await releasedIf(`matched_at = ${2 ** 40 - 1}`), await stolen()];
    record("name an accomplice as a Backup Agent", asJuror, ["succeeds", "finds nothing"]);
  });

  test("is noticed by Client and Backup Agent with a node if the service replaced it", async () => {
    const parties = { Client: [await strict(NO_NODE), strictClient], Juror: await sharedJurors() };
    const replaced = async (id: string, reader: Strict, isSealed: boolean) => {
      const recipient = { address: reader.address, key: await encryptionKeyOf(reader) };
      await operator.replaceDelivery(
        id,
        isSealed ? await seal("ipfs://false", id, [recipient]) : "ipfs://false",
      );
      const reading = reader.readReference(id, "delivery").then((text) => expect(text).toBe("ipfs://false"));
      return noticed(reading, "does not match its hash");
    };
    const ids = [await strictlyMatched(parties.Client[0]), await strictlyMatched()] as const;
    for (const id of ids) await strictWorker.deliver(id, REFERENCE, { seal: true });
    for (const name of ["Client", "Juror"] as const) {
      if (name === "Juror") for (const [i, id] of ids.entries()) await parties.Client[i]?.dispute(id);
      for (const isSealed of [false, true]) {
        const results = [];
        for (const [i, id] of ids.entries())
          results.push(await replaced(id, parties[name][i] as Strict, isSealed));
        const reader = name === "Client" ? "its Client" : "a Backup Agent";
        const how = isSealed ? "by another one, sealed to" : "by a plain one, shown to";
        record(`replace a sealed delivery ${how} ${reader}`, results, ["succeeds", "it notices"]);
      }
    }
  });

  test("is opened and shared in no other contract in which an accomplice delivers its text", async () => {
    const [[, juror], accomplice] = [await sharedJurors(), await strict()];
    const { id: plain } = await matched<{ id: Address }>(world, { client, worker });
    ok(await worker.post(`/v1/contracts/${plain}/delivery`, { delivery: REFERENCE }));
    const sealed = await strictlyMatched();
    await strictWorker.deliver(sealed, REFERENCE, { seal: true });
    const opened = (act: Promise<unknown>) => noticed(act, "sealed for another contract");
    const results = [];
    for (const source of [plain, sealed]) {
      const id = await strictlyMatched(strictClient, accomplice);
      await accomplice.deliver(id, await operator.readDelivery(source), { seal: false });
      results.push(await opened(strictClient.readReference(id, "delivery")));
      await strictClient.dispute(id);
      await juror.vote(id, WORDS);
      if (source !== sealed) continue;
      expect(await opened(strictClient.shareDelivery(id))).toBe("it notices");
      expect(await opened(juror.readReference(id, "delivery"))).toBe("it notices");
    }
    record("have a copy of its delivery opened in another contract", results, ["succeeds", "it notices"]);
  });

  test("is noticed by its Client if the service hides it", async () => {
    const hidden = lying((path) => (path.endsWith("/keys") ? Response.json({ data: { keys: [] } }) : null));
    const results = await withAndWithoutNode(hidden, async (by, id) => {
      expect(await by.readReference(id, "delivery")).toBeNull();
      // Without a node there is nothing to compare.
      const fields = await by.verify(id, { tries: 1 }).then(
        (verified) => verified.fields,
        () => [],
      );
      return fields.some(({ field, equal }) => field.includes("withheld") && equal === false)
        ? "it notices"
        : "succeeds";
    });
    record("withhold a delivery from its Client", results, ["succeeds", "it notices"]);
  });

  test("ends its Client's wait even if the service hides it", async () => {
    const hidden = showing({ status: "matched", delivery: null });
    const wait = { timeoutMs: 8000, intervalMs: 200 };
    const results = await withAndWithoutNode(hidden, (by, id) =>
      by.waitFor(id, "under-review", wait).then(
        () => "it sees it on chain",
        ({ message }: Error) => (message.includes("is matched, not under-review") ? "succeeds" : message),
      ),
    );
    record("hide a delivery until the review deadline", results, ["succeeds", "it sees it on chain"]);
  });

  test("is read from a copy that the Worker sends, if the service hides it from a Backup Agent", async () => {
    const hidden = lying((path) => {
      if (path.endsWith("/delivery/shares")) return Response.json({ data: [] });
      return path.endsWith("/keys") ? Response.json({ data: { keys: [] } }) : null;
    });
    const juror = await strictJuror({ fetch: hidden });
    const id = await strictlyMatched();
    await strictWorker.deliver(id, REFERENCE, { seal: true });
    await strictClient.dispute(id);
    await juror.vote(id, WORDS);
    const copies = new Map<string, string>();
    await strictWorker.shareDelivery(id, { onShare: (_, recipient, copy) => copies.set(recipient, copy) });
    const copy = copies.get(juror.address) as string;
    const read = async (options?: { copy: string }) =>
      (await juror.readReference(id, "delivery", options)) === REFERENCE ? "it reads a copy" : "succeeds";
    const results = [await read(), await read({ copy })];
    record("withhold a delivery from a Backup Agent", results, ["succeeds", "it reads a copy"]);
    const [sealed, share] = JSON.parse(copy) as string[];
    const other = JSON.stringify([sealed?.replace("ciphertext", "cyphertext"), share]);
    await expect(juror.readReference(id, "delivery", { copy: other })).rejects.toThrow(
      "does not match its hash",
    );
  });

  test("is shared by a Worker that kept it, if the service hides it from everyone", async () => {
    const hidden = lying((path) => (path.endsWith("/keys") ? Response.json({ data: { keys: [] } }) : null));
    const juror = await strictJuror({ fetch: hidden });
    const attack = async (options: Partial<ConnectOptions>) => {
      const seller = await strict({ fetch: hidden, ...options });
      const id = await strictlyMatched(strictClient, seller);
      await seller.deliver(id, REFERENCE, { seal: true });
      await strictClient.dispute(id);
      await juror.vote(id, WORDS);
      const copies: string[] = [];
      const onShare = (_: string, __: string, text: string) => void copies.push(text);
      await seller.shareDelivery(id, { onShare }).catch(() => {});
      const [copy] = copies;
      if (copy === undefined) return "succeeds";
      expect(await juror.readReference(id, "delivery", { copy })).toBe(REFERENCE);
      return "it shares what it kept";
    };
    const results = [await attack({ submitted: { read: () => [], add() {} } }), await attack({})];
    record("withhold a delivery from its Worker", results, ["succeeds", "it shares what it kept"]);
  });

  test("is sealed only to the Client that the chain names, if the listing is for anyone", async () => {
    const listing = { ...(await draft(world)), initiator: "worker" as const };
    const [accomplice, without] = [await strict(), await strict(NO_NODE)];
    const deceived = await strict({ fetch: showing({ client: accomplice.address }) });
    for (const seller of [deceived, without]) {
      const { id } = await seller.create(listing as never);
      await strictClient.accept(id);
      const delivered = seller.deliver(id, REFERENCE, { seal: true });
      if (seller === without) await expect(delivered).rejects.toThrow("only the chain proves");
      else {
        const { recipients } = JSON.parse(await operator.readDelivery((await delivered).id));
        const readers = recipients.map((one: { header: { kid: string } }) => one.header.kid);
        expect(readers.sort()).toEqual([deceived.address, strictClient.address].sort());
      }
    }
  });

  test("is not confused with another one by a Backup Agent if it is sealed", async ({ expect }) => {
    const [trusting, juror] = await sharedJurors();
    const [{ id }, sealed, other] = [
      await matched<{ id: Address }>(world, { client, worker }),
      await strictlyMatched(),
      await strictlyMatched(),
    ];
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: REFERENCE }));
    ok(await client.pay(`/v1/contracts/${id}/dispute`));
    for (const one of [sealed, other]) {
      await strictWorker.deliver(one, `${REFERENCE}/${one}`, { seal: true });
      await strictClient.dispute(one);
      await juror.readReference(one, "delivery");
    }
    await operator.replaceDelivery(id, "ipfs://false");
    await expect.poll(() => strictClient.shareDelivery(other)).toEqual([juror.address]);
    await world.pool.query(
      `insert into app.delivery_share select $1, recipient, sender, jwe, shared_at from app.delivery_share
     where contract_id = $2`,
      [sealed, other],
    );
    const shown = (by: Strict, one: string) =>
      noticed(by.readReference(one, "delivery"), "not the reference");
    const results = [await shown(trusting, id), await shown(juror, sealed)];
    record("show a Backup Agent a false delivery", results, ["succeeds", "it notices"]);
    // Beside the false share, a true one is read.
    await expect.poll(() => strictWorker.shareDelivery(sealed)).toEqual([juror.address]);
    expect(await juror.readReference(sealed, "delivery")).toBe(`${REFERENCE}/${sealed}`);
  });
});

describe.concurrent("a complaint", () => {
  test("is shown without a signature if the party signs its own", async () => {
    const id = await strictlyMatched();
    await world.pool.query(
      `insert into app.complaint (id, contract_id, filed_by, filed_by_role, evidence)
     values ($1, $2, $3, 'client', '{"what":"forged"}')`,
      [crypto.randomUUID(), id, strictClient.address],
    );
    const { data } = await client.get<unknown[]>(`/v1/contracts/${id}/complaints`);
    const { fields } = await strictWorker.verify(id);
    const shown = fields.find(({ field }) => field.startsWith("signer of complaint"));
    const results = [
      data.length === 1 ? "succeeds" : "finds nothing",
      shown?.equal === null ? "shown as unsigned" : "succeeds",
    ];
    record("file a complaint in its name", results, ["succeeds", "shown as unsigned"]);
  });
});

describe("an operator that vanishes", () => {
  test("leaves agents that finish on chain with their own transactions", async () => {
    const finish = async (by: Pick<Agent, "account">, to: Pick<Agent, "account">, { id }: { id: string }) => {
      const [buyer, seller] = [await alone(world, by), await alone(world, to)];
      const before = await world.usdOf(to.account.address);
      await seller.accept(id);
      await seller.deliver(id, REFERENCE);
      await buyer.approve(id);
      await seller.settle(id);
      return (await world.usdOf(to.account.address)) - before;
    };
    const { contract } = await posted<{ id: string }>(world, client);
    const open = await strictClient.create((await draft(world)) as never);
    expect(await finish(client, worker, contract)).toBe(47_500_000n);
    expect(await finish(strictClient, strictWorker, open)).toBe(47_500_000n);
    rows.push(["vanish", ...Array(2).fill("it finishes on chain")]);
  });

  test("does not stall a dispute: its parties draw, and Backup Agents vote, open and are paid", async () => {
    const juror = await strictJuror();
    await recruit(world, 1);
    const { id } = await strictClient.create((await draft(world)) as never).finally(() => recruit(world, 0));
    const [buyer, seller, voter] = [
      await alone(world, strictClient),
      await alone(world, strictWorker),
      await alone(world, juror),
    ];
    const before = await world.usdOf(juror.address as Address);
    await seller.accept(id);
    await seller.deliver(id, REFERENCE);
    await buyer.dispute(id);
    const escrow = { address: id as Address, abi: escrowAbi } as const;
    const isDrawn = async () => {
      // Possible once the seed's block is over.
      await unlessDone("NoDraw", buyer.draw(id));
      return (await world.publicClient.readContract({ ...escrow, functionName: "jury" })).drawn;
    };
    await expect.poll(isDrawn).toBe(true);
    // Whether or not it was drawn.
    await world.increaseTime(DAY / 2);
    await voter.vote(id, WORDS);
    await voter.openVote(id);
    await unlessDone("WrongStatus", buyer.tally(id));
    await buyer.settle(id);
    await unlessDone("NothingToClaim", voter.claim(id));
    expect(await world.usdOf(juror.address as Address)).toBe(before);
    expect(await world.usdOf(id as Address)).toBe(0n);
    await voter.unstake();
    await expect(voter.withdrawStake()).rejects.toMatchObject({ errorName: "NotReleasable" });
    await world.increaseTime(2 * DAY);
    await unlessDone("NotStaked", voter.withdrawStake());
    expect(await tokensOf(world, juror.address as Address)).toBeGreaterThanOrEqual(1000n * 10n ** 18n);
    rows.push(["stall a dispute", "", "it finishes on chain"]);
  });
});

test("docs/trust.md shows these results, and no others", () => {
  expectShown(table());
});
