import { OUTCOMES, type Outcome } from "@working-contracts/protocol/outcomes";
import { eachParameter, PARAMETER_WIDTHS, type Parameters } from "@working-contracts/protocol/terms";
import type { EscrowTerms, Hex } from "@working-contracts/protocol/types";
import fc from "fast-check";
import { zeroAddress } from "viem";

const ratio = fc.integer({ min: 0, max: 10_000 });
const uint16 = fc.integer({ min: 0, max: 0xffff });

/** Parameters within the factory's bounds. */
export const parametersArbitrary: fc.Arbitrary<Parameters> = fc.record({
  protocolFee: fc.integer({ min: 0, max: 2000 }),
  workerStakeRatio: ratio,
  disputeBondRatio: ratio,
  backupAgentBondRatio: ratio,
  earlyWithdrawalSlashRatio: ratio,
  absentNoneMetClientShare: ratio,
  baUnclearSlashRatio: ratio,
  tokenMintRewardFull: uint16,
  tokenMintRewardReduced: uint16,
  baEligibilityStake: fc.integer({ min: 1000, max: 0xffff_ffff }),
  baVotingWindow: fc.integer({ min: 3600, max: 7 * 86_400 }),
  baRecruitCount: fc.integer({ min: 0, max: 31 }),
  payoutHold: fc.integer({ min: 0, max: 72 * 3600 }),
});

/** From one base unit to amounts far beyond any real price. */
export const priceArbitrary: fc.Arbitrary<bigint> = fc.oneof(
  fc.bigInt({ min: 1n, max: 1_000n }),
  fc.bigInt({ min: 10_000n, max: 10n ** 12n }),
  fc.bigInt({ min: 1n, max: 10n ** 24n }),
);

export const outcomeArbitrary: fc.Arbitrary<Outcome> = fc.constantFrom(...OUTCOMES);

export function hexArbitrary(size: number): fc.Arbitrary<Hex> {
  return fc
    .uint8Array({ minLength: size, maxLength: size })
    .map((bytes): Hex => `0x${Buffer.from(bytes).toString("hex")}`);
}

const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });

/** Any terms that fit the packed layout, valid or not. */
export const termsArbitrary: fc.Arbitrary<EscrowTerms> = fc.record({
  initiator: hexArbitrary(20),
  price: fc.bigInt({ min: 0n, max: 2n ** 80n - 1n }),
  counterparty: fc.oneof(hexArbitrary(20), fc.constant(zeroAddress)),
  criteriaCount: fc.integer({ min: 0, max: 255 }),
  workerInitiated: fc.boolean(),
  computedCriteria: fc.boolean(),
  matchDeadline: uint32,
  withdrawalDeadline: uint32,
  deliveryDeadline: uint32,
  reviewDeadline: uint32,
  termsHash: hexArbitrary(32),
  parameters: fc.record(
    eachParameter((name) => fc.integer({ min: 0, max: 2 ** (8 * PARAMETER_WIDTHS[name]) - 1 })),
  ),
});
