/** An operator that holds every key of the service attacks votes, deliveries and terms. The results are a table of docs/trust.md. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ConnectOptions,
  connect,
  openVoteOnChain,
  type Agent as StrictAgent,
  settleOnChain,
} from "@working-contracts/client/index";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { type Outcome, packOutcomes } from "@working-contracts/protocol/outcomes";
import { type Address, encodeFunctionData, type Hex, keccak256, zeroHash } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Agent } from "../support/agent.js";
import { mined, openOnChain, recruit, walletOf } from "../support/chain.js";
import { ballot, DAY, draft, laterThan, matched, newJuror, ok, vote } from "../support/contracts.js";
import { markdownOf, type Operator, openOperator } from "../support/operator.js";
import { authorize, quoteOf, version2 } from "../support/payment.js";
import { openWorld, type World } from "../support/world.js";

const REFERENCE = "ipfs://for-the-client-only";
const WORDS: Outcome[] = ["met", "met", "not met"];
const OTHERS = packOutcomes(["not met", "not met", "not met"]);
const rows: string[][] = [];

let world: World;
let operator: Operator;
/** A party of each kind. */
let client: Agent;
let worker: Agent;
let strictClient: Strict;
let strictWorker: Strict;

beforeAll(async () => {
  world = await openWorld();
  operator = await openOperator(world);
  client = await world.newAgent({ usd: "5000" });
  worker = await world.newAgent({ usd: "5000" });
  [strictClient, strictWorker] = [await strict(), await strict()];
});
afterAll(async () => {
  console.log(table());
  await world.close();
});

const table = () => markdownOf(["Attack", "Agent that trusts the service", "Agent that does not"], rows);

type Strict = StrictAgent & { account: Agent["account"] };

async function strict(options: Partial<ConnectOptions> = {}): Promise<Strict> {
  const account = privateKeyToAccount(generatePrivateKey());
  await world.fundUsd(account.address, "5000");
  const spendingLimit = { perCall: "60", stake: "1000" };
  const node = world.info.rpcUrl;
  return { account, ...(await connect({ baseUrl: world.url, account, spendingLimit, node, ...options })) };
}

async function strictJuror(): Promise<Strict> {
  const juror = await strict();
  await world.grantTokens(juror.address as Address, 1000);
  await laterThan(world, (await juror.stake()).stakedSince as string);
  return juror;
}

/** A contract between the two that do not trust the service. */
async function strictlyMatched(by = strictClient, to = strictWorker): Promise<Address> {
  const { id } = await by.create((await draft(world)) as never);
  await to.accept(id);
  return id as Address;
}

const refusal = (error: Error): string => `\`${error.name}\``;

describe("votes", () => {
  let id: Address;
  let plain: Agent;
  let careful: Strict;
  let plainSalt: Hex;
  let carefulSalt: Hex;
  let next: [Agent, Strict];

  beforeAll(async () => {
    [plain, careful] = [await newJuror(world), await strictJuror()];
    next = [await newJuror(world), await strictJuror()];
    ({ id } = await matched<{ id: Address }>(world, { client, worker }));
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: REFERENCE }));
    ok(await client.pay(`/v1/contracts/${id}/dispute`));
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
      const { from, signature, nonce, validAfter, validBefore } = await authorize(payer, quote, {
        chainId: world.deployment.chainId,
        changes,
      });
      const args = [from, commitment, { validAfter, validBefore, nonce, signature }] as const;
      return operator.relayed(id, encodeFunctionData({ abi: escrowAbi, functionName: "vote", args }));
    };
    await operator.relayed(world.deployment.delegation, await operator.delegationOf(trusting));
    const results = [await attack(trusting, { commitment }), await attack(cautious, { commitment, nonce })];
    rows.push(["submit other votes with its bond", ...results]);
    expect(results).toEqual(["succeeds", "`NotParty`"]);
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
    rows.push(["read its vote before it is opened", ...results]);
    expect(results).toEqual(["succeeds", "finds nothing"]);
    const { data } = await client.get<{ vote: unknown }[]>(`/v1/contracts/${id}/votes`);
    expect(data.every((one) => one.vote === null)).toBe(true);
  });

  test("are opened with no other votes, and by their voter if the operator withholds the opening", async () => {
    await world.pool.query("delete from app.sealed_vote where contract_id = $1", [id]);
    await world.increaseTime(DAY);
    const open = (voter: string, salt: Hex) => {
      const args = [voter as Address, OTHERS, salt] as const;
      return operator.relayed(id, encodeFunctionData({ abi: escrowAbi, functionName: "openVote", args }));
    };
    const changed = [await open(plain.address, plainSalt), await open(careful.address, zeroHash)];
    rows.push(["open its vote with other votes", ...changed]);
    expect(changed).toEqual(["`CommitmentMismatch`", "`CommitmentMismatch`"]);

    await openOnChain(world, plain, { id, packed: packOutcomes(WORDS), salt: plainSalt });
    await world.testClient.setBalance({ address: careful.address as Address, value: 10n ** 18n });
    await openVoteOnChain(id, { rpcUrl: world.info.rpcUrl, account: careful.account });
    const opened = await world.publicClient.readContract({
      address: id,
      abi: escrowAbi,
      functionName: "openedVotes",
    });
    expect(opened).toBe(2n);
    rows.push(["withhold the opening of its vote", ...Array(2).fill("it opens on chain")]);
  });
});

describe("a delivery", () => {
  const readable = async (id: string) =>
    (await operator.readDelivery(id)).includes(REFERENCE) ? "succeeds" : "finds nothing";

  test("is read with the master key only if it was not sealed", async () => {
    const { id } = await matched<{ id: Address }>(world, { client, worker });
    ok(await worker.post(`/v1/contracts/${id}/delivery`, { delivery: REFERENCE }));
    const sealed = await strictlyMatched();
    await strictWorker.deliver(sealed, REFERENCE, { seal: true });
    const results = [await readable(id), await readable(sealed)];
    rows.push(["read its delivery with the master key", ...results]);
    expect(results).toEqual(["succeeds", "finds nothing"]);
  });

  test("is not made by a Worker that insists on sealing if the Client's key is false", async () => {
    const { key } = (await strictWorker
      .call("GET /v1/agents/{address}/encryption-key", {
        path: { address: strictWorker.address },
      })
      .then(({ data }) => data)) as { key: string };
    const deceived = await strict({
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (!String(url).endsWith(`${strictClient.address}/encryption-key`)) return response;
        const { data } = (await response.json()) as { data: object };
        return Response.json({ data: { ...data, key } });
      },
    });
    const [first, second] = [
      await strictlyMatched(strictClient, deceived),
      await strictlyMatched(strictClient, deceived),
    ];
    await deceived.deliver(first, REFERENCE);
    const results = [
      await readable(first),
      await deceived.deliver(second, REFERENCE, { seal: true }).then(() => "succeeds", refusal),
    ];
    rows.push(["name a false encryption key of the Client", ...results]);
    expect(results).toEqual(["succeeds", "`RefusedToSign`"]);
  });

  test("is read by no accomplice that the service names as the Client or a Backup Agent", async () => {
    const accomplice = await strict();
    const shares: string[] = [];
    const deceived = await strict({
      fetch: async (url, init) => {
        const path = new URL(String(url)).pathname;
        if (path.endsWith("/delivery/shares") && init?.method === "POST") {
          shares.push(String(init.body));
          return Response.json({ data: {} });
        }
        const response = await fetch(url, init);
        if (path === "/v1/events") {
          const page = (await response.json()) as { data: object[] };
          const asked = { role: "backup-agent", releasedTo: accomplice.address };
          return Response.json({ ...page, data: [{ type: "key.released", data: asked }], hasMore: false });
        }
        if (!/^\/v1\/contracts\/0x[0-9a-f]{40}$/.test(path)) return response;
        const { data } = (await response.json()) as { data: { status: string } };
        const isDisputed = data.status === "disputed";
        return Response.json({ data: { ...data, ...(!isDisputed && { client: accomplice.address }) } });
      },
    });
    const id = await strictlyMatched(strictClient, deceived);
    await deceived.deliver(id, REFERENCE, { seal: true });
    expect(await strictClient.reveal(id, "delivery")).toBe(REFERENCE);
    const stolen = async () =>
      shares.length > 0 ||
      JSON.parse(await operator.readDelivery(id)).recipients[0].header.kid === accomplice.address
        ? "succeeds"
        : "finds nothing";
    rows.push(["name an accomplice as the Client", "succeeds", await stolen()]);
    await strictClient.dispute(id);
    expect(await deceived.shareDelivery(id)).toEqual([]);
    rows.push(["name an accomplice as a Backup Agent", "succeeds", await stolen()]);
    expect(rows.slice(-2).map((row) => row.at(-1))).toEqual(["finds nothing", "finds nothing"]);
  });

  test("of a listing for anyone is sealed only to the Client that the chain names", async () => {
    const listing = { ...(await draft(world)), initiator: "worker" as const };
    const without = await strict({ node: undefined as never });
    for (const seller of [strictWorker, without]) {
      const { id } = await seller.create(listing as never);
      await strictClient.accept(id);
      const delivered = seller.deliver(id, REFERENCE, { seal: true });
      if (seller === without) await expect(delivered).rejects.toThrow("only the chain proves");
      else expect(JSON.parse(await operator.readDelivery((await delivered).id)).recipients).toHaveLength(2);
    }
  });

  test("is not confused with another one by a Backup Agent if it is sealed", async () => {
    const juror = await strictJuror();
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
      await juror.reveal(one, "delivery");
    }
    await operator.replaceDelivery(id, "ipfs://false");
    await expect.poll(() => strictClient.shareDelivery(other), { timeout: 60_000 }).toEqual([juror.address]);
    await world.pool.query(
      `insert into app.delivery_share select $1, recipient, sender, jwe, shared_at from app.delivery_share
       where contract_id = $2`,
      [sealed, other],
    );
    const shown = (one: string) =>
      juror.reveal(one, "delivery").then(
        () => "succeeds",
        ({ message }: Error) => (message.includes("not the reference") ? "it notices" : message),
      );
    const results = [await shown(id), await shown(sealed)];
    rows.push(["show a Backup Agent a false delivery", ...results]);
    expect(results).toEqual(["succeeds", "it notices"]);
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
});

describe("an operator that vanishes", () => {
  test("leaves agents that finish on chain with their own transactions", async () => {
    const { id } = await matched<{ id: Address }>(world, { client, worker });
    const sealed = await strictlyMatched();
    const finish = async (escrow: Address, [by, to]: [Agent["account"], Agent["account"]]) => {
      const before = await world.usdOf(to.address);
      const contract = { address: escrow, abi: escrowAbi } as const;
      const wallet = await walletOf(world, { account: to, address: to.address });
      const args = [keccak256("0x01"), zeroHash, 0] as const;
      await mined(world, await wallet.writeContract({ ...contract, functionName: "deliver", args }));
      const approver = await walletOf(world, { account: by, address: by.address });
      await mined(world, await approver.writeContract({ ...contract, functionName: "approve" }));
      await settleOnChain(escrow, { rpcUrl: world.info.rpcUrl, account: to });
      return (await world.usdOf(to.address)) - before;
    };
    expect(await finish(id, [client.account, worker.account])).toBe(50_000_000n);
    expect(await finish(sealed, [strictClient.account, strictWorker.account])).toBe(50_000_000n);
    rows.push(["vanish", ...Array(2).fill("it finishes on chain")]);
  });
});

test("docs/trust.md shows these results", () => {
  const text = readFileSync(new URL("../../docs/trust.md", import.meta.url), "utf8");
  for (const row of table().split("\n")) expect(text).toContain(row);
});
