/**
 * Compares packages/protocol with the compiled contracts on a real chain: numbers, bytes, addresses and statuses are
 * the same.
 */
import { readFileSync } from "node:fs";
import { delegationAbi, escrowAbi, factoryAbi } from "@working-contracts/protocol/abi";
import { share } from "@working-contracts/protocol/amounts";
import type { Deployment } from "@working-contracts/protocol/deployment";
import {
  absentLegs,
  disputeBond,
  majority,
  payoutOf,
  pot,
  released,
  resolve,
  voteBond,
  withdrawnLegs,
  workerStake,
} from "@working-contracts/protocol/ledger";
import { ALL_ACTIONS, challengeText } from "@working-contracts/protocol/signatures";
import { escrowAddress, packTerms, unpackTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import fc from "fast-check";
import type { Abi, Chain, PublicClient, Transport } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LOCAL_CHAIN_ID } from "../../tools/local/chain.js";
import { localClients } from "../support/test-chain.js";
import {
  hexArbitrary,
  parametersArbitrary,
  priceArbitrary,
  termsArbitrary,
} from "../unit/protocol/fixtures.js";
import { runLifecycles } from "./protocol-differential/lifecycles.js";
import { startAnvil } from "./protocol-differential/node.js";

/** `npm run test:nightly` compares more. */
const SCALE = Number(process.env.DIFFERENTIAL_SCALE ?? 1);
const RUNS = 60 * SCALE;
const LIVES = 120 * SCALE;
const HARNESS = new URL("../../out/SettlementHarness.sol/SettlementHarness.json", import.meta.url);
const SECONDS_IN_2100 = 4_102_444_800;

let stopAnvil: (() => Promise<void>) | undefined;
let client: PublicClient<Transport, Chain>;
let deployment: Deployment;
let harness: Address;
let harnessAbi: Abi;
let owner: Address;

beforeAll(async () => {
  const anvil = await startAnvil();
  stopAnvil = anvil.stop;
  const node = localClients({ rpcUrl: anvil.url, chainId: LOCAL_CHAIN_ID });
  client = node.publicClient;
  owner = node.wallet(0).account.address;
  deployment = await node.deployProtocol({ treasury: "0x7ea5000000000000000000000000000000000001" });
  harness = await node.deployCompiled("SettlementHarness");
  harnessAbi = JSON.parse(readFileSync(HARNESS, "utf8")).abi;
});

afterAll(() => stopAnvil?.());

/** Result of a library function, through the test harness. */
function library(functionName: string, args: readonly unknown[]): Promise<unknown> {
  return client.readContract({ address: harness, abi: harnessAbi, functionName, args });
}

const lowerCased = (terms: EscrowTerms): EscrowTerms => ({
  ...terms,
  initiator: terms.initiator.toLowerCase() as Address,
  counterparty: terms.counterparty.toLowerCase() as Address,
});

describe("terms", () => {
  it("packTerms and unpackTerms match TermsCodec", async () => {
    await fc.assert(
      fc.asyncProperty(termsArbitrary, async (terms) => {
        const [packed, unpacked] = await Promise.all([
          library("pack", [terms]),
          library("unpack", [packTerms(terms)]),
        ]);
        expect(packTerms(terms)).toBe(packed);
        expect(lowerCased(unpacked as EscrowTerms)).toEqual(terms);
        expect(unpackTerms(packed as Hex)).toEqual(terms);
      }),
      { numRuns: RUNS },
    );
  });
});

describe("texts and hashes", () => {
  const time = fc.integer({ min: 0, max: SECONDS_IN_2100 });

  it.each([
    ["from 1970 to 2100", time],
    ["around year boundaries, leap days included", turnsOfDays()],
    ["anywhere in uint40", fc.integer({ min: 0, max: 2 ** 40 - 1 })],
  ])("challengeText is the text that AgentDelegation rebuilds: times %s", async (_, times) => {
    const cases = fc.record({
      agent: hexArbitrary(20),
      operator: hexArbitrary(20),
      actions: fc.oneof(fc.constant(ALL_ACTIONS), fc.integer({ min: 0, max: ALL_ACTIONS })),
      until: fc.oneof(fc.constant(0), times),
      nonce: hexArbitrary(32),
      issuedAt: times,
      expiresAt: times,
    });
    await fc.assert(
      fc.asyncProperty(cases, async (delegation) => {
        const rebuilt = await client.readContract({
          address: deployment.delegation,
          abi: delegationAbi,
          functionName: "challengeText",
          args: [delegation],
        });
        const { domain, factory, chainId } = deployment;
        expect(challengeText({ domain, factory, chainId, ...delegation })).toBe(rebuilt);
      }),
      { numRuns: RUNS },
    );
  });

  /** First and last seconds of February and of years, where calendar code fails. */
  function turnsOfDays(): fc.Arbitrary<number> {
    return fc
      .record({
        year: fc.integer({ min: 1970, max: 2100 }),
        month: fc.constantFrom(0, 1, 2, 11),
        offset: fc.constantFrom(-1, 0, 1),
      })
      .map(({ year, month, offset }) => Math.max(0, Date.UTC(year, month, 1) / 1000 + offset));
  }
});

describe("ledger", () => {
  const count = fc.integer({ min: 0, max: 10 });
  const tallies = fc
    .record({ met: count, notMet: count, unclear: count })
    .filter(({ met, notMet, unclear }) => met + notMet + unclear > 0);
  const voters = fc.integer({ min: 0, max: 40 });
  const criterionVotes = fc.record({ met: voters, notMet: voters, unclear: voters, unopened: voters });
  const onChain = (tally: { met: number; notMet: number; unclear: number; unopened?: number }) =>
    Object.fromEntries(Object.entries(tally).map(([name, value]) => [name, BigInt(value)]));

  it("resolve, released, absent and withdrawn pay the same as Settlement.sol", async () => {
    const cases = fc.tuple(priceArbitrary, tallies, fc.boolean(), parametersArbitrary);
    await fc.assert(
      fc.asyncProperty(cases, async ([price, tally, disputed, parameters]) => {
        const stake = workerStake(price, parameters);
        const bond = disputed ? disputeBond(price, parameters) : 0n;
        expect(
          await Promise.all([
            library("released", [price, onChain(tally)]),
            library("resolve", [price, stake, bond, onChain(tally), parameters]),
            library("absent", [price, stake, parameters]),
            library("withdrawn", [price, stake, parameters]),
          ]),
        ).toEqual([
          released(price, tally),
          resolve({ price, tally, disputed, parameters }),
          payoutOf(absentLegs(price, parameters)),
          payoutOf(withdrawnLegs(price, parameters)),
        ]);
      }),
      { numRuns: RUNS },
    );
  });

  it("majority and pot match Settlement.sol", async () => {
    await fc.assert(
      fc.asyncProperty(
        criterionVotes,
        priceArbitrary,
        parametersArbitrary,
        async (votes, price, parameters) => {
          const bond = voteBond(price, parameters);
          const unclearSlash = share(bond, parameters.baUnclearSlashRatio);
          const expected = pot(votes, bond, unclearSlash);
          const outcome = majority(votes);
          const [decided, slashed] = await Promise.all([
            library("majority", [onChain(votes)]),
            library("pot", [onChain(votes), bond, unclearSlash]),
          ]);
          expect(decided).toEqual([outcome !== "unclear", outcome === "met"]);
          expect(slashed).toEqual([expected.pot, BigInt(expected.winners)]);
        },
      ),
      { numRuns: RUNS },
    );
  });
});

describe("random lifecycles of real escrows", () => {
  // By chance so few lives would not always reach every status.
  const seed = SCALE === 1 ? 1 : Math.floor(Math.random() * 2 ** 32);

  it(`agree in status, parties, books, outcomes and payouts at every step (seed ${seed})`, async () => {
    const counts = await runLifecycles({
      seed,
      size: LIVES,
      client,
      deployment,
      owner,
      harness,
    });

    expect(Object.keys(counts.statuses)).toHaveLength(12);
    expect(counts.accepted.openVote, "vote commitments opened on chain").toBeGreaterThanOrEqual(75 * SCALE);
    expect(counts.accepted.settle, "payouts compared").toBe(LIVES);
    expect(counts.accepted.claim, "jury dues compared").toBeGreaterThanOrEqual(55 * SCALE);
  }, 600_000);

  it("terms() reads back what was packed", async () => {
    const deployed = await client.getContractEvents({
      address: deployment.factory,
      abi: factoryAbi,
      eventName: "WorkingContractDeployed",
      fromBlock: 0n,
    });
    expect(deployed.length).toBeGreaterThanOrEqual(75 * SCALE);
    const checks = deployed.map(async ({ args }) => {
      const address = args.escrow as Address;
      const terms = await client.readContract({ address, abi: escrowAbi, functionName: "terms" });
      expect(packTerms(terms)).toBe(args.packedTerms);
      expect(escrowAddress({ ...deployment, terms })).toBe(address.toLowerCase());
    });
    await Promise.all(checks);
  }, 300_000);
});
