import { toTheEnd } from "@working-contracts/client/index";
import { voteDeposit } from "@working-contracts/protocol/ledger";
import { packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import type { Hex } from "@working-contracts/protocol/types";
import { expect, it } from "vitest";
import { account, agentOf, NETWORK, quoted } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

const { id: ID, terms } = servedTerms();
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

it("a vote is remembered also if the response to it was lost", async () => {
  const submitted: unknown[] = [];
  let isLost = true;
  const PATH = `/v1/contracts/${ID}/votes`;
  const agent = await agentOf(
    (request, { headers }) => {
      if (request === `GET /v1/contracts/${ID}/terms`) return Response.json({ data: terms });
      if (request !== `POST ${PATH}`) return undefined;
      if (new Headers(headers).has("payment-signature")) {
        if (!isLost) return Response.json({ data: [{ contractId: ID, criterionIndex: 0, vote: null }] });
        isLost = false;
        throw new TypeError("fetch failed");
      }
      const amount = String(voteDeposit(50_000_000n, 1, DEFAULT_PARAMETERS));
      return quoted(PATH, { payTo: ID, amount });
    },
    {
      spendingLimit: { perCall: "100" },
      submitted: { read: () => submitted as never, add: (_, id) => void submitted.push(id) },
    },
  );
  const { votes } = await toTheEnd(() => agent.vote(ID, ["met"], { salt: SALT }));
  expect(votes).toMatchObject([{ vote: "met" }]);
  expect(submitted).toEqual([ID.toLowerCase()]);
});
