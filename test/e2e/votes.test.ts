/** Votes: who can cast one, what stays sealed until the tally, and what happens if no one opens them. */
import type { ChainNode } from "@working-contracts/client/index";
import { verifyContract } from "@working-contracts/client/verify/verify";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import {
  type Address,
  encodeEventTopics,
  parseUnits,
  type RpcLog,
  toFunctionSelector,
  zeroAddress,
} from "viem";
import { beforeAll, describe, expect, test } from "vitest";
import type { SettlementView } from "../../src/features/contracts/ledger.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import type { WorkloadView } from "../../src/features/records/routes.js";
import type { VotePage, VoteView } from "../../src/features/votes/view.js";
import type { Agent, ApiResponse } from "../support/agent.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { alone, frontRun, paidBy, recruit, tokensOf, untilDrawn } from "../support/chain.js";
import { serviceReaches } from "../support/chain-time.js";
import {
  ballot,
  DAY,
  disputed,
  HOUR,
  laterThan,
  matched,
  newJuror,
  newPair,
  ok,
  untilStatus,
  vote,
} from "../support/contracts.js";
import { authorize, quoteOf, version2 } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);
/** Three eligible Backup Agents. */
const [a, b, c] = await Promise.all([newJuror(world), newJuror(world), newJuror(world)]);

const usd = (amount: string) => parseUnits(amount, 6);
const votesPath = (id: string) => `/v1/contracts/${id}/votes`;
const GOOD = ballot("met", "not met", "unclear");

async function votesOn(reader: Agent, id: string, voter: Agent): Promise<VoteView[]> {
  const { data } = await reader.get<VoteView[]>(`/v1/votes?contractId=${id}&backupAgent=${voter.address}`);
  return data;
}

describe("submitting", () => {
  let id: string;
  beforeAll(async () => {
    ({ id } = await disputed(world, { client, worker }));
  });

  test("a repetition gets the same response and the same salt, even if the first response was lost", async () => {
    const quote = quoteOf(await c.post(votesPath(id), GOOD));
    const changes = { validAfter: 1n };
    const stake = version2(quote, await authorize(c, quote, { ...world, changes }));
    expect((await c.post(votesPath(id), GOOD, stake)).error?.message).toContain(
      "its nonce must be keccak256",
    );
    const payment = await authorize(c, quote, world);
    const headers = version2(quote, payment);
    const first = await c.post(votesPath(id), GOOD, headers);
    expect(first.status).toBe(200);
    const salt = first.headers.get("vote-salt");
    expect(salt).toBeTruthy();

    const second = await c.post(votesPath(id), GOOD, headers);
    expect([second.status, second.body, second.headers.get("vote-salt")]).toEqual([200, first.body, salt]);
    expect(second.headers.get("idempotent-replay")).toBe("true");

    await world.pool.query("update app.operation set response = null where nonce = $1", [payment.nonce]);
    const third = await c.post(votesPath(id), GOOD, headers);
    expect([third.status, third.body, third.headers.get("vote-salt")]).toEqual([200, first.body, salt]);
    expect((await c.post(votesPath(id), ballot("met", "met", "met"), headers)).error?.code).toBe("conflict");

    expect(quoteOf(await a.post(votesPath(id), GOOD, headers)).error).toBe("payer_mismatch");
  });

  test("a bond that a stranger sent ahead is credited, and one for a rejected vote is refunded", async () => {
    const voter = await newJuror(world);
    const other = await disputed(world, { client, worker });
    const quote = quoteOf(await voter.post(votesPath(other.id), GOOD));
    const before = await world.usdOf(voter.address);
    for (const expected of [200, 409]) {
      const payment = await authorize(voter, quote, world);
      await frontRun(world, client, payment);
      const answer = await voter.post(votesPath(other.id), GOOD, version2(quote, payment));
      expect(answer.status, JSON.stringify(answer.body)).toBe(expected);
    }
    await expect.poll(() => world.usdOf(voter.address)).toBe(before - usd("7.5"));
    expect(await votesOn(voter, other.id, voter)).toHaveLength(3);
  });

  test("an agent that staked after the match, or left before it, is refused before a quote", async () => {
    const running = await matched(world, { client, worker });
    const [late, leaving] = await Promise.all([newJuror(world), newJuror(world)]);
    await (await alone(world, leaving)).unstake();
    await laterThan(world, await world.inSeconds(0));
    const other = await disputed(world, { client, worker });
    ok(await worker.post(`/v1/contracts/${running.id}/delivery`, { delivery: "ipfs://output" }));
    ok(await client.pay(`/v1/contracts/${running.id}/dispute`));
    for (const [agent, on] of [
      [late, running.id],
      [leaving, other.id],
    ] as const) {
      const { status, error } = await agent.post(votesPath(on), GOOD);
      expect([status, error?.code]).toEqual([403, "forbidden"]);
      expect(error?.message).toContain("1000 protocol tokens");
    }
    expect((await late.post(votesPath(other.id), GOOD)).status).toBe(402);
  });
});

describe("until the tally", () => {
  let id: string;
  let saltOfA: `0x${string}`;

  beforeAll(async () => {
    ({ id } = await disputed(world, { client, worker }, { title: "Kept under seal" }));
    ({ salt: saltOfA } = await vote(a, id, "met", "not met", "unclear"));
    await vote(b, id, "met", "not met", "met");
  });

  /** Only A and B know their votes. */
  async function expectSealed(): Promise<void> {
    for (const reader of [c, client, worker]) {
      for (const path of [votesPath(id), `/v1/votes?contractId=${id}`]) {
        const { data } = await reader.get<VoteView[]>(path);
        expect(data).toHaveLength(6);
        for (const { vote, majorityOutcome, bondOutcome, reward } of data) {
          expect([vote, majorityOutcome, bondOutcome, reward]).toEqual([null, null, null, null]);
        }
      }
      for (const outcome of ["met", "not met", "unclear"]) {
        const { data } = await reader.get<VoteView[]>(
          `/v1/votes?contractId=${id}&majorityOutcome=${outcome}`,
        );
        expect(data).toEqual([]);
      }
      const { data: contract } = await reader.get<ContractView>(`/v1/contracts/${id}`);
      expect(contract).toMatchObject({ status: "disputed", criteriaMet: null });
      const { data: settlement } = await reader.get<SettlementView>(`/v1/contracts/${id}/settlement`);
      expect(settlement).toMatchObject({ ending: null, endedAt: null, legs: [] });
    }
    expect((await votesOn(a, id, a)).map(({ vote }) => vote)).toEqual(["met", "not met", "unclear"]);
    expect((await votesOn(b, id, b)).map(({ vote }) => vote)).toEqual(["met", "not met", "met"]);
    expect((await votesOn(a, id, b)).map(({ vote }) => vote)).toEqual([null, null, null]);
  }

  test("only the voter sees what it voted", expectSealed);

  test("a vote that is open on chain stays sealed here; if the service lost a vote, its voter opens it", async () => {
    await world.query("delete from app.entrusted_vote where contract_id = $1 and backup_agent = $2", [
      id,
      a.address,
    ]);
    const quote = quoteOf(await c.post(votesPath(id), GOOD));
    const validBefore = BigInt((await world.chainNow()) + 10 * DAY);
    const late = version2(quote, await authorize(c, quote, { ...world, changes: { validBefore } }));
    const before = await world.usdOf(c.address);

    await world.increaseTime(DAY);
    const openedVotes = () =>
      world.publicClient.readContract({
        address: id as Address,
        abi: escrowAbi,
        functionName: "openedVotes",
      });
    await expect.poll(openedVotes).toBe(1n);
    await world.indexed();
    const { data: sealed } = await c.get<VoteView[]>(votesPath(id));
    expect(sealed.map(({ vote }) => vote)).toEqual(Array(6).fill(null));
    expect((await b.get<VoteView[]>(`/v1/votes?contractId=${id}&majorityOutcome=met`)).data).toEqual([]);
    const { data: contract } = await c.get<ContractView>(`/v1/contracts/${id}`);
    expect(contract).toMatchObject({ status: "disputed", criteriaMet: null });

    const refused = await c.post(votesPath(id), GOOD, late);
    expect([refused.status, refused.error?.code]).toEqual([409, "conflict"]);
    expect(refused.error?.message).toContain("voting window closed");
    expect(await world.usdOf(c.address)).toBe(before);

    await (await alone(world, a)).openVote(id, saltOfA);
    const settled = await untilStatus(client, id, "settled-partial");
    expect(settled.criteriaMet).toEqual(["met", "not met", "unclear"]);
    await expect.poll(() => paidBy(world, id, a.address)).toBe(usd("7.5"));
    expect((await votesOn(c, id, a)).map(({ vote }) => vote)).toEqual(["met", "not met", "unclear"]);
    expect((await votesOn(c, id, b)).map(({ reward }) => reward)).toEqual([10, 10, 0]);
  });
});

describe("lists of votes", () => {
  const all = () => `client=${client.address}`;

  test("come newest first, a ballot's criteria in order, and filter", async () => {
    const { data } = await c.get<VoteView[]>(`/v1/votes?${all()}&limit=200`);
    const keys = data.map((vote) => `${vote.contractId} ${vote.backupAgent} ${vote.criterionIndex}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(data.slice(0, 3).map(({ criterionIndex }) => criterionIndex)).toEqual([0, 1, 2]);
    const { rows } = await world.pool.query<{ contract_id: string }>(
      "select contract_id from onchain.vote where contract_id = any($1) order by sealed_at desc, contract_id desc",
      [data.map(({ contractId }) => contractId)],
    );
    const newestFirst = [...new Set(rows.map((row) => row.contract_id))];
    expect(newestFirst.length).toBeGreaterThan(1);
    expect([...new Set(data.map(({ contractId }) => contractId))]).toEqual(newestFirst);
    const byJuror = `/v1/contracts?backupAgent=${a.address}&client=${client.address}&limit=100`;
    const judged = data
      .filter(({ backupAgent }) => backupAgent === a.address)
      .map(({ contractId }) => contractId);
    expect((await c.get<ContractView[]>(byJuror)).data.map(({ id }) => id).sort()).toEqual(
      [...new Set(judged)].sort(),
    );

    const met = await c.get<VoteView[]>(`/v1/votes?${all()}&majorityOutcome=not%20met&limit=200`);
    expect(met.data.length).toBeGreaterThan(0);
    expect(met.data).toEqual(data.filter(({ majorityOutcome }) => majorityOutcome === "not met"));
    const ofA = await c.get<VoteView[]>(`/v1/votes?${all()}&backupAgent=${a.account.address}&limit=200`);
    expect(ofA.data).toEqual(data.filter(({ backupAgent }) => backupAgent === a.address));
    expect((await c.get<VoteView[]>(`/v1/votes?worker=${worker.address}&limit=200`)).data).toEqual(data);
    expect((await c.get<VoteView[]>(`/v1/votes?${all()}&status=created`)).data).toEqual([]);
    expect(
      (await c.get<VoteView[]>(`/v1/votes?${all()}&status=closed,disputed,active&limit=200`)).data,
    ).toEqual(data);
  });

  test("contain every vote once, page by page", async () => {
    const whole = (await c.get<VoteView[]>(`/v1/votes?${all()}&limit=200`)).data;
    const paged: VoteView[] = [];
    let cursor: string | null = null;
    do {
      const more: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { body } = (await c.get(`/v1/votes?${all()}&limit=4${more}`)) as ApiResponse & { body: VotePage };
      paged.push(...body.data);
      cursor = body.nextCursor;
    } while (cursor !== null);
    expect(paged).toEqual(whole);
    expect(whole.length).toBeGreaterThan(4);
  });
});

describe("sealed from the service too", () => {
  const salt = `0x${"5a".repeat(32)}` as const;
  const OTHER = ballot("met", "met", "met");
  const openPath = (id: string) => `${votesPath(id)}/open`;
  const commitmentOf = ({ address }: Agent, id: string) =>
    voteCommitment({
      chainId: world.deployment.chainId,
      escrow: id as Address,
      voter: address,
      votes: packOutcomes(["met", "not met", "unclear"]),
      salt,
    });
  const refused = async (voter: Agent, id: string, body: object) => {
    const { status, error } = await voter.post(openPath(id), body);
    return [status, error?.code];
  };

  test("no request, row, log or event shows the votes before their voter opens them", async () => {
    const { id } = await disputed(world, { client, worker });
    const commitment = commitmentOf(a, id);
    const cast = await a.pay<VoteView[]>(votesPath(id), { commitment });
    expect(ok(cast).map(({ vote }) => vote)).toEqual([null, null, null]);
    expect(cast.headers.get("vote-salt")).toBeNull();
    await vote(b, id, "met", "not met", "met");
    const { rows } = await world.pool.query("select 1 from app.entrusted_vote where commitment = $1", [
      commitment,
    ]);
    expect(rows).toEqual([]);

    expect(await refused(a, id, { ...GOOD, salt })).toEqual([409, "conflict"]);
    expect(await refused(c, id, { ...ballot("met"), salt })).toEqual([400, "invalid_request"]);
    await world.increaseTime(DAY);
    expect(await refused(c, id, { ...GOOD, salt })).toEqual([403, "forbidden"]);
    expect(await refused(a, id, { ...OTHER, salt })).toEqual([400, "invalid_request"]);
    expect(await refused(a, id, { ...ballot("met"), salt })).toEqual([400, "invalid_request"]);
    expect(await refused(a, id, { ...GOOD, salt: "0x5a" })).toEqual([400, "invalid_request"]);

    const reminders = `/v1/events?contractId=${id}&type=deadline.approaching`;
    const opening = async () => {
      const { data } = await a.get<{ agents: string[]; data: { deadline: string } }[]>(reminders);
      return data.filter((event) => event.data.deadline === "openingDeadline").map(({ agents }) => agents);
    };
    await expect.poll(opening).toEqual([[a.address]]);

    const opened = await a.post<VoteView[]>(openPath(id), { ...GOOD, salt });
    expect(ok(opened).map(({ vote }) => vote)).toEqual(["met", "not met", "unclear"]);
    const settled = await untilStatus(client, id, "settled-partial");
    expect(settled.criteriaMet).toEqual(["met", "not met", "unclear"]);
    expect((await votesOn(c, id, a)).map(({ reward }) => reward)).toEqual([10, 10, 4]);
    expect(await refused(a, id, { ...GOOD, salt })).toEqual([409, "conflict"]);
  });

  test("no vote is opened before a block is behind the window, whatever the service's clock says", async () => {
    const { id } = await disputed(world, { client, worker });
    ok(await a.pay(votesPath(id), { commitment: commitmentOf(a, id) }));
    await world.increaseTime(HOUR);
    const [{ closesAt = 0 } = {}] = await world.query<{ closesAt: number }>(
      'select (disputed_at + ba_voting_window)::float8 as "closesAt" from onchain.working_contract where id = $1',
      [id],
    );
    await pauseBlocks(world.testClient);
    try {
      await world.increaseTime(closesAt - (await world.chainNow()) - 8);
      await serviceReaches(world.info.url, closesAt);
      expect(await refused(a, id, { ...GOOD, salt })).toEqual([409, "conflict"]);
    } finally {
      await resumeBlocks(world.testClient);
    }
    await expect.poll(async () => (await a.post(openPath(id), { ...GOOD, salt })).status).toBe(200);
  });

  test("a full panel is opened at once", async () => {
    await recruit(world, 1);
    const { id } = await disputed(world, { client, worker }).finally(() => recruit(world, 0));
    await world.increaseTime(12 * HOUR);
    ok(await a.pay(votesPath(id), { commitment: commitmentOf(a, id) }));
    const reminder = `/v1/events?contractId=${id}&agent=${a.address}&type=deadline.approaching`;
    await expect.poll(async () => (await a.get<unknown[]>(reminder)).data.length).toBe(1);
    ok(await a.post(openPath(id), { ...GOOD, salt }));
    await untilStatus(client, id, "settled-partial");
  });

  test("a body without votes or a commitment, with both, or with a commitment that the escrow cannot take is refused", async () => {
    const bodies = {
      neither: {},
      both: { ...GOOD, commitment: `0x${"a".repeat(64)}` },
      "no hash": { commitment: "0x12" },
      "a hash that the escrow takes for opened votes": { commitment: `0x${"0".repeat(58)}000015` },
    };
    for (const [name, body] of Object.entries(bodies)) {
      // Bodies are checked before anything else.
      const { status, error } = await a.post(votesPath(zeroAddress), body);
      expect([status, error?.code], name).toEqual([400, "invalid_request"]);
    }
  });
});

test("votes that no one opens forfeit their bonds, a day after the window", async () => {
  const { id } = await disputed(world, { client, worker });
  await vote(a, id, "met", "met", "met");
  await vote(b, id, "met", "met", "met");
  const tokens = await tokensOf(world, a.address);
  // The keeper does not find them meanwhile.
  const swap = "update app.entrusted_vote set commitment = reverse(commitment) where contract_id = $1";
  await world.query(swap, [id]);
  await world.increaseTime(DAY);
  const { data } = await client.get<ContractView>(`/v1/contracts/${id}`);
  expect(data.status).toBe("disputed");
  await world.increaseTime(DAY);

  const settled = await untilStatus(client, id, "settled-partial");
  expect(settled.criteriaMet).toEqual(["unclear", "unclear", "unclear"]);
  await world.query(swap, [id]);
  for (const reader of [c, a]) {
    for (const { vote, majorityOutcome, bondOutcome, reward } of await votesOn(reader, id, a)) {
      expect([vote, majorityOutcome, bondOutcome, reward]).toEqual([null, "unclear", "slashed", 0]);
    }
  }
  const { data: workload } = await a.get<WorkloadView>(`/v1/agents/${a.address}/workload`);
  const resolved = workload.resolvedBaVotes.filter(({ contractId }) => contractId === id);
  expect(resolved.map(({ vote }) => vote)).toEqual([null, null, null]);
  const { data: settlement } = await client.get<SettlementView>(`/v1/contracts/${id}/settlement`);
  expect(settlement.legs.find(({ name }) => name === "jury-leftover")).toMatchObject({ amount: "15.0" });
  expect(settlement.legs.filter(({ name }) => name === "jury-payout")).toEqual([]);
  expect(await paidBy(world, id, a.address)).toBe(0n);
  expect(await tokensOf(world, a.address)).toBe(tokens);
  expect(await world.usdOf(id as Address)).toBe(0n);
});

/** A node that answers as `change` says: it gets the method, the result and the parameters. */
function nodeThat(change: (method: string, result: never, params: unknown) => unknown) {
  return {
    async request(request: { method: string; params?: unknown }) {
      const result = await world.publicClient.request(request as never);
      return change(request.method, result, request.params) ?? result;
    },
  };
}

/** Whether facts of a dispute compare, at a node whose events can be changed. */
async function verified(id: string, part: string, change: (logs: RpcLog[]) => void = () => {}) {
  return compared(id, part, [
    nodeThat((method, result) => {
      if (method === "eth_getLogs") change(result);
    }),
  ]);
}

async function compared(id: string, part: string, nodes: ChainNode[]) {
  const network = world.deployment;
  const { fields } = await verifyContract(new Error("no service"), id, { network, nodes });
  return fields.filter(({ field }) => field.includes(part)).map(({ equal }) => equal);
}

const LIES: Record<string, Parameters<typeof nodeThat>[0]> = {
  "the votes that were opened": (method, result: { input: string }) => {
    if (method !== "eth_getTransactionByHash") return;
    const at = result.input.indexOf(toFunctionSelector("openVote(address,uint24,bytes32)").slice(2));
    // The first byte of the salt.
    const salt = at + 8 + 2 * 64;
    return { ...result, input: `${result.input.slice(0, salt)}ff${result.input.slice(salt + 2)}` };
  },
  "the commitments": (method, result) => {
    if (method === "eth_getLogs") changeCommitments(result);
  },
  "the seed of the jury": (method, result: object) =>
    method === "eth_getBlockByNumber" ? { ...result, hash: `0x${"5e".repeat(32)}` } : undefined,
  "the pool of the jury": (method, result, params) =>
    method === "eth_call" && JSON.stringify(params).includes(toFunctionSelector("poolAt(uint256,uint40)"))
      ? `0x${"00".repeat(31)}01`
      : result,
};

const dataOf = (logs: RpcLog[], eventName: "BackupAgentsDrawn" | "VoteSealed") => {
  const [topic] = encodeEventTopics({ abi: escrowAbi, eventName });
  return logs.filter(({ topics }) => topics[0] === topic);
};

/** Names the second drawn agent as the first one too. */
function hideFirst(logs: RpcLog[]): void {
  for (const log of dataOf(logs, "BackupAgentsDrawn")) {
    const words = log.data.slice(2).match(/.{64}/g) ?? [];
    log.data = `0x${[...words.slice(0, 2), words[3], words[3]].join("")}`;
  }
}

function changeCommitments(logs: RpcLog[]): void {
  for (const log of dataOf(logs, "VoteSealed")) log.data = `0x${"ff".repeat(32)}${log.data.slice(66)}`;
}

describe("a panel of two", () => {
  let id: string;
  let chosen: Set<string>;

  async function draw(): Promise<void> {
    await recruit(world, 2);
    try {
      // Agents of other tests are in the pool too.
      do {
        ({ id } = await disputed(world, { client, worker }));
        chosen = new Set(await untilDrawn(world, id));
      } while (![a, b, c].some(({ address }) => chosen.has(address)));
    } finally {
      await recruit(world, 0);
    }
  }

  test("is reminded an hour before others can take its seats, but not who has voted", async () => {
    await draw();
    const member = [a, b, c].find(({ address }) => chosen.delete(address)) as Agent;
    await vote(member, id, "met", "met", "met");
    await world.increaseTime(11 * HOUR);
    const reminders = async () => {
      const path = `/v1/events?contractId=${id}&type=deadline.approaching`;
      const { data } = await client.get<{ agents: string[]; data: { deadline: string } }[]>(path);
      return data.filter((event) => event.data.deadline === "seatsDeadline").map(({ agents }) => agents);
    };
    await expect.poll(reminders).toEqual([[...chosen]]);
  });

  test("is drawn on chain, by the rule; others wait until half of the window has passed", async () => {
    await draw();
    const [outsider, ...others] = [a, b, c].filter(({ address }) => !chosen.has(address)) as [
      Agent,
      ...Agent[],
    ];
    const before = await world.usdOf(outsider.address);
    const refused = await outsider.pay(votesPath(id), GOOD);
    expect([refused.status, refused.error?.code]).toEqual([403, "forbidden"]);
    expect(refused.error?.message).toContain("not drawn");
    expect(await world.usdOf(outsider.address)).toBe(before);
    const member = [a, b, c].find(({ address }) => chosen.has(address)) as Agent;
    const readsKeys = async (agent: Agent) => (await agent.get(`/v1/contracts/${id}/keys`)).status;
    expect([await readsKeys(member), await readsKeys(outsider)]).toEqual([200, 403]);

    await world.increaseTime(12 * HOUR);
    // The service learns the new time with the next head.
    const status = async () => (await outsider.post(votesPath(id), GOOD)).status;
    await expect.poll(status).toBe(402);
    expect(await readsKeys(outsider)).toBe(200);
    const second = others[0] ?? member;
    const third = [a, b, c].find((agent) => agent !== outsider && agent !== second) as Agent;
    await vote(outsider, id, "met", "met", "met");
    await vote(second, id, "met", "met", "met");
    const full = await third.post(votesPath(id), GOOD);
    expect([full.status, full.error?.code]).toEqual([409, "conflict"]);
    // Both seats have voted, so nothing remains to wait for.
    expect((await untilStatus(client, id, "settled-all-met")).backupAgents).toEqual([
      outsider.address,
      second.address,
    ]);
    // Together: each difference is looked at again for some seconds.
    const honest = nodeThat(() => {});
    await Promise.all([
      expect(verified(id, "panel drawn")).resolves.toEqual([true]),
      expect(verified(id, "panel drawn", hideFirst)).resolves.toEqual([false]),
      expect(verified(id, "commitment")).resolves.toEqual([true, true]),
      expect(verified(id, "commitment", changeCommitments)).resolves.toEqual([false, false]),
      expect(compared(id, "node", [honest, honest])).resolves.toEqual([true]),
      ...Object.entries(LIES).map(([lie, change]) =>
        expect(compared(id, "node", [honest, nodeThat(change)]), lie).resolves.toEqual([false]),
      ),
    ]);
  });
});
