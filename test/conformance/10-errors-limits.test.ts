/** The tables of errors and limits, and versioning. */
import { expect } from "vitest";
import type { Agent } from "../support/agent.js";
import {
  ballot,
  checkpointBody,
  created,
  delivered,
  disputed,
  draft,
  type Json,
  laterThan,
  matched,
  newJuror,
  newPair,
  ok,
  quoteFor,
} from "../support/contracts.js";
import { authorize, paymentRequired, quoteOf, version1, version2 } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, refusal, says, withDatabase, withJury, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const match = lazy(async () => matched(scene, await pair()));

chapter("Errors", () => {
  withMoney(
    [
      "| 400 | invalid_request | accept=false on an open-tender contract; displayName containing `0x`. |",
      "POST /v1/contracts/{id}/accept > accept=false is rejected with 400 `invalid_request`.",
    ],
    async () => {
      const { client, worker } = await pair();
      const { id } = await created(scene, client);
      const declined = await worker.post(`/v1/contracts/${id}/accept`, { accept: false });
      const named = await worker.post("/v1/agents/me/profile", { displayName: "Mr 0xA" });
      expect([declined, named].map(refusal)).toEqual(["400 invalid_request", "400 invalid_request"]);
    },
  );

  withMoney(
    [
      "| 403 | forbidden | Caller lacks the role the operation needs (named worker, matched worker, client, initiator, client or worker). |",
      "POST /v1/contracts/{id}/complaints > caller must be the contract's client or worker (else 403 `forbidden`).",
      "POST /v1/contracts/{id}/accept > `direct_award`: only the address in `worker` may call; others get 403 `forbidden`.",
      "POST /v1/contracts/{id}/accept > a client cannot accept its own tender",
      "POST /v1/contracts/{id}/delivery > caller must be the matched worker (else 403 `forbidden`).",
      "States and transitions > caller is the matched worker",
      "POST /v1/contracts/{id}/withdraw > caller must be the matched worker (else 403).",
      "POST /v1/contracts/{id}/checkpoint > caller must be the matched worker (else 403).",
      "POST /v1/contracts/{id}/approve > caller must be the Client (else 403).",
      "POST /v1/contracts/{id}/dispute > caller must be the Client (else 403).",
      "POST /v1/contracts/{id}/cancel > caller must be the Initiator (the client for a client-initiated contract, the worker for a worker-initiated one; else 403).",
    ],
    async () => {
      const { client, worker } = await pair();
      const other = await scene.newAgent({ usd: "100" });
      const [tender, named, listing, reserved, running, done] = await Promise.all([
        created(scene, client),
        created(scene, client, { awardMethod: "direct_award", worker: worker.address }),
        created(scene, worker, { initiator: "worker" }),
        created(scene, worker, { initiator: "worker", client: client.address }),
        match(),
        delivered(scene, { client, worker }),
      ]);
      const refused: [contract: Json, call: string, callers: Agent[], body?: Json][] = [
        [tender, "accept", [client], { accept: true }],
        [named, "accept", [other, client], { accept: true }],
        [named, "accept", [other, client], { accept: false }],
        [reserved, "accept", [other], { accept: true }],
        [reserved, "accept", [other], { accept: false }],
        [running, "delivery", [other, client], { delivery: "x" }],
        [running, "withdraw", [other, client]],
        [running, "checkpoint", [other, client], await checkpointBody(scene)],
        [running, "complaints", [other], { evidence: {} }],
        [done, "approve", [other, worker]],
        [done, "dispute", [other, worker]],
        [named, "cancel", [other, worker]],
        [listing, "cancel", [other, client]],
      ];
      for (const [{ id }, call, callers, body] of refused) {
        for (const agent of callers)
          expect(refusal(await agent.post(`/v1/contracts/${id}/${call}`, body)), call).toBe("403 forbidden");
      }
      expect(refusal(await other.get(`/v1/contracts/${running.id}/keys`))).toBe("403 forbidden");

      expect((await worker.post(`/v1/contracts/${named.id}/accept`, { accept: true })).status).toBe(402);
      ok(await client.post(`/v1/contracts/${named.id}/cancel`));
      ok(await worker.post(`/v1/contracts/${listing.id}/cancel`));
    },
  );

  withJury(
    "| 409 | conflict | Contract not in the required state; open-tender race lost; checkpoint sequence or time violation; no counterparty yet for a complaint; complaint window closed; Backup Agent already voted. |",
    async () => {
      const parties = await pair();
      const { client, worker } = parties;
      const juror = await newJuror(scene);
      const [open, { id }, dispute] = await Promise.all([
        created(scene, client),
        match(),
        disputed(scene, parties),
      ]);
      ok(await juror.pay(`/v1/contracts/${dispute.id}/votes`, ballot("met", "met", "met")));
      for (const answer of [
        await client.post(`/v1/contracts/${id}/cancel`),
        await (await scene.newAgent()).post(`/v1/contracts/${id}/accept`, { accept: true }),
        await worker.post(`/v1/contracts/${id}/checkpoint`, await checkpointBody(scene, { fromSequence: 9 })),
        await client.post(`/v1/contracts/${open.id}/complaints`, { evidence: {} }),
        await juror.post(`/v1/contracts/${dispute.id}/votes`, ballot("met", "met", "met")),
      ]) {
        expect(refusal(answer)).toBe("409 conflict");
      }
    },
  );

  withMoney(
    "No one is quoted for a call that would be rejected: 401, 400, 404, 403, 409, 429, 402",
    async () => {
      const parties = await pair();
      const { id } = await created(scene, parties.client, {
        awardMethod: "direct_award",
        worker: parties.worker.address,
      });
      const path = `/v1/contracts/${id}/accept`;
      const unknown = `/v1/contracts/0x${"ab".repeat(20)}/accept`;
      const other = await scene.newAgent();
      const statuses = [
        await scene.call("POST", unknown, { body: { accept: "no" } }),
        await other.post(unknown, { accept: "no" }),
        await other.post(unknown, { accept: true }),
        await other.post(path, { accept: true }),
        await parties.worker.post(path, { accept: true }),
      ].map(({ status }) => status);
      expect(statuses).toEqual([401, 400, 404, 403, 402]);
    },
  );
});

chapter("Limits", () => {
  withDatabase(
    [
      "| Unpaid creation attempt lifetime | 30 minutes, then the slot is freed | Create Contract |",
      "POST /v1/contracts > an abandoned quote frees its slot after 30 minutes",
    ],
    async () => {
      const agent = await scene.newAgent({ usd: "100" });
      const newBody = async () => JSON.stringify(await draft(scene));
      const post = (body: string, headers: Record<string, string> = {}) =>
        agent.post("/v1/contracts", body, headers);
      const tooMany = "429 too_many_pending_attempts";
      const [sixth, oldest, paid] = [await newBody(), await newBody(), await newBody()];
      // A wallet can sign payments that are never taken.
      const forgotten = quoteOf(await post(sixth));
      const unquoted = version2(forgotten, await authorize(agent, forgotten, scene));
      await scene.query("delete from app.terms where id = $1", [forgotten.payTo]);
      const quote = quoteOf(await post(oldest));
      for (const body of [paid, await newBody(), await newBody(), await newBody()]) quoteOf(await post(body));
      const age = (minutes: number) =>
        scene.query(
          "update app.terms set first_quoted_at = now() - make_interval(mins => $2) where id = $1",
          [quote.payTo, minutes],
        );
      await age(29);
      for (const headers of [{}, unquoted]) expect(refusal(await post(sixth, headers))).toBe(tooMany);
      await age(30);
      expect((await post(sixth)).status).toBe(402);
      for (const body of [await newBody(), oldest]) expect(refusal(await post(body))).toBe(tooMany);
      // The late payment is honoured, and a paid attempt frees its slot.
      ok(await post(oldest, version2(quote, await authorize(agent, quote, scene))));
      ok(await agent.pay("/v1/contracts", paid));
      expect((await post(await newBody())).status).toBe(402);
    },
  );
  for (const [field, length] of [
    ["displayName", 32],
    ["bio", 280],
  ] as const) {
    says(
      [
        `| ${field} length | ${length} characters | Profile |`,
        `Resources and their fields / Agent profile > | ${field} | string or null | Up to ${length} characters. |`,
      ],
      async () => {
        const agent = await scene.newAgent();
        const set = (text: string) => agent.post<Json>("/v1/agents/me/profile", { [field]: text });
        for (const character of ["n", "é", "😀"]) {
          const longest = character.repeat(length);
          expect(ok(await set(longest), 201)[field]).toBe(longest);
          expect((await set(`${longest}x`)).status).toBe(400);
        }
      },
    );
  }
  withJury("| Backup Agent eligibility stake | 1000 tokens | Backup Agent selection |", async () => {
    const [enough, short] = await Promise.all([
      scene.newAgent({ usd: "100", tokens: 1000 }),
      scene.newAgent({ usd: "100", tokens: 1000 }),
    ]);
    ok(await enough.pay("/v1/agents/me/stake", {}));
    const { stakedSince } = ok(
      await short.pay<Json>("/v1/agents/me/stake", { amount: "999.999999999999999999" }),
    );
    await laterThan(scene, stakedSince);
    const { id } = await disputed(scene, await pair());
    const vote = (agent: Agent) => agent.post(`/v1/contracts/${id}/votes`, ballot("met", "met", "met"));
    expect((await vote(enough)).status).toBe(402);
    expect(refusal(await vote(short))).toBe("403 forbidden");
    expect(refusal(await vote(await scene.newAgent()))).toBe("403 forbidden");
  });
});

chapter("POST /v1/contracts/{id}/votes", () => {
  withJury(
    'Body: `votes` array required, exactly one entry per criterion of the contract, each `{ criterionIndex: number (0-based), vote: "met" | "not met" | "unclear" }`.',
    async () => {
      const juror = await newJuror(scene);
      const { id } = await disputed(scene, await pair());
      const entry = (criterionIndex: unknown, vote: unknown) => ({ criterionIndex, vote });
      const three = [entry(0, "met"), entry(1, "met"), entry(2, "met")];
      for (const votes of [
        undefined,
        [],
        three.slice(1),
        [...three, entry(3, "met")],
        [...three.slice(1), entry(1, "met")],
        [...three.slice(1), entry(3, "met")],
        [...three.slice(1), entry(-1, "met")],
        [...three.slice(1), entry(0.5, "met")],
        [...three.slice(1), entry("0", "met")],
        [...three.slice(1), entry(0, "maybe")],
        [...three.slice(1), entry(0, "not-met")],
        [...three.slice(1), null],
        "met",
      ]) {
        expect(refusal(await juror.post(`/v1/contracts/${id}/votes`, { votes }))).toBe("400 invalid_request");
      }
      expect((await juror.post(`/v1/contracts/${id}/votes`, { votes: three.toReversed() })).status).toBe(402);
    },
  );
  withJury(
    [
      "The first and only call per Backup Agent per contract posts the full Backup Agent Bond via the payment flow and submits all votes together; no resubmission and no per-criterion calls. A second call returns 409 `conflict`.",
      "States and transitions / Rules > each Backup Agent votes once per contract on all criteria",
      "Limits > | Votes per Backup Agent per contract | one call, covering every criterion | Submit Votes |",
    ],
    async () => {
      const juror = await newJuror(scene);
      const { id } = await disputed(scene, await pair());
      const path = `/v1/contracts/${id}/votes`;
      expect((await quoteFor(juror, path, ballot("met", "met", "met"))).maxAmountRequired).toBe("7500000");
      expect((await juror.post(path, ballot("met", "met"))).status).toBe(400);
      expect(ok(await juror.pay<Json[]>(path, ballot("met", "met", "met")))).toHaveLength(3);
      expect(refusal(await juror.post(path, ballot("not met", "met", "met")))).toBe("409 conflict");
      expect(refusal(await juror.post(path, ballot("met", "met", "met")))).toBe("409 conflict");
    },
  );
});

chapter("Versioning", () => {
  says("All paths carry the prefix `/v1`.", async () => {
    const { paths } = (await scene.call<Json>("GET", "/openapi.json")).body as Json;
    const unversioned = Object.keys(paths).filter((path) => !path.startsWith("/v1/"));
    // Probes are not part of the API.
    expect(unversioned.filter((path) => !["/health", "/ready"].includes(path))).toEqual([]);
    expect((await fetch(`${scene.url}/protocol`)).status).toBe(404);
  });
  withMoney(
    [
      "Two payment-protocol versions are accepted: version 2 (`PAYMENT-SIGNATURE` request header, base64 `Payment-Required` response header, empty `{}` body on 402) and version 1 (`X-PAYMENT` request header, quote in the 402 body).",
      "Endpoints / Small print > Payment-carrying calls additionally carry a signed transfer authorization in `PAYMENT-SIGNATURE` or `X-PAYMENT`.",
    ],
    async () => {
      const { client } = await newPair(scene);
      for (const version of [1, 2]) {
        const body = JSON.stringify(await draft(scene));
        const answer = await client.post<Json>("/v1/contracts", body, { "x-402-version": String(version) });
        if (version === 2) expect(answer.body).toEqual({});
        const quote = version === 2 ? quoteOf(answer) : (answer.body as Json).accepts[0];
        const signed = await authorize(client, quote, scene);
        const headers = version === 2 ? version2(quote, signed) : version1(quote, signed);
        // The key says who calls, the payment who pays. Neither replaces the other.
        expect(refusal(await scene.call("POST", "/v1/contracts", { body, headers }))).toBe(
          "401 unauthorized",
        );
        const misplaced = { payment: Object.values(headers)[0] as string };
        expect((await client.post("/v1/contracts", body, misplaced)).status).toBe(402);
        expect((await client.post("/v1/contracts", body, headers)).status).toBe(200);
      }
    },
  );
  says("both payment headers at once are rejected", async () => {
    const agent = await scene.newAgent();
    const body = await draft(scene);
    const quote = quoteOf(await agent.post("/v1/contracts", body));
    const signed = await authorize(agent, quote, scene);
    const both = { ...version1(quote, signed), ...version2(quote, signed) };
    const refused = await agent.post("/v1/contracts", body, both);
    expect([refused.status, paymentRequired(refused).error]).toEqual([402, "invalid_payload"]);
  });
});
