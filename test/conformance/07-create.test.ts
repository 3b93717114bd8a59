/** POST /v1/contracts. */
import { expect } from "vitest";
import type { Agent } from "../support/agent.js";
import { created, DAY, draft, HOUR, type Json, newPair, ok, posted, quoteFor } from "../support/contracts.js";
import { quoteOf, signedCall } from "../support/payment.js";
import { lazy, openScene } from "../support/world.js";
import { chapter, says, withMoney } from "./support/spec.js";

const scene = await openScene();
const pair = lazy(() => newPair(scene));
const otherAddress = `0x${"0d".repeat(20)}`;

/** The response to an agent, by default one without money, for a body changed in one place. */
async function tried(overrides: Json, agent?: Agent) {
  return (agent ?? (await scene.newAgent())).post("/v1/contracts", await draft(scene, overrides));
}
async function refusedFor(path: string, overrides: Json, agent?: Agent): Promise<void> {
  const { status, error } = await tried(overrides, agent);
  expect([status, error?.code], JSON.stringify(overrides).slice(0, 200)).toEqual([400, "invalid_request"]);
  const details = (error?.details ?? []) as Json[];
  expect(details.flatMap((detail) => [detail.path, detail.path.split(".")[0]])).toContain(path);
}
async function quotedFor(overrides: Json): Promise<void> {
  const { status, body } = await tried(overrides);
  expect(status, JSON.stringify(body)).toBe(402);
}

chapter("POST /v1/contracts", () => {
  withMoney(
    "quoted amount is price for a client-initiated contract and Worker Stake (budgetOrPrice x workerStakeRatio) for a worker-initiated one.",
    async () => {
      const agent = await scene.newAgent();
      const amounts = await Promise.all(
        [{}, { initiator: "client" }, { initiator: "worker" }].map(
          async (initiator) =>
            (await quoteFor(agent, "/v1/contracts", await draft(scene, initiator))).maxAmountRequired,
        ),
      );
      expect(amounts).toEqual(["50000000", "50000000", "2500000"]);
    },
  );

  withMoney(
    [
      "Response 200: the Contract with status `created`, criteriaMet null, delivery null, backupAgents empty.",
      "Client-initiated: escrowedFunds = budgetOrPrice, workerStake null.",
      "POST /v1/contracts / Body > `client`: caller pays price now and becomes client; worker stays null until someone accepts.",
      "What the service does > A Client posts a Working Contract with a task, up to 10 acceptance criteria, four deadlines and a fixed price.",
    ],
    async () => {
      const { client } = await pair();
      const terms = {
        initiator: "client",
        budgetOrPrice: "12.34",
        acceptanceCriteria: Array.from({ length: 10 }, (_, i) => `Part ${i}`),
      };
      const { body, contract } = await posted(scene, client, terms);
      expect(contract).toMatchObject({
        ...terms,
        title: body.title,
        status: "created",
        client: client.address,
        worker: null,
        escrowedFunds: "12.34",
        workerStake: null,
        criteriaMet: null,
        delivery: null,
        backupAgents: [],
      });
    },
  );

  withMoney(
    [
      "409 `duplicate_contract` (an identical contract by the caller exists and no different idempotencyKey was given)",
      "Errors > | 409 | duplicate_contract | Identical contract by the same caller without a distinct idempotencyKey. |",
      "POST /v1/contracts / Body > To post several otherwise identical contracts give each its own key.",
    ],
    async () => {
      const { client, worker } = await newPair(scene);
      const body = JSON.stringify(await draft(scene, { idempotencyKey: undefined }));
      const { id } = ok(await client.pay<Json>("/v1/contracts", body));
      const again = await client.post("/v1/contracts", body);
      expect([again.status, again.error?.code, again.error?.details]).toEqual([
        409,
        "duplicate_contract",
        { contractId: id },
      ]);
      const others = await Promise.all(
        ["a", "b"].map((idempotencyKey) =>
          client.pay<Json>("/v1/contracts", { ...JSON.parse(body), idempotencyKey }),
        ),
      );
      expect(new Set([id, ...others.map((other) => ok(other).id)]).size).toBe(3);
      // The same bytes from another caller are another contract.
      expect((await worker.post("/v1/contracts", body)).status).toBe(402);
    },
  );

  says(
    [
      "429 `too_many_pending_attempts` (5 unpaid attempts already; an abandoned quote frees its slot after 30 minutes)",
      "Errors > | 429 | too_many_pending_attempts | 5 unpaid creation attempts outstanding. |",
      "Limits > | Unpaid creation attempts per caller | 5 at a time (429 beyond) | Create Contract |",
    ],
    async () => {
      const agent = await scene.newAgent();
      const bodies = await Promise.all(Array.from({ length: 7 }, () => draft(scene)));
      const answers = [];
      for (const body of bodies) answers.push(await agent.post("/v1/contracts", body));
      expect(answers.map(({ status }) => status)).toEqual([402, 402, 402, 402, 402, 429, 429]);
      expect(answers[5]?.error?.code).toBe("too_many_pending_attempts");
      expect(Number(answers[5]?.headers.get("retry-after"))).toBeGreaterThan(29 * 60);
      // A repeated request uses no second slot.
      expect((await agent.post("/v1/contracts", bodies[0])).status).toBe(402);
      expect((await (await scene.newAgent()).post("/v1/contracts", bodies[5])).status).toBe(402);
    },
  );

  says("six first attempts at the same moment: five quotes", async () => {
    const agent = await scene.newAgent();
    const bodies = await Promise.all(Array.from({ length: 6 }, () => draft(scene)));
    const answers = await Promise.all(bodies.map((body) => agent.post("/v1/contracts", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([402, 402, 402, 402, 402, 429]);
  });
});

chapter("POST /v1/contracts / Body", () => {
  says(
    [
      "| idempotencyKey | string | no | Up to 200 characters.",
      "Limits > | idempotencyKey length | up to 200 characters | Create Contract |",
    ],
    async () => {
      await quotedFor({ idempotencyKey: "k".repeat(200) });
      await quotedFor({ idempotencyKey: "ü".repeat(200) });
      await quotedFor({ idempotencyKey: "😀".repeat(200) });
      await quotedFor({ idempotencyKey: undefined });
      await refusedFor("idempotencyKey", { idempotencyKey: "x".repeat(201) });
      await refusedFor("idempotencyKey", { idempotencyKey: "" });
      await refusedFor("idempotencyKey", { idempotencyKey: 7 });
    },
  );
  withMoney(
    [
      "Byte-identical bodies from the same caller are the same creation attempt (needed so the 402 and its retry resolve to the same payTo).",
      "Payment mechanics / rejected payments > Repeat the call, with a byte-identical body",
    ],
    async () => {
      const agent = await scene.newAgent({ usd: "100" });
      const body = JSON.stringify(await draft(scene));
      const quotes = await Promise.all([1, 2, 3].map(() => quoteFor(agent, "/v1/contracts", body)));
      const { quote, headers } = await signedCall(agent, "/v1/contracts", body, scene);
      expect(new Set([quote, ...quotes].map(({ payTo }) => payTo)).size).toBe(1);
      const spaced = await agent.post("/v1/contracts", `${body} `, headers);
      expect(quoteOf(spaced).payTo).not.toBe(quote.payTo);
      expect(await scene.usdOf(agent.address)).toBe(100_000_000n);
    },
  );
  withMoney("Not stored and not returned.", async () => {
    const { body, contract } = await posted(scene, (await pair()).client);
    expect(contract).not.toHaveProperty("idempotencyKey");
    const { data } = await scene.call<Json>("GET", `/v1/contracts/${contract.id}/terms`);
    expect(JSON.stringify(data)).not.toContain(body.idempotencyKey);
    if (scene.target.can.includes("database")) {
      const rows = await scene.query("select * from app.terms where id = $1", [contract.id]);
      expect(JSON.stringify(rows)).not.toContain(body.idempotencyKey);
    }
  });
  withMoney(
    [
      "The retry of a 402 reuses the first request's key.",
      "What the service does > The caller signs a stablecoin transfer authorization (a signed transferWithAuthorization, EIP-3009 style) and repeats the identical call with it attached.",
      "Endpoints / Small print > Sign a stablecoin transfer authorization for the quoted amount.",
    ],
    async () => {
      const { client } = await pair();
      const body = JSON.stringify(await draft(scene));
      const { quote, payment, send } = await signedCall<Json>(client, "/v1/contracts", body, scene);
      expect(payment).toMatchObject({
        to: quote.payTo,
        value: BigInt(quote.maxAmountRequired),
        signature: expect.stringMatching(/^0x[0-9a-f]{130}$/),
      });
      expect(ok(await send()).id).toBe(quote.payTo);
    },
  );
  says("`client` (default) or `worker`.", async () => {
    await refusedFor("initiator", { initiator: "judge" });
    await refusedFor("initiator", { initiator: 1 });
  });
  for (const [name, length] of [
    ["title", 200],
    ["taskDescription", 65_536],
  ] as const) {
    says(`| ${name} | string | yes | |`, async () => {
      for (const value of [undefined, null, "", "  ", 5, ["x"], "x".repeat(length + 1)])
        await refusedFor(name, { [name]: value });
    });
  }
  says(
    [
      "| acceptanceCriteria | array of string | yes | Up to 10. |",
      "Limits > | acceptanceCriteria entries | up to 10 | Create Contract |",
    ],
    async () => {
      await quotedFor({ acceptanceCriteria: ["Good"] });
      await quotedFor({ acceptanceCriteria: Array(10).fill("Good") });
      for (const value of [undefined, null, [], Array(11).fill("Good"), "Good", [1], [null], [""], {}]) {
        await refusedFor("acceptanceCriteria", { acceptanceCriteria: value });
      }
      await refusedFor("acceptanceCriteria.1", { acceptanceCriteria: ["x", " "] });
      await refusedFor("acceptanceCriteria.0", { acceptanceCriteria: ["x".repeat(1001)] });
    },
  );
  says("| supplementaryMaterials | string | no | Reference to supporting data. |", async () => {
    await quotedFor({ supplementaryMaterials: "ipfs://x" });
    await quotedFor({ supplementaryMaterials: undefined });
    await refusedFor("supplementaryMaterials", { supplementaryMaterials: "" });
    await refusedFor("supplementaryMaterials", { supplementaryMaterials: 5 });
    await refusedFor("supplementaryMaterials", { supplementaryMaterials: { cid: "x" } });
  });
  says(
    "The only recognized value is the identifier of the token-usage ticket application (written here as `usageticket`); any other value is rejected.",
    async () => {
      await quotedFor({ application: "usageticket" });
      await quotedFor({ application: undefined });
      for (const application of ["chess", "UsageTicket", "", 1])
        await refusedFor("application", { application });
    },
  );
  withMoney(
    "Structured application-specific terms, stored and returned as given, not validated.",
    async () => {
      const { client } = await pair();
      const applicationTerms = JSON.parse(
        '{ "criteria": "nonsense", "list": [1, { "a": null }], "ключ": "значение", "__proto__": { "b": 1 } }',
      );
      const { id } = await created(scene, client, { application: "usageticket", applicationTerms });
      const { document } = ok(await scene.call<Json>("GET", `/v1/contracts/${id}/terms`));
      expect(document.applicationTerms).toEqual(applicationTerms);
      expect(JSON.stringify(document.applicationTerms)).toContain('"__proto__":{"b":1}');
      await refusedFor("applicationTerms", { applicationTerms });
      for (const value of [[1], { x: "y".repeat(33_000) }])
        await refusedFor("applicationTerms", { application: "usageticket", applicationTerms: value });
    },
  );
  says(
    [
      "| contractType | string | yes | Must be `fixed`. |",
      "| awardMethod | string | yes | `direct_award` or `open_tender`. |",
      "| verificationMode | string | no | Must be `privacy-preserving`. |",
      "Only direct_award and open_tender with fixed and privacy-preserving are implemented; other combinations are rejected.",
      "Versioning > The `auction` contract type and `standard` verification mode are not implemented and are rejected.",
      "Versioning / Combinations > Currently implemented contract combinations: fixed price with direct award or open tender, with privacy-preserving verification only.",
    ],
    async () => {
      for (const verificationMode of ["privacy-preserving", undefined]) {
        await quotedFor({ awardMethod: "direct_award", worker: otherAddress, verificationMode });
        await quotedFor({ awardMethod: "open_tender", verificationMode });
      }
      for (const contractType of [undefined, "auction", "Fixed", null])
        await refusedFor("contractType", { contractType });
      for (const awardMethod of [undefined, "auction", "lottery", "FDP", null])
        await refusedFor("awardMethod", { awardMethod });
      await refusedFor("verificationMode", { verificationMode: "standard" });
    },
  );
  withMoney(
    "| worker | string (address) | required when direct_award | Omit for open_tender. |",
    async () => {
      const { client, worker } = await pair();
      const named = await created(scene, client, {
        awardMethod: "direct_award",
        worker: worker.account.address,
      });
      expect(named.worker).toBe(worker.address);
      await refusedFor("worker", { awardMethod: "direct_award" });
      await refusedFor("worker", { awardMethod: "direct_award", worker: "0x12" });
      await refusedFor("worker", { awardMethod: "direct_award", worker: `0x${"00".repeat(20)}` });
      await refusedFor("worker", { worker: otherAddress });
      await refusedFor("worker", { initiator: "worker", worker: otherAddress });
      await refusedFor("worker", { awardMethod: "direct_award", worker: client.address }, client);
      await refusedFor("client", { initiator: "worker", client: client.address }, client);
    },
  );
  says(
    "| budgetOrPrice | number | yes | Fixed price; also the payment amount for a client-initiated contract. |",
    async () => {
      const agent = await scene.newAgent();
      for (const [price, amount] of [
        [50, "50000000"],
        [0.01, "10000"],
        ["0.123456", "123456"],
        [1234567.5, "1234567500000"],
      ]) {
        const quote = await quoteFor(agent, "/v1/contracts", await draft(scene, { budgetOrPrice: price }));
        expect(quote.maxAmountRequired).toBe(amount);
      }
      for (const budgetOrPrice of [undefined, null, 0, -1, "0.0000001", "1e2", "abc", "", [], {}, true]) {
        await refusedFor("budgetOrPrice", { budgetOrPrice });
      }
    },
  );
  says(
    "| matchDeadline, withdrawalDeadline, deliveryDeadline, reviewDeadline | string (timestamp) | yes | All four always required.",
    async () => {
      const wrong = [undefined, null, "", "tomorrow", 1_900_000_000, "2030-01-01", "2030-01-01T00:00:00"];
      for (const name of ["matchDeadline", "withdrawalDeadline", "deliveryDeadline", "reviewDeadline"]) {
        for (const value of wrong) await refusedFor(name, { [name]: value });
      }
      for (const [name, seconds] of [
        ["matchDeadline", -60],
        ["withdrawalDeadline", HOUR - 10],
        ["deliveryDeadline", DAY - 10],
        ["reviewDeadline", DAY],
        ["reviewDeadline", 365 * DAY + HOUR],
      ] as const) {
        await refusedFor(name, { [name]: await scene.inSeconds(seconds) });
      }
      const at = await scene.inSeconds(HOUR);
      const equal = { matchDeadline: at, withdrawalDeadline: at, deliveryDeadline: at };
      await refusedFor("reviewDeadline", { ...equal, reviewDeadline: at });
      await quotedFor(equal);
    },
  );
});
