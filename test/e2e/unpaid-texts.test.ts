/** Texts that no one paid for are dropped, and money that arrives for them late still ends well. */
import type { Hex } from "viem";
import { expect, it } from "vitest";
import type { TermsView } from "../../src/features/contracts/get-terms.js";
import type { ContractView } from "../../src/features/contracts/view.js";
import { purgeAll } from "../../src/keeper/purge.js";
import type { Agent } from "../support/agent.js";
import { frontRun, openFromBalance } from "../support/chain.js";
import { draft, HOUR, ok } from "../support/contracts.js";
import { authorize, type Quote, quoteOf, version2 } from "../support/payment.js";
import { useWorld } from "../support/world.js";

const SECRET = "a text that belongs to no contract";
const world = await useWorld();

/** A quote whose 30 minutes have passed, and its terms as the caller read them. */
async function expiredAttempt(client: Agent): Promise<{ body: string; quote: Quote; terms: TermsView }> {
  const body = JSON.stringify(
    await draft(world, { taskDescription: SECRET, supplementaryMaterials: "ipfs://materials" }),
  );
  const quote = quoteOf(await client.post("/v1/contracts", body));
  const terms = ok(await client.get<TermsView>(`/v1/contracts/${quote.payTo}/terms`));
  await world.query("update app.terms set first_quoted_at = now() - interval '41 minutes' where id = $1", [
    quote.payTo,
  ]);
  while (await purgeAll(world.db)) {}
  return { body, quote, terms };
}

const rowsOf = async (id: Hex): Promise<number> => {
  const [row] = await world.query<{ n: number }>(
    `select (select count(*) from app.terms where id = $1)::int
      + (select count(*) from app.reference_key where contract_id = $1)::int as n`,
    [id],
  );
  return row?.n ?? -1;
};

it("drops the texts of an attempt, whose bytes still lead to the same address", async () => {
  const client = await world.newAgent({ usd: "100" });
  const { body, quote } = await expiredAttempt(client);
  expect(await rowsOf(quote.payTo)).toBe(0);
  expect((await client.get(`/v1/contracts/${quote.payTo}/terms`)).status).toBe(404);
  const [kept] = await world.query("select * from app.expired_attempt where id = $1", [quote.payTo]);
  expect(JSON.stringify(kept).length).toBeLessThan(1500);
  expect(JSON.stringify(kept)).not.toContain(SECRET);

  await world.query("update app.expired_attempt set expired_at = now() - interval '31 days'");
  while (await purgeAll(world.db)) {}
  expect(await world.query("select 1 from app.expired_attempt where id = $1", [quote.payTo])).toEqual([]);
  expect(quoteOf(await client.post("/v1/contracts", body)).payTo).toBe(quote.payTo);
  expect(await rowsOf(quote.payTo)).toBe(2);
});

it("takes a late payment, and shows the texts that came with it", async () => {
  const client = await world.newAgent({ usd: "100" });
  const { body, quote } = await expiredAttempt(client);
  const payment = version2(quote, await authorize(client, quote, world));
  const contract = ok(await client.post<ContractView>("/v1/contracts", body, payment));
  expect(contract).toMatchObject({ id: quote.payTo, status: "created", taskDescription: SECRET });
  await world.query("update app.terms set first_quoted_at = now() - interval '41 minutes' where id = $1", [
    quote.payTo,
  ]);
  await purgeAll(world.db);
  expect(await rowsOf(quote.payTo)).toBe(2);
});

it("credits money that a stranger moved to the escrow after the texts were dropped, and opened it with", async () => {
  const [client, stranger] = await Promise.all([world.newAgent({ usd: "100" }), world.newAgent()]);
  const { body, quote, terms } = await expiredAttempt(client);
  const payment = await authorize(client, quote, world);
  await frontRun(world, stranger, payment);
  await openFromBalance(world, stranger, terms);
  expect((await client.get(`/v1/contracts/${quote.payTo}`)).status).toBe(404);

  const contract = ok(await client.post<ContractView>("/v1/contracts", body, version2(quote, payment)));
  expect(contract).toMatchObject({ id: quote.payTo, status: "created", taskDescription: SECRET });
  expect((await client.post(`/v1/contracts/${quote.payTo}/cancel`)).status).toBe(200);
  await expect.poll(() => world.usdOf(client.address)).toBe(100_000_000n);
});

it("returns money that came after the match deadline, too, and then shows the contract", async () => {
  const [client, stranger] = await Promise.all([world.newAgent({ usd: "100" }), world.newAgent()]);
  const { body, quote } = await expiredAttempt(client);
  const payment = await authorize(client, quote, world);
  await frontRun(world, stranger, payment);
  await world.increaseTime(HOUR);

  const refused = await client.post("/v1/contracts", body, version2(quote, payment));
  expect([refused.status, JSON.stringify(refused.body)]).toEqual([
    409,
    expect.stringContaining("being refunded"),
  ]);
  await expect.poll(() => world.usdOf(client.address)).toBe(100_000_000n);
  const contract = ok(await client.get<ContractView>(`/v1/contracts/${quote.payTo}`));
  expect(contract).toMatchObject({ status: "cancelled-unmatched", taskDescription: SECRET });
  // As if the process had ended between the operation and the texts.
  await world.query("delete from app.terms where id = $1", [quote.payTo.toLowerCase()]);
  const repeated = ok(await client.post<ContractView>("/v1/contracts", body, version2(quote, payment)));
  // The reference is sealed again.
  const { supplementaryMaterials: _, ...shown } = contract;
  expect(repeated).toMatchObject(shown);
});

it("refunds an escrow that a stranger opened after its texts were dropped, even if no one asks for it", async () => {
  const [client, stranger] = await Promise.all([world.newAgent({ usd: "100" }), world.newAgent()]);
  const { quote, terms } = await expiredAttempt(client);
  await frontRun(world, stranger, await authorize(client, quote, world));
  await openFromBalance(world, stranger, terms);
  await world.query("update app.expired_attempt set expired_at = now() - interval '31 days'");
  while (await purgeAll(world.db)) {}
  await world.increaseTime(HOUR);
  await expect.poll(() => world.usdOf(client.address)).toBe(100_000_000n);
});
