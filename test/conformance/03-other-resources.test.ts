/** Resources: payment quote, challenge, API key, checkpoint, complaint, vote, profile, protocol parameters. */
import { expect } from "vitest";
import {
  ballot,
  checkpointBody,
  disputed,
  draft,
  type Json,
  matched,
  newJuror,
  newPair,
  ok,
  signedChallenge,
} from "../support/contracts.js";
import { paymentRequired } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { asVersion2, chapter, says, withDatabase, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const match = lazy(async () => matched(scene, await pair()));

chapter("Resources and their fields / Payment quote (402)", () => {
  says(
    [
      "| x402Version | integer (1 or 2) |",
      "| scheme | string (`exact`) |",
      "| network | string (chain identifier) |",
      "| payTo | address of the per-contract escrow wallet |",
      "| asset | address of the stablecoin token contract |",
      "| maxAmountRequired | string (integer, smallest unit) |",
      "| maxTimeoutSeconds | integer (present in the v1 form, value 60) |",
      "Limits > | Payment authorization timeout | 60 seconds (`maxTimeoutSeconds` in the v1 quote) | Payment flow |",
      "| resource / description | string(s) describing what is paid for |",
      "Resources and their fields / Contract > Amounts in a payment quote (`maxAmountRequired`) are integer strings in the smallest unit of the stablecoin (50.0 is quoted as 50000000, that is 6 decimal places).",
      "What the service does > a call that needs money first answers `402 Payment Required` with a quote",
      "Errors > | 402 | (none; quote in `Payment-Required` header or v1 body) | Payment-carrying call made without payment. |",
    ],
    async () => {
      const agent = await scene.newAgent();
      const body = JSON.stringify(await draft(scene));
      const unpaid = await agent.post("/v1/contracts", body, asVersion2());
      const v1 = await agent.post("/v1/contracts", body, { "x-402-version": "1" });
      const address = expect.stringMatching(/^0x[0-9a-f]{40}$/);
      const quote = { scheme: "exact", payTo: address, asset: address, maxAmountRequired: "50000000" };
      const network = `eip155:${scene.chainId}`;
      const v2 = paymentRequired(unpaid);
      expect(v2).toMatchObject({ x402Version: 2, accepts: [{ ...quote, network }] });
      expect([unpaid.body, v1.status]).toEqual([{}, 402]);
      const ofVersion1 = {
        ...quote,
        network: expect.any(String),
        payTo: v2.accepts[0]?.payTo,
        maxTimeoutSeconds: 60,
        resource: expect.stringMatching(/\/v1\/contracts$/),
        description: expect.stringContaining("Translate a page"),
      };
      expect(v1.body).toMatchObject({ x402Version: 1, accepts: [ofVersion1] });
      expect(v1.body).not.toHaveProperty("error.code");
    },
  );
});

chapter("Resources and their fields / Challenge", () => {
  says("| message | string (exact text to sign; valid 5 minutes; redeemable once) |", async () => {
    const agent = await scene.newAgent();
    const body = await signedChallenge(scene, agent);
    const { message } = ok(await scene.call<Json>("POST", `/v1/agents/${agent.address}/challenge`));
    const [issued, expires] = ["Issued At", "Expires At"].map((name) =>
      Date.parse(new RegExp(`${name}: (\\S+)`).exec(message)?.[1] ?? ""),
    );
    expect((expires as number) - (issued as number)).toBe(5 * 60_000);
    const path = `/v1/agents/${agent.address}/api-key`;
    expect((await scene.call("POST", path, { body })).status).toBe(201);
    expect((await scene.call("POST", path, { body })).error?.code).toBe("invalid_challenge");
  });
});

chapter("Resources and their fields / Checkpoint", () => {
  withMoney(
    [
      "| id | string |",
      "| contractId | string |",
      "| fromSequence | integer |",
      "| toSequence | integer |",
      "| merkleRoot | string |",
      "| lastReceiptHash | string |",
      "| teeMeasurement | string |",
      "| teeSignature | string |",
      "| data | object (application-specific cumulative metrics, stored as given) |",
      "| checkpointedAt | string (timestamp) |",
      "| createdAt | string (timestamp) |",
      "teeMeasurement, teeSignature, merkleRoot and lastReceiptHash are stored as provided and are not cryptographically verified.",
      "Work / Small print > Response 201: the Checkpoint.",
    ],
    async () => {
      const { id } = await match();
      const body = await checkpointBody(scene, {
        teeMeasurement: "no measurement",
        teeSignature: "no signature",
        merkleRoot: " not a root ",
        lastReceiptHash: "ÄÖÜ",
        data: { tokens: 12.5, nested: { list: [1, "two", null] } },
      });
      const checkpoint = ok(
        await (await pair()).worker.post<Json>(`/v1/contracts/${id}/checkpoint`, body),
        201,
      );
      const added = { contractId: id, id: expect.any(String), createdAt: expect.any(String) };
      expect(checkpoint).toEqual({ ...body, ...added });
      for (const time of [checkpoint.checkpointedAt, checkpoint.createdAt])
        expect(new Date(time).toISOString()).toBe(time);
    },
  );
});

chapter("Resources and their fields / Complaint", () => {
  withMoney(
    [
      "| id | string | ",
      "| contractId | string | ",
      "| filedByRole | string (`client` or `worker`) |",
      "| evidence | object (application-specific, stored as given) |",
      "| status | string (`pending` on creation; `upheld` occurs) |",
      "| filedAt | string (timestamp) |",
      "| resolvedAt | string (timestamp) or null |",
      "| resolutionNote | string or null |",
      "POST /v1/contracts/{id}/complaints > Response 201: Complaint with status `pending`, resolvedAt and resolutionNote null.",
    ],
    async () => {
      const { client } = await pair();
      const { id } = await match();
      const evidence = { why: "late", hours: 3, more: [{ deep: true }] };
      const complaint = ok(await client.post<Json>(`/v1/contracts/${id}/complaints`, { evidence }), 201);
      expect(complaint).toEqual({
        id: expect.any(String),
        contractId: id,
        filedByRole: "client",
        evidence,
        status: "pending",
        filedAt: new Date(complaint.filedAt).toISOString(),
        resolvedAt: null,
        resolutionNote: null,
      });
    },
  );
});

chapter("Resources and their fields / Vote (one per criterion per Backup Agent)", () => {
  withJury(
    [
      "| contractId | string | |",
      "| backupAgent | address | The caller. |",
      "| criterionIndex | number | 0-based. |",
      "| vote | string | `met`, `not met`, `unclear`. |",
      "What the service does > Backup Agents stake a bond and vote per acceptance criterion (`met`, `not met`, `unclear`).",
      "null until every Backup Agent on the contract has submitted or the BA Voting Window has closed.",
      "null until majorityOutcome is resolved.",
      "Tokens minted to the agent for the criterion; 0 if none; null until resolved.",
      "POST /v1/contracts/{id}/votes > Response 200: array of Vote, one per criterion, with majorityOutcome, bondOutcome and reward null until resolved.",
    ],
    async () => {
      const juror = await newJuror(scene);
      const { id } = await disputed(scene, await pair());
      const before = await scene.usdOf(juror.address);
      const votes = ok(
        await juror.pay<Json[]>(`/v1/contracts/${id}/votes`, ballot("met", "not met", "unclear")),
      );
      const undecided = { majorityOutcome: null, bondOutcome: null, reward: null };
      const vote = { contractId: id, backupAgent: juror.address, ...undecided };
      expect(votes).toEqual([
        { ...vote, criterionIndex: 0, vote: "met" },
        { ...vote, criterionIndex: 1, vote: "not met" },
        { ...vote, criterionIndex: 2, vote: "unclear" },
      ]);
      expect(before - (await scene.usdOf(juror.address))).toBe(7_500_000n);
    },
  );
});

chapter("Resources and their fields / Agent profile", () => {
  withDatabase(
    "Profiles are insert-only: each successful update appends a new version; reads return the newest.",
    async () => {
      const agent = await scene.newAgent();
      for (const displayName of ["One", "Two", "Three"]) {
        ok(await agent.post("/v1/agents/me/profile", { displayName }), 201);
      }
      const rows = await scene.query("select display_name from app.profile where agent = $1 order by id", [
        agent.address,
      ]);
      expect(rows.map(({ display_name }) => display_name)).toEqual(["One", "Two", "Three"]);
      expect((await scene.call<Json>("GET", `/v1/agents/${agent.address}/profile`)).data.displayName).toBe(
        "Three",
      );
    },
  );
});

chapter("Resources and their fields / Protocol parameters (read-only, global)", () => {
  const rows = [
    ["| protocolFee | number | 0.05 |", 0.05],
    ["| workerStakeRatio | number | 0.05 |", 0.05],
    ["| disputeBondRatio | number | 0.05 |", 0.05],
    ["| backupAgentBondRatio | number | 0.05 |", 0.05],
    ["| earlyWithdrawalSlashRatio | number | 0.3 |", 0.3],
    ["| absentNoneMetClientShare | number | 0.8 |", 0.8],
    ["| baUnclearSlashRatio | number | 0.3 |", 0.3],
    ["| tokenMintRewardFull | number | 10 |", 10],
    ["| tokenMintRewardReduced | number | 4 |", 4],
    ["| baEligibilityStake | number | 1000 |", 1000],
    ["| baVotingWindow | string (ISO 8601 duration) | PT24H |", "PT24H"],
    ["| baRecruitCount | number or null | null |", null],
  ] as const;
  says(
    [
      ...rows.map(([row]) => row),
      "Protocol parameters (read-only, global)",
      "GET /v1/protocol > Response 200: the Protocol parameters object described above. Read-only.",
      "What the service does > Global economic parameters are readable.",
      "Limits > | Backup Agent voting window | PT24H (`baVotingWindow`) | Voting |",
    ],
    async () => {
      const agent = await scene.newAgent();
      const parameters = Object.fromEntries(rows.map(([row, value]) => [row.split(" ")[1], value]));
      expect(ok(await scene.call("GET", "/v1/protocol"))).toEqual(parameters);
      expect((await agent.post("/v1/protocol", { protocolFee: 0 })).status).toBe(405);
      expect(ok(await scene.call("GET", "/v1/protocol"))).toEqual(parameters);
    },
  );
});
