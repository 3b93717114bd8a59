import { type OpenOptions, untilOutcome } from "@working-contracts/client/index";
import { voteSalt } from "@working-contracts/client/wallets";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { encodeWords } from "@working-contracts/protocol/hex";
import { voteDeposit } from "@working-contracts/protocol/ledger";
import { isCommitment, packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import { STATUSES } from "@working-contracts/protocol/status";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import type { Hex } from "@working-contracts/protocol/types";
import { encodeFunctionResult, toHex } from "viem";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type AskedCall, json, startFakeNode } from "../chain/node.js";
import { account, agentOf, CODE, NETWORK, quoted, resultOf } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

const { id: ID, code, terms } = servedTerms();
const SALT: Hex = `0x${"5a".repeat(32)}`;
const ballot = { chainId: NETWORK.chainId, escrow: ID, voter: account.address.toLowerCase() as Hex };
const commitment = voteCommitment({ ...ballot, votes: packOutcomes(["met"]), salt: SALT });
const EVENTS = [
  { type: "vote.sealed", data: { commitment } },
  { type: "deadline.approaching", data: { deadline: "openingDeadline" } },
];

type Answer = () => Response;
const page = (data: object[], nextAfter?: string): Answer => {
  return () => Response.json({ data, hasMore: nextAfter !== undefined, nextAfter: nextAfter ?? "0" });
};

/**
 * A service with one sealed vote, whose log answers as said; `opened` counts the votes that were opened. With a `failure`,
 * the first two requests to each path end with that.
 */
async function sealed(log: (after: string) => Answer | undefined, failure?: Answer) {
  const opened: unknown[] = [];
  const requested: string[] = [];
  const agent = await agentOf((request, { body }) => {
    const { pathname, searchParams } = new URL(request.replace(/^\w+ /, ""), NETWORK.baseUrl);
    requested.push(pathname);
    if (failure && requested.filter((one) => one === pathname).length <= 2) return failure();
    if (pathname === "/v1/votes") {
      const vote = { contractId: ID, vote: null };
      return Response.json({ data: opened.length === 0 ? [vote] : [], nextCursor: null });
    }
    if (pathname === "/v1/events") return log(String(searchParams.get("after")))?.();
    if (!pathname.endsWith("/votes/open")) return undefined;
    opened.push(JSON.parse(String(body)));
    return Response.json({ data: [] });
  });
  return { agent, opened };
}

const OPENED = { votes: [{ criterionIndex: 0, vote: "met" }], salt: SALT };

it("a vote is opened after a connection was lost while the code for votes was loaded", async () => {
  const code = "@working-contracts/client/votes";
  const { agent, opened } = await sealed(() => page(EVENTS));
  const open = () => agent.openVotes({ wait: false, salts: { [ID]: SALT } });
  vi.doMock(code, () => {
    throw new TypeError("Failed to fetch dynamically imported module");
  });
  await expect(open()).rejects.toThrow();
  vi.doUnmock(code);
  expect(await open()).toEqual([ID]);
  expect(opened).toEqual([OPENED]);
});

it("a vote is opened also if its events are on a later page", async () => {
  const pages: Record<string, Answer> = {
    "0": page([], "10000"),
    "10000": page(EVENTS.slice(0, 1), "10001"),
    "10001": page(EVENTS.slice(1)),
  };
  const { agent, opened } = await sealed((after) => pages[after]);
  expect(await agent.openVotes({ wait: false, salts: { [ID]: SALT } })).toEqual([ID]);
  expect(opened).toEqual([OPENED]);
});

it("lists without an end are read only as far as a service can fill them", async () => {
  let pages = 0;
  const agent = await agentOf((request) => {
    if (!/^GET .v1.(votes|agents.me.api-keys)/.test(request)) return undefined;
    pages++;
    const data = Array.from({ length: 200 }, (_, i) => ({ contractId: `${pages}-${i}`, vote: "met" }));
    return Response.json({ data, nextCursor: "more" });
  });
  expect(await agent.openVotes({ wait: false })).toEqual([]);
  expect(pages).toBe(25);
  await expect(agent.apiKeys()).rejects.toThrow("over 100000 API keys");
});

it("a vote is not opened before the service says that voting has ended", async () => {
  const { agent, opened } = await sealed(() => page(EVENTS.slice(0, 1)));
  expect(await agent.openVotes({ wait: false, salts: { [ID]: SALT } })).toEqual([]);
  expect(opened).toEqual([]);
});

const unavailable = (status: number) => {
  const error = { code: "unavailable", message: "later" };
  return Response.json({ error }, { status, headers: { "retry-after": "60" } });
};

it.each<[string, Answer]>([
  ["503s", () => unavailable(503)],
  ["429s", () => unavailable(429)],
  [
    "lost responses",
    () => {
      throw new TypeError("fetch failed");
    },
  ],
])("opening continues after %s", async (_, failure) => {
  const { agent, opened } = await sealed(() => page(EVENTS), failure);
  expect(await agent.openVotes({ intervalMs: 1, salts: { [ID]: SALT } })).toEqual([ID]);
  expect(opened).toEqual([OPENED]);
});

it("a vote that was cast at another service is not opened", async () => {
  const salt = await voteSalt(account, { ...ballot, domain: "other.example" });
  const elsewhere = voteCommitment({ ...ballot, votes: packOutcomes(["met"]), salt });
  const events = [{ data: { commitment: elsewhere } }, ...EVENTS.slice(1)];
  const { agent, opened } = await sealed(() => page(events));
  await expect(agent.openVotes({ wait: false })).rejects.toThrow("This salt does not open the vote");
  expect(opened).toEqual([]);
});

describe("with a node, a late vote", () => {
  const { baVotingWindow } = DEFAULT_PARAMETERS;
  const now = () => Math.floor(Date.now() / 1000);
  let stop = () => {};
  afterEach(() => stop());

  /** A node that has the escrow and the vote, which each transaction opens if it `opens`, and an agent that remembers it. */
  async function late(serve: Parameters<typeof agentOf>[0], chain: { clock?: number; opens?: boolean } = {}) {
    const { clock = now(), opens = true } = chain;
    const transactions: string[] = [];
    const state = { code, ballot: commitment as Hex, nonce: 0 };
    const jury = {
      disputedAt: now() - baVotingWindow - 7200,
      drawBlock: 0,
      sealedVotes: 1,
      drawn: false,
      held: 0n,
    };
    const results = {
      "status()": () => encodeWords(STATUSES.indexOf("disputed") + 1),
      "jury()": () => encodeFunctionResult({ abi: escrowAbi, functionName: "jury", result: jury }),
      "ballotOf(address)": () => state.ballot,
    };
    const answers: Record<string, (params: [{ data: string }]) => unknown> = {
      eth_chainId: () => toHex(NETWORK.chainId),
      eth_blockNumber: () => "0x1",
      eth_getCode: ([at]) => ((at as unknown) === ID ? state.code : CODE),
      eth_getBlockByNumber: () => ({ number: "0x1", timestamp: toHex(clock), baseFeePerGas: "0x1" }),
      eth_call: ([call]) => resultOf(call, results),
      eth_getTransactionCount: () => toHex(state.nonce),
      eth_estimateGas: () => "0x186a0",
      eth_maxPriorityFeePerGas: () => "0x1",
      eth_sendRawTransaction([transaction]) {
        transactions.push(String(transaction));
        if (opens) state.ballot = encodeWords(packOutcomes(["met"]));
        throw new Error("busy");
      },
    };
    const node = await startFakeNode((response, [asked]) => {
      const { id, method, params } = asked as AskedCall & { params: [{ data: string }] };
      try {
        json(response, { id, result: answers[method]?.(params) });
      } catch (error) {
        json(response, { id, error: { code: -32000, message: (error as Error).message } });
      }
    });
    stop = () => void node.stop();
    const submitted = { read: () => [ID], add: () => {} };
    const agent = await agentOf(serve, { node: node.url, submitted });
    const open = (options?: OpenOptions) =>
      agent.openVotes({ wait: false, salts: { [ID]: SALT }, ...options });
    return { open, transactions, state };
  }

  const refused = (status: number) =>
    Response.json({ error: { code: "forbidden", message: "refused" } }, { status });

  it.each<[string, (path: string) => Response | undefined]>([
    ["a list that is refused", (path) => (path === "/v1/votes" ? refused(403) : undefined)],
    ["a list that costs money", (path) => (path === "/v1/votes" ? refused(402) : undefined)],
    [
      "a list of another form",
      (path) => (path === "/v1/votes" ? Response.json({ data: [null] }) : undefined),
    ],
    ["an opening that costs money", (path) => (path.endsWith("/open") ? refused(402) : undefined)],
  ])("is opened by its voter in spite of %s", async (_, answer) => {
    const { open, state } = await late((request) => {
      const path = request.replace(/^\w+ |\?.*$/g, "");
      const list = path === "/v1/votes" ? Response.json({ data: [], nextCursor: null }) : undefined;
      return answer(path) ?? list ?? (path.endsWith("/open") ? refused(403) : undefined);
    });
    // A failure of the list is reported once nothing is left to do.
    await open().catch(() => {});
    expect(isCommitment(state.ballot)).toBe(false);
  });

  it("is opened after another transaction used its account nonce, a few times at most", async () => {
    const { open, transactions, state } = await late(() => refused(403), { opens: false });
    for (let round = 0; round < 6; round++) {
      await expect(open()).rejects.toThrow(round < 5 ? "Missing or invalid" : "too many account nonces");
      // The first is refused twice at the same one.
      if (round > 0) state.nonce++;
    }
    expect(transactions[1]).toBe(transactions[0]);
    expect(new Set(transactions).size).toBe(4);
  });

  it("is reported again if it cannot be opened after the service refused to open it", async () => {
    const failures: unknown[] = [];
    const list = { data: [], nextCursor: null };
    const serve = (request: string) =>
      request.startsWith("GET /v1/votes") ? Response.json(list) : refused(403);
    const { open } = await late(serve, { opens: false });
    await open({ onFailure: ({ message }) => void failures.push(message) }).catch(() => {});
    expect(failures).toEqual(["refused", expect.stringContaining("open it yourself")]);
  });

  it("is reported at once if the service refuses to list or to open it", async () => {
    const failures: unknown[] = [];
    const { open } = await late((request) => (request.includes("/votes") ? refused(403) : undefined));
    await open({ onFailure: (_, id) => void failures.push(id) }).catch(() => {});
    expect(failures).toEqual([undefined, ID]);
  });

  it("is left to the service for an hour after the voting window", async () => {
    const { open, transactions } = await late(() => refused(403), { clock: now() - 3660 });
    await expect(open()).rejects.toThrow("refused");
    expect(transactions).toEqual([]);
  });

  it("is opened to no one before this machine's clock says so", async () => {
    const requests: string[] = [];
    const serve = (request: string) => void requests.push(request);
    const { open, transactions } = await late(serve as never, { clock: now() + 310 });
    await expect(open()).rejects.toMatchObject({ name: "RefusedToSign", field: "clock" });
    expect([requests.filter((one) => one.startsWith("POST")), transactions]).toEqual([[], []]);
  });

  it("is not forgotten because the node has no escrow for a while", async () => {
    const { open, state } = await late((request) =>
      request.startsWith("GET /v1/votes") ? Response.json({ data: [], nextCursor: null }) : refused(403),
    );
    state.code = "0x";
    expect(await open()).toEqual([]);
    state.code = code;
    expect(await open()).toEqual([ID]);
  });
});

/** An agent of a service that takes its vote and lists `data`, and loses the first response if it `isLost`. */
function voting(
  add: (id: string) => void,
  isLost = false,
  data: unknown = [{ contractId: ID, criterionIndex: 0, vote: null }],
) {
  const PATH = `/v1/contracts/${ID}/votes`;
  return agentOf(
    (request, { headers }) => {
      if (request === `GET /v1/contracts/${ID}/terms`) return Response.json({ data: terms });
      if (request !== `POST ${PATH}`) return undefined;
      if (new Headers(headers).has("payment-signature")) {
        if (!isLost) return Response.json({ data }, { headers: { "vote-salt": "0x5a; sh #" } });
        isLost = false;
        throw new TypeError("fetch failed");
      }
      const amount = String(voteDeposit(50_000_000n, 1, DEFAULT_PARAMETERS));
      return quoted(PATH, { payTo: ID, amount });
    },
    { spendingLimit: { perCall: "100" }, submitted: { read: () => [], add: (_, id) => add(id) } },
  );
}

it("an entrusted vote keeps its voter's salt, whatever the service returns", async () => {
  const agent = await voting(() => {});
  expect((await agent.vote(ID, ["met"], { entrust: true, salt: SALT })).salt).toBe(SALT);
});

it.each([[{}], [[]], [[null]], ["met"], [[{ criterionIndex: 1, vote: "not met" }]]])(
  "a vote is returned as it was cast, not as the service lists it: %j",
  async (data) => {
    const agent = await voting(() => {}, false, data);
    const { votes } = await agent.vote(ID, ["met"], { salt: SALT });
    expect(votes).toMatchObject([{ criterionIndex: 0, vote: "met" }]);
  },
);

it("a vote that cannot be stored says that it was cast, and what opens it", async () => {
  const agent = await voting(() => {
    throw Object.assign(new Error("ENOTDIR: not a directory"), { code: "ENOTDIR" });
  });
  const error = await agent.vote(ID, ["met"], { salt: SALT }).catch((thrown) => thrown);
  expect(error.message).toMatch(/^You voted on .*\(ENOTDIR: not a directory\).*wcontract open-votes/);
  expect(error.code).toBeUndefined();
});

it("a vote is remembered also if the response to it was lost", async () => {
  const submitted: unknown[] = [];
  const agent = await voting((id) => submitted.push(id), true);
  const { votes } = await untilOutcome(() => agent.vote(ID, ["met"], { salt: SALT }));
  expect(votes).toMatchObject([{ vote: "met" }]);
  expect(submitted).toEqual([ID.toLowerCase()]);
});
