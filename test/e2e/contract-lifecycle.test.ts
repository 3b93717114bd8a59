/** Undisputed lifecycles, from the first quote to the last payout. */

import { escrowAddress, termsHash } from "@working-contracts/protocol/terms";
import { compactDecrypt } from "jose";
import { describe, expect, test } from "vitest";
import { parseStoredTerms } from "../../src/db/onchain.js";
import type { SettlementView } from "../../src/features/contracts/get-settlement.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { readReferenceKey } from "../../src/features/references/vault.js";
import { created, draft, newPair, untilStatus } from "../support/contracts.js";
import { quoteOf } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

describe("a direct award", () => {
  test("is created, accepted, delivered, approved and settled", async () => {
    const [clientBefore, workerBefore] = await Promise.all([
      world.usdOf(client.address),
      world.usdOf(worker.address),
    ]);
    const body = await draft(world, {
      awardMethod: "direct_award",
      worker: worker.account.address,
      supplementaryMaterials: "ipfs://materials",
      budgetOrPrice: "50.00",
    });

    const created = await client.pay<ContractView>("/v1/contracts", body);
    expect(created.status).toBe(200);
    expect(created.headers.get("payment-response")).toBeTruthy();
    const { id, createdAt, supplementaryMaterials, ...rest } = created.data;
    expect(id).toMatch(/^0x[0-9a-f]{40}$/);
    expect(Date.parse(createdAt) / 1000).toBeLessThanOrEqual(await world.chainNow());
    expect(supplementaryMaterials?.split(".")).toHaveLength(5);
    expect(rest).toEqual({
      status: "created",
      initiator: "client",
      client: client.address,
      worker: worker.address,
      title: body.title,
      taskDescription: body.taskDescription,
      acceptanceCriteria: body.acceptanceCriteria,
      criteriaMet: null,
      delivery: null,
      contractType: "fixed",
      awardMethod: "direct_award",
      budgetOrPrice: "50.0",
      matchDeadline: body.matchDeadline,
      withdrawalDeadline: body.withdrawalDeadline,
      deliveryDeadline: body.deliveryDeadline,
      reviewDeadline: body.reviewDeadline,
      verificationMode: "privacy-preserving",
      backupAgents: [],
      escrowedFunds: "50.0",
      workerStake: null,
      disputeBond: null,
    });

    const matched = await worker.pay<ContractView>(`/v1/contracts/${id}/accept`, { accept: true });
    expect(matched.status).toBe(200);
    expect(matched.data).toMatchObject({ status: "matched", worker: worker.address, workerStake: "2.5" });

    const delivered = await worker.post<ContractView>(`/v1/contracts/${id}/delivery`, {
      delivery: "ipfs://output",
    });
    expect(delivered.status).toBe(200);
    expect(delivered.data).toMatchObject({
      status: "under-review",
      reviewDeadline: body.reviewDeadline,
      criteriaMet: null,
    });
    expect(delivered.data.delivery).not.toContain("ipfs");

    const approved = await client.post<ContractView>(`/v1/contracts/${id}/approve`);
    expect(approved.status).toBe(200);
    expect(approved.data).toMatchObject({ status: "resolved", criteriaMet: ["met", "met", "met"] });

    const settled = await untilStatus(client, id, "settled-all-met");
    expect(settled).toMatchObject({ escrowedFunds: "50.0", workerStake: "2.5", disputeBond: null });
    expect(await world.usdOf(client.address)).toBe(clientBefore - 50_000_000n);
    expect(await world.usdOf(worker.address)).toBe(workerBefore + 47_500_000n);

    const { data: settlement } = await client.get<SettlementView>(`/v1/contracts/${id}/settlement`);
    expect(settlement).toMatchObject({
      contractId: id,
      status: "settled-all-met",
      ending: "approved",
      heldUntil: null,
    });
    const legs = settlement.legs.map(({ name, to, amount, state }) => [name, to, amount, state]);
    expect(legs).toEqual([
      ["worker-pay", "worker", "47.5", "confirmed"],
      ["protocol-fee", "treasury", "2.5", "confirmed"],
      ["stake-back", "worker", "2.5", "confirmed"],
    ]);
    const rows = await world.query(
      "select kind, transaction_hash as hash from app.operation where escrow = $1 and kind in ('approve', 'settle') order by id",
      [id],
    );
    // Paid out in the approval's own transaction, and by no second one.
    const hash = settlement.legs[0]?.transactionHash;
    expect(rows).toEqual([
      { kind: "approve", hash },
      { kind: "settle", hash },
    ]);
  });

  test("keeps its references encrypted under separate keys", async () => {
    const { id, supplementaryMaterials } = await created(world, client, {
      supplementaryMaterials: "ipfs://plain",
    });
    const place = {
      contractId: id,
      field: "supplementaryMaterials",
      masterKey: `0x${"11".repeat(32)}`,
      masterKeysOld: [],
    } as const;
    const key = await readReferenceKey(world.db, { ...place, masterKeysOld: [] });
    const [terms] = await world.query("select document from app.terms where id = $1", [id]);

    const { plaintext, protectedHeader } = await compactDecrypt(
      supplementaryMaterials ?? "",
      key ?? new Uint8Array(),
    );
    expect(new TextDecoder().decode(plaintext)).toBe("ipfs://plain");
    expect(protectedHeader).toMatchObject({ alg: "dir", enc: "A256GCM" });
    expect(terms?.document).not.toContain("ipfs://plain");
  });
});

describe("the terms", () => {
  test("let the caller recompute the address that a quote asks to pay, and no one else before it is paid", async () => {
    const body = await draft(world, { supplementaryMaterials: "ipfs://terms" });
    const quote = quoteOf(await client.post("/v1/contracts", body));
    const path = `/v1/contracts/${quote.payTo}/terms`;
    for (const reader of [world.call, worker.call]) expect((await reader("GET", path)).status).toBe(404);
    const { data } = await client.get<TermsView>(path);
    expect(termsHash(data.document)).toBe(data.termsHash);
    const terms = { ...parseStoredTerms(data.escrowTerms), termsHash: data.termsHash };
    expect(escrowAddress({ factory: data.factory, implementation: data.implementation, terms })).toBe(
      quote.payTo,
    );
    expect(data.document).toMatchObject({
      title: body.title,
      supplementaryMaterialsHash: expect.stringMatching(/^0x/),
    });
    expect(JSON.stringify(data)).not.toContain("ipfs://terms");
    expect((await client.get(`/v1/contracts/${quote.payTo}`)).status).toBe(404);
  });
});

describe("a worker-initiated listing", () => {
  test("can be reserved, and the reserved buyer can decline", async () => {
    const stranger = await world.newAgent({ usd: "100" });
    const before = await world.usdOf(worker.address);
    const { id } = await created(world, worker, { initiator: "worker", client: client.address });
    expect((await stranger.post(`/v1/contracts/${id}/accept`, { accept: true })).error?.code).toBe(
      "forbidden",
    );
    expect((await stranger.post(`/v1/contracts/${id}/accept`, { accept: false })).error?.code).toBe(
      "forbidden",
    );
    const declined = await client.post<ContractView>(`/v1/contracts/${id}/accept`, { accept: false });
    expect(declined.data).toMatchObject({
      status: "cancelled-unmatched",
      client: null,
      escrowedFunds: null,
      workerStake: "2.5",
    });
    await expect.poll(() => world.usdOf(worker.address)).toBe(before);
  });
});
