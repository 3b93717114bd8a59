/** Contracts before they are matched: their terms and reserved listings. */

import { escrowAddress, termsHash } from "@working-contracts/protocol/terms";
import { describe, expect, test } from "vitest";
import { parseStoredTerms } from "../../src/db/onchain.js";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { created, draft, newPair } from "../support/contracts.js";
import { quoteOf } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { client, worker } = await newPair(world);

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
