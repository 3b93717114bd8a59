/**
 * Drives random Working Contracts through random lifecycles on a real chain, beside a model that knows only
 * packages/protocol. Each step is one block. Its time is chosen so that deadlines are met a second before, exactly, and
 * a second after.
 */

import { factoryAbi, protocolTokenAbi, registryAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { depositsOf } from "@working-contracts/protocol/ledger";
import { effectiveOutcomes, STATUSES, votingClosesAt } from "@working-contracts/protocol/status";
import { escrowAddress, type Parameters, packTerms } from "@working-contracts/protocol/terms";
import { type Address, type EscrowTerms, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { type Chain, type PublicClient, parseAbi, parseEther, type Transport } from "viem";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { type Chance, createChance } from "../../support/random.js";
import { FROM_ALLOWANCE } from "../indexer-actors.js";
import { type Attempt, authorizePayment, createActs, randomWord } from "./acts.js";
import { bookedOf, clientOf, disputeOf, type Life, lifeStatus, openableUntil, workerOf } from "./model.js";
import { type Call, callOf, createStepper, type Receipt, type Stepper } from "./node.js";

const PARAMETER_SETS = 8;
/** The token's highest daily cap. Rewards of a day stay below it, so that each claim mints at once. */
const MAX_DAILY_CAP = parseEther("100000");
const DEADLINES = 10;
const SECONDS_BETWEEN_DEADLINES = 5_000;
const VISITED_DISPUTE_BOUNDARIES = 14;
const OBSERVED_AT_ONCE = 40;

export interface LifecycleOptions {
  seed: number;
  size: number;
  client: PublicClient<Transport, Chain>;
  deployment: Deployment;
  /** Owner of factory and protocol token. */
  owner: Address;
  harness: Address;
}

/** How much was compared. The test requires a minimum. */
export interface Counts {
  statuses: Record<string, number>;
  accepted: Record<string, number>;
}

/** Runs the whole comparison. Throws at the first difference, with the escrow, the action and the time. */
export async function runLifecycles(options: LifecycleOptions): Promise<Counts> {
  const random = createChance(options.seed);
  const chain = await createStepper(options.client);
  const parties = accounts(random, 6);
  const voters = accounts(random, 7);
  await prepare(options, chain, parties, voters);

  const start = chain.time() + 1_000;
  const lives = await createLives(options, chain, { random, parties, start });
  const acts = createActs({ deployment: options.deployment, random, voters });
  const counts: Counts = { statuses: {}, accepted: {} };

  const step = async (now: number) => {
    const acting = lives.filter((life) => random.hits(life.activity));
    await perform((await Promise.all(acting.map((life) => acts.random(life, now)))).flat(), now);
  };
  const perform = async (attempts: Attempt[], now: number) => {
    const receipts = await chain.mine(
      attempts.map((attempt) => attempt.call),
      now,
    );
    for (const [i, attempt] of attempts.entries()) judge(attempt, receipts[i] as Receipt, now, counts);
    await compare(options, lives, now, counts);
  };

  for (const now of deadlineVisits(start, random)) await step(now);
  for (let i = 0; i < VISITED_DISPUTE_BOUNDARIES; i++) {
    const ahead = lives.flatMap(disputeBoundaries).filter((boundary) => boundary - 1 > chain.time());
    if (ahead.length === 0) break;
    const boundary = ahead.sort((a, b) => a - b)[random.between(0, Math.min(20, ahead.length) - 1)] as number;
    await step(boundary - 1);
    await step(boundary);
  }

  // Long after: time and anyone's calls pay out every unit.
  const after = chain.time() + 60 * 86_400;
  const due = (attempts: Attempt[]) => attempts.filter((attempt) => attempt.allowed);
  await perform(due(lives.map((life) => acts.tally(life, after))), after);
  const held = after + 72 * 3_600;
  await perform(due(lives.map((life) => acts.settle(life, held))), held);
  await perform(due(lives.flatMap((life) => acts.claim(life, held + 1))), held + 1);
  await requireEmpty(options, lives);
  return counts;
}

function judge(attempt: Attempt, receipt: Receipt, now: number, counts: Counts): void {
  const succeeded = receipt.status === "0x1";
  if (succeeded !== attempt.allowed) {
    const [chain, model] = succeeded ? ["accepts", "refuses"] : ["refuses", "accepts"];
    throw new Error(
      `The chain ${chain} ${attempt.name}, but the model ${model} it: ${describe(attempt.life, now)}`,
    );
  }
  if (!succeeded) return;
  counts.accepted[attempt.name] = (counts.accepted[attempt.name] ?? 0) + 1;
  attempt.apply();
  if (attempt.events === undefined) return;
  const [actual, expected] = attempt.events(receipt.logs);
  requireSame(`events of ${attempt.name}`, actual, expected, attempt.life, now);
}

/** Compares status, parties, books and outcomes of every escrow at the newest block. */
async function compare(options: LifecycleOptions, lives: Life[], now: number, counts: Counts): Promise<void> {
  const groups: Life[][] = [];
  for (let i = 0; i < lives.length; i += OBSERVED_AT_ONCE) groups.push(lives.slice(i, i + OBSERVED_AT_ONCE));
  const answers = await Promise.all(
    groups.map((group) =>
      options.client.readContract({
        address: options.harness,
        abi: OBSERVE_ABI,
        functionName: "observe",
        args: [group.map((life) => life.id)],
      }),
    ),
  );
  for (const [g, [timestamp, observations]] of answers.entries()) {
    if (timestamp !== BigInt(now)) throw new Error(`Observed at ${timestamp}, not at ${now}`);
    for (const [i, observed] of observations.entries()) {
      const life = groups[g]?.[i] as Life;
      const status = lifeStatus(life, now);
      counts.statuses[status] = (counts.statuses[status] ?? 0) + 1;
      requireSame("status", STATUSES[observed.status - 1], status, life, now);
      requireSame("client", observed.client, clientOf(life)?.address ?? ZERO_ADDRESS, life, now);
      requireSame("worker", observed.worker, workerOf(life)?.address ?? ZERO_ADDRESS, life, now);
      requireSame("booked", observed.booked, bookedOf(life), life, now);
      requireSame("outcomes", observed.outcomes, effectiveOutcomes(life.facts, now), life, now);
    }
  }
}

async function requireEmpty({ client, deployment }: LifecycleOptions, lives: Life[]): Promise<void> {
  const token = { address: deployment.asset.address, abi: testUsdAbi, functionName: "balanceOf" } as const;
  const balances = await Promise.all(lives.map(({ id }) => client.readContract({ ...token, args: [id] })));
  const stuck = balances.findIndex((balance) => balance !== 0n);
  if (stuck !== -1) throw new Error(`${balances[stuck]} units were never paid out of ${lives[stuck]?.id}`);
}

/** Funds every account, and stakes for the voters. */
async function prepare(
  { deployment, owner }: LifecycleOptions,
  chain: Stepper,
  parties: PrivateKeyAccount[],
  voters: PrivateKeyAccount[],
): Promise<void> {
  const stake = parseEther("10000");
  const usd = { address: deployment.asset.address, abi: testUsdAbi };
  const token = { address: deployment.protocolToken, abi: protocolTokenAbi };
  const registry = { address: deployment.registry, abi: registryAbi };
  await mineAll(chain, [
    ...[...parties, ...voters].map(({ address }) => callOf(owner, usd, "mint", [address, 10n ** 26n])),
    ...voters.map(({ address }) => callOf(owner, token, "grant", [address, stake])),
    callOf(owner, token, "setDailyCap", [MAX_DAILY_CAP]),
  ]);
  const stakes = voters.flatMap(({ address }) => [
    callOf(address, token, "approve", [registry.address, stake]),
    callOf(address, registry, "stake", [address, stake, FROM_ALLOWANCE]),
  ]);
  await mineAll(chain, stakes);
}

const factoryOf = ({ factory }: Deployment) => ({ address: factory, abi: factoryAbi });

async function createLives(
  options: LifecycleOptions,
  chain: Stepper,
  { random, parties, start }: { random: Chance; parties: PrivateKeyAccount[]; start: number },
): Promise<Life[]> {
  const { deployment, owner, size } = options;
  const lives: Life[] = [];
  for (let set = 0; set < PARAMETER_SETS; set++) {
    const parameters = randomParameters(random, set);
    await mineAll(chain, [callOf(owner, factoryOf(deployment), "setParameters", [parameters])]);
    const group = Array.from({ length: Math.ceil(size / PARAMETER_SETS) }, () =>
      randomLife(deployment, { random, parties, start, parameters }),
    );
    await mineAll(chain, await Promise.all(group.map((life) => creation(deployment, life, random))));
    lives.push(...group);
  }
  return lives;
}

async function creation(deployment: Deployment, life: Life, random: Chance): Promise<Call> {
  const value = depositsOf(life.terms).initiator;
  const fields = { to: life.id, value, nonce: randomWord(random) };
  const deposit = await authorizePayment(deployment, life.initiator, fields);
  return callOf(life.initiator.address, factoryOf(deployment), "create", [packTerms(life.terms), deposit]);
}

function randomLife(
  deployment: Deployment,
  choices: { random: Chance; parties: PrivateKeyAccount[]; start: number; parameters: Parameters },
): Life {
  const { random, parties, start, parameters } = choices;
  const initiator = random.pick(parties);
  const counterparty = random.pick(parties.filter((party) => party !== initiator));
  const [match = 1, withdrawal = 1, delivery = 1] = [1, 2, 3]
    .map(() => random.between(1, DEADLINES - 1))
    .sort((a, b) => a - b);
  const review = random.between(delivery + 1, DEADLINES);
  const at = (position: number) => start + position * SECONDS_BETWEEN_DEADLINES;
  const terms: EscrowTerms = {
    initiator: initiator.address.toLowerCase() as Address,
    price: randomPrice(random),
    counterparty: random.hits(0.5) ? ZERO_ADDRESS : (counterparty.address.toLowerCase() as Address),
    criteriaCount: random.between(1, random.pick([3, 10])),
    workerInitiated: random.hits(0.4),
    computedCriteria: random.hits(0.4),
    matchDeadline: at(match),
    withdrawalDeadline: at(withdrawal),
    deliveryDeadline: at(delivery),
    reviewDeadline: at(review),
    termsHash: randomWord(random),
    parameters,
  };
  return {
    id: escrowAddress({ factory: deployment.factory, implementation: deployment.implementation, terms }),
    terms,
    initiator,
    counterparty,
    activity: random.pick([0.1, 0.45, 0.75]),
    matched: false,
    facts: { ...terms, phase: "created", settled: false, outcomes: 0, endedAt: null, juryLeftover: 0n },
    disputedAt: null,
    ballots: [],
  };
}

/** From one unit, at which shares round to zero, to a million dollars. */
function randomPrice(random: Chance): bigint {
  return BigInt(random.between(1, 10 ** random.between(1, 9))) * (random.hits(0.3) ? 1_001n : 1n);
}

/** A quarter of the sets limit the seats, a third hold payouts. */
function randomParameters(random: Chance, set: number): Parameters {
  const ratio = () => random.pick([0, 500, 3_333, 10_000, random.between(0, 10_000)]);
  return {
    protocolFee: random.between(0, 2_000),
    workerStakeRatio: ratio(),
    disputeBondRatio: ratio(),
    backupAgentBondRatio: ratio(),
    earlyWithdrawalSlashRatio: ratio(),
    absentNoneMetClientShare: ratio(),
    baUnclearSlashRatio: ratio(),
    tokenMintRewardFull: random.between(0, 39),
    tokenMintRewardReduced: random.between(0, 39),
    baEligibilityStake: random.between(1_000, 10_000),
    baVotingWindow: random.between(3_600, 43_599),
    baRecruitCount: set % 4 === 3 ? random.between(1, 4) : 0,
    payoutHold: set % 3 === 2 ? random.between(0, 39_999) : 0,
  };
}

/** A second before, at and after each deadline, and some times in between. */
function deadlineVisits(start: number, random: Chance): number[] {
  return Array.from({ length: DEADLINES }, (_, i) => {
    const deadline = start + (i + 1) * SECONDS_BETWEEN_DEADLINES;
    const between = deadline - random.between(2, SECONDS_BETWEEN_DEADLINES - 9);
    return [between, deadline - 1, deadline, deadline + 1];
  }).flat();
}

function disputeBoundaries(life: Life): number[] {
  return life.facts.phase === "disputed" ? [votingClosesAt(disputeOf(life)), openableUntil(life)] : [];
}

function accounts(random: Chance, count: number): PrivateKeyAccount[] {
  return Array.from({ length: count }, () => privateKeyToAccount(randomWord(random)));
}

async function mineAll(chain: Stepper, calls: Call[]): Promise<void> {
  const receipts = await chain.mine(calls, chain.time() + 1);
  const failed = receipts.findIndex((receipt) => receipt.status !== "0x1");
  if (failed !== -1) throw new Error(`Preparing call ${failed} of ${calls.length} reverted`);
}

function requireSame(what: string, actual: unknown, expected: unknown, life: Life, now: number): void {
  if (text(actual) === text(expected)) return;
  throw new Error(`${what} is ${text(actual)}, but the model says ${text(expected)}: ${describe(life, now)}`);
}

function describe(life: Life, now: number): string {
  const { initiator: _, counterparty: __, ballots, ...rest } = life;
  const votes = ballots.map(({ votes, opened, claimed }) => ({ votes, opened, claimed }));
  return `at ${now}, ${text({ ...rest, ballots: votes })}`;
}

function text(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? part.toString() : part)) ?? "nothing";
}

const OBSERVE_ABI = parseAbi([
  "function observe(address[] escrows) view returns (uint256 timestamp, Observation[] observations)",
  "struct Observation { uint8 status; address client; address worker; uint256 booked; uint24 outcomes; }",
]);
