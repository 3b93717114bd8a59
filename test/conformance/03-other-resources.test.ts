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
  quoteFor,
  signedChallenge,
} from "../support/contracts.js";
import { paymentRequired, type Quote } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, says, withDatabase, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const match = lazy(async () => matched(scene, await pair()));

chapter("Resources and their fields / Payment quote (402)", () => {
  const answers = lazy(async () => {
    const agent = await scene.newAgent();
    const body = JSON.stringify(await draft(scene));
    const v2 = await agent.post("/v1/contracts", body);
    const v1 = await agent.post<Json>("/v1/contracts", body, { "x-402-version": "1" });
    return { v2, header: paymentRequired(v2), v1: v1.body as { x402Version: number; accepts: Quote[] } };
  });
  const quotes = lazy(async () => {
    const { header, v1 } = await answers();
    return [header.accepts[0] as Quote, v1.accepts[0] as Quote];
  });

  says("| x402Version | integer (1 or 2) |", async () => {
    const { header, v1 } = await answers();
    expect([header.x402Version, v1.x402Version]).toEqual([2, 1]);
  });
  says("| scheme | string (`exact`) |", async () => {
    for (const { scheme } of await quotes()) expect(scheme).toBe("exact");
  });
  says("| network | string (chain identifier) |", async () => {
    const [v2, v1] = await quotes();
    expect(v2?.network).toBe(`eip155:${scene.chainId}`);
    expect(v1?.network).toEqual(expect.any(String));
  });
  says("| payTo | address of the per-contract escrow wallet |", async () => {
    const [v2, v1] = await quotes();
    expect(v2?.payTo).toMatch(/^0x[0-9a-f]{40}$/);
    expect(v1?.payTo).toBe(v2?.payTo);
  });
  says("| asset | address of the stablecoin token contract |", async () => {
    for (const { asset } of await quotes()) expect(asset).toMatch(/^0x[0-9a-f]{40}$/);
  });
  says("| maxAmountRequired | string (integer, smallest unit) |", async () => {
    for (const { maxAmountRequired } of await quotes()) expect(maxAmountRequired).toBe("50000000");
  });
  says(
    [
      "| maxTimeoutSeconds | integer (present in the v1 form, value 60) |",
      "Limits > | Payment authorization timeout | 60 seconds (`maxTimeoutSeconds` in the v1 quote) | Payment flow |",
    ],
    async () => {
      const [, v1] = await quotes();
      expect(v1?.maxTimeoutSeconds).toBe(60);
    },
  );
  says("| resource / description | string(s) describing what is paid for |", async () => {
    const [, v1] = await quotes();
    expect(v1?.resource).toMatch(/\/v1\/contracts$/);
    expect(v1?.description).toContain("Translate a page");
  });
});

chapter("Resources and their fields / Challenge", () => {
  says("| challengeId | string |", async () => {
    const { challengeId } = ok(await scene.call<Json>("POST", `/v1/agents/0x${"0a".repeat(20)}/challenge`));
    expect(challengeId).toEqual(expect.any(String));
  });
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

chapter("Resources and their fields / API key", () => {
  const issued = lazy(async () => {
    const agent = await scene.newAgent();
    const body = { ...(await signedChallenge(scene, agent)), label: "my laptop" };
    const key = ok(await scene.call<Json>("POST", `/v1/agents/${agent.address}/api-key`, { body }), 201);
    const list = ok(await agent.get<Json[]>("/v1/agents/me/api-keys"));
    return { agent, key, list, listed: list.find(({ id }) => id === key.keyId) as Json };
  });

  says("| keyId (issue response) / id (list response) | string | |", async () => {
    const { key, listed } = await issued();
    expect(key.keyId).toEqual(expect.any(String));
    expect(listed.id).toBe(key.keyId);
  });
  says(
    "| apiKey | string | Plaintext, returned only once at issuance; only its hash is stored. |",
    async () => {
      const { key, list } = await issued();
      expect(key.apiKey).toEqual(expect.any(String));
      expect(JSON.stringify(list)).not.toContain(key.apiKey);
      for (const row of list) expect(row).not.toHaveProperty("apiKey");
    },
  );
  says("| address | address | |", async () => {
    const { agent, key } = await issued();
    expect(key.address).toBe(agent.address);
  });
  says("| label | string or null | Optional free text chosen by the agent. |", async () => {
    const { list, listed } = await issued();
    expect(listed.label).toBe("my laptop");
    expect(list[0]?.label).toBeNull();
  });
  says("| createdAt | string (timestamp) | |", async () => {
    const { listed } = await issued();
    expect(new Date(listed.createdAt).toISOString()).toBe(listed.createdAt);
  });
  says("| revokedAt | string (timestamp) or null | null while active. |", async () => {
    const agent = await scene.newAgent();
    const key = await scene.call<Json>("POST", `/v1/agents/${agent.address}/api-key`, {
      body: await signedChallenge(scene, agent),
    });
    const revokedAt = async () =>
      ok(await agent.get<Json[]>("/v1/agents/me/api-keys")).find(({ id }) => id === key.data.keyId)
        ?.revokedAt;
    expect(await revokedAt()).toBeNull();
    ok(
      await scene.call("POST", `/v1/agents/${agent.address}/api-key/revoke`, {
        body: { ...(await signedChallenge(scene, agent)), keyId: key.data.keyId },
      }),
    );
    expect(new Date(await revokedAt()).getTime()).toBeGreaterThan(0);
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
  const filed = lazy(async () => {
    const { client } = await pair();
    const { id } = await match();
    const evidence = { why: "late", hours: 3, more: [{ deep: true }] };
    const complaint = ok(await client.post<Json>(`/v1/contracts/${id}/complaints`, { evidence }), 201);
    return { id, evidence, complaint };
  });
  withMoney("| id | string | ", async () => {
    expect((await filed()).complaint.id).toEqual(expect.any(String));
  });
  withMoney("| contractId | string | ", async () => {
    const { id, complaint } = await filed();
    expect(complaint.contractId).toBe(id);
  });
  withMoney("| filedByRole | string (`client` or `worker`) |", async () => {
    expect((await filed()).complaint.filedByRole).toBe("client");
  });
  withMoney("| evidence | object (application-specific, stored as given) |", async () => {
    const { evidence, complaint } = await filed();
    expect(complaint.evidence).toEqual(evidence);
  });
  withMoney("| status | string (`pending` on creation; `upheld` occurs) |", async () => {
    expect((await filed()).complaint.status).toBe("pending");
  });
  withMoney("| filedAt | string (timestamp) |", async () => {
    const { filedAt } = (await filed()).complaint;
    expect(new Date(filedAt).toISOString()).toBe(filedAt);
  });
  withMoney("| resolvedAt | string (timestamp) or null |", async () => {
    expect((await filed()).complaint.resolvedAt).toBeNull();
  });
  withMoney("| resolutionNote | string or null |", async () => {
    expect((await filed()).complaint.resolutionNote).toBeNull();
  });
});

chapter("Resources and their fields / Vote (one per criterion per Backup Agent)", () => {
  const cast = lazy(async () => {
    const juror = await newJuror(scene);
    const { id } = await disputed(scene, await pair());
    const before = await scene.usdOf(juror.address);
    const votes = ok(
      await juror.pay<Json[]>(`/v1/contracts/${id}/votes`, ballot("met", "not met", "unclear")),
    );
    return { id, juror, votes, paid: before - (await scene.usdOf(juror.address)) };
  });
  withJury("| contractId | string | |", async () => {
    const { id, votes } = await cast();
    for (const { contractId } of votes) expect(contractId).toBe(id);
  });
  withJury("| backupAgent | address | The caller. |", async () => {
    const { juror, votes } = await cast();
    for (const { backupAgent } of votes) expect(backupAgent).toBe(juror.address);
  });
  withJury("| criterionIndex | number | 0-based. |", async () => {
    expect((await cast()).votes.map(({ criterionIndex }) => criterionIndex)).toEqual([0, 1, 2]);
  });
  withJury(
    [
      "| vote | string | `met`, `not met`, `unclear`. |",
      "What the service does > Backup Agents stake a bond and vote per acceptance criterion (`met`, `not met`, `unclear`).",
    ],
    async () => {
      const { votes, paid } = await cast();
      expect(votes.map(({ vote }) => vote)).toEqual(["met", "not met", "unclear"]);
      expect(paid).toBe(7_500_000n);
    },
  );
  for (const name of ["majorityOutcome", "bondOutcome", "reward"]) {
    const rows: Record<string, string> = {
      majorityOutcome:
        "null until every Backup Agent on the contract has submitted or the BA Voting Window has closed.",
      bondOutcome: "null until majorityOutcome is resolved.",
      reward: "Tokens minted to the agent for the criterion; 0 if none; null until resolved.",
    };
    withJury(rows[name] as string, async () => {
      for (const vote of (await cast()).votes) expect(vote[name]).toBeNull();
    });
  }
});

chapter("Resources and their fields / Agent profile", () => {
  says("| agentId | string | The agent's address (shown in lower case). |", async () => {
    const agent = await scene.newAgent();
    const path = `/v1/agents/${agent.account.address}/profile`;
    expect((await scene.call<Json>("GET", path)).data.agentId).toBe(agent.address.toLowerCase());
  });
  says("| createdAt | string (timestamp) | Returned when a version is created. |", async () => {
    const agent = await scene.newAgent();
    const version = ok(await agent.post<Json>("/v1/agents/me/profile", {}), 201);
    expect(new Date(version.createdAt).toISOString()).toBe(version.createdAt);
    expect((await scene.call<Json>("GET", `/v1/agents/${agent.address}/profile`)).data).not.toHaveProperty(
      "createdAt",
    );
  });
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
  const parameters = lazy(() => scene.call<Json>("GET", "/v1/protocol"));
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
  const nameOf = (row: string) => row.split(" ")[1] as string;
  for (const [row, value] of rows) {
    says(row, async () => {
      expect((await parameters()).data[nameOf(row)]).toBe(value);
    });
  }
  says(
    [
      "Protocol parameters (read-only, global)",
      "GET /v1/protocol > Response 200: the Protocol parameters object described above. Read-only.",
      "What the service does > Global economic parameters are readable.",
      "Limits > | Backup Agent voting window | PT24H (`baVotingWindow`) | Voting |",
    ],
    async () => {
      const agent = await scene.newAgent();
      const { status, data } = await parameters();
      expect(status).toBe(200);
      expect(data).toEqual(Object.fromEntries(rows.map(([row, value]) => [nameOf(row), value])));
      expect((await agent.post("/v1/protocol", { protocolFee: 0 })).status).toBe(405);
      expect(ok(await scene.call<Json>("GET", "/v1/protocol"))).toEqual(data);
    },
  );
});

chapter("Resources and their fields / Payment quote for a stake or bond", () => {
  withMoney("address of the per-contract escrow wallet", async () => {
    const { client, worker } = await pair();
    const { id } = ok(await client.pay<Json>("/v1/contracts", await draft(scene)));
    expect((await quoteFor(worker, `/v1/contracts/${id}/accept`, { accept: true })).payTo).toBe(id);
  });
});
