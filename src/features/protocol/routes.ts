/** Global parameters and limits. */
import { z } from "@hono/zod-openapi";
import { factoryAbi } from "@working-contracts/protocol/abi";
import { formatDecimal, MAX_PRICE } from "@working-contracts/protocol/amounts";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { REWARD_PER_FEE } from "@working-contracts/protocol/ledger";
import { LIMITS } from "@working-contracts/protocol/limits";
import { MAX_SIGNATURE_VALIDITY } from "@working-contracts/protocol/signatures";
import type { Parameters } from "@working-contracts/protocol/terms";
import { isoDuration } from "@working-contracts/protocol/time";
import type { PublicClient } from "viem";
import type { Config } from "../../config.js";
import { data, operation } from "../../http/operation.js";

/** Spares the node; short compared with the day for which the factory still accepts former parameters. */
const FRESH_FOR_MS = 5_000;

export type ParameterReader = () => Promise<Parameters>;

/**
 * Reads the parameters of future Working Contracts from the factory, at most once every few seconds; concurrent
 * callers share one read. Rejects if the node does not respond; the next call retries.
 */
export function createParameterReader(
  { publicClient, deployment }: { publicClient: Pick<PublicClient, "readContract">; deployment: Deployment },
  { freshForMs = FRESH_FOR_MS, now = () => performance.now() } = {},
): ParameterReader {
  let latest: { value: Promise<Parameters>; readAt: number } | undefined;
  return () => {
    if (latest === undefined || now() - latest.readAt >= freshForMs) {
      const value = publicClient.readContract({
        address: deployment.factory,
        abi: factoryAbi,
        functionName: "parameters",
      });
      const reading = { value, readAt: now() };
      latest = reading;
      value.catch(() => {
        if (latest === reading) latest = undefined;
      });
    }
    return latest.value;
  };
}

const ratio = z.number().min(0).max(1);

export const ProtocolSchema = z
  .object({
    protocolFee: ratio,
    workerStakeRatio: ratio,
    disputeBondRatio: ratio,
    backupAgentBondRatio: ratio,
    earlyWithdrawalSlashRatio: ratio,
    absentNoneMetClientShare: ratio,
    baUnclearSlashRatio: ratio,
    tokenMintRewardFull: z.number(),
    tokenMintRewardReduced: z.number(),
    baEligibilityStake: z.number(),
    baVotingWindow: z.string().openapi({ example: "PT24H" }),
    baRecruitCount: z.number().nullable(),
  })
  .openapi("ProtocolParameters");

const duration = z.string().openapi({ example: "PT5M", description: "ISO 8601 duration" });
const rate = z.number().nullable().openapi({ description: "Requests per minute; null means unlimited" });

const allowance = z.number().nullable().openapi({
  description: "Relayed in a day for one address beyond what it earned; null means unlimited",
});

export const LimitsSchema = z
  .object({
    requests: z.object({
      bodyBytes: z.number(),
      bodyDepth: z.number(),
      urlLength: z.number(),
      searchLength: z.number(),
      downloadsPerClient: z
        .number()
        .openapi({ description: "Whole lists that one IP address can receive at a time" }),
      readsPerMinute: rate,
      writesPerMinute: rate,
      anonymousPerMinute: rate,
      challengesPerMinute: rate,
      pagesPerMinute: rate,
      pageSize: z.number(),
      maxPageSize: z.number(),
    }),
    authentication: z.object({
      challengeValidity: duration,
      challengeAttempts: z.number(),
      labelLength: z.number(),
      signatureLength: z.number(),
    }),
    signedActions: z.object({ validity: duration }),
    payments: z.object({ headerLength: z.number(), signatureBytes: z.number() }),
    gas: z.object({
      allowance,
      budget: allowance.openapi({
        description: "Relayed in an hour for all addresses beyond what they earned; null means unlimited",
      }),
      perFee: z.number().openapi({ description: "Earned by 1.0 that a contract pays to the Treasury" }),
    }),
    contracts: z.object({
      idempotencyKeyLength: z.number(),
      pendingAttempts: z.number(),
      pendingAttemptLifetime: duration,
      paymentTimeout: duration,
      minimumPrice: z.string(),
      maximumPrice: z.string(),
      titleLength: z.number(),
      taskDescriptionLength: z.number(),
      acceptanceCriteria: z.number(),
      criterionLength: z.number(),
      referenceLength: z.number(),
      shareLength: z.number(),
      applicationTermsBytes: z.number(),
      reviewDeadlineHorizon: duration,
      payoutHold: duration,
      maxPayoutHold: duration,
    }),
    checkpoints: z.object({
      bytesPerContract: z.number(),
      bytesPerDay: z.number().openapi({
        description: "For each day since the match, and as much again for each 1.00 of the price",
      }),
      pageBytes: z.number(),
      dataBytes: z.number(),
      stringLength: z.number(),
      clockSkew: duration,
    }),
    complaints: z.object({ window: duration, perRole: z.number(), evidenceBytes: z.number() }),
    votes: z.object({
      votersPerContract: z.number(),
      openingWindow: duration,
      unstakingDelay: duration,
      rewardsPerFee: z.number().openapi({
        description: "Protocol tokens minted at most by a dispute for each 1.0 that it pays to the Treasury",
      }),
    }),
    events: z.object({
      deadlineNotice: duration,
      streamsPerAgent: z.number(),
      streamHeartbeat: duration,
      streamLifetime: duration,
      streamStall: duration,
      webhooksPerAgent: z.number(),
      webhookUrlLength: z.number(),
      webhookDescriptionLength: z.number(),
    }),
    profiles: z.object({ displayNameLength: z.number(), bioLength: z.number(), versionsPerDay: z.number() }),
  })
  .openapi("Limits");

/** The parameters as `GET /v1/protocol` shows them (specification, "Protocol parameters"). */
export type ProtocolView = z.infer<typeof ProtocolSchema>;

/** Basis points as fractions, the window as an ISO 8601 duration; `payoutHold` is served with the limits. */
export function presentParameters({ payoutHold: _, ...parameters }: Parameters): ProtocolView {
  return {
    ...parameters,
    protocolFee: fraction(parameters.protocolFee),
    workerStakeRatio: fraction(parameters.workerStakeRatio),
    disputeBondRatio: fraction(parameters.disputeBondRatio),
    backupAgentBondRatio: fraction(parameters.backupAgentBondRatio),
    earlyWithdrawalSlashRatio: fraction(parameters.earlyWithdrawalSlashRatio),
    absentNoneMetClientShare: fraction(parameters.absentNoneMetClientShare),
    baUnclearSlashRatio: fraction(parameters.baUnclearSlashRatio),
    baVotingWindow: isoDuration(parameters.baVotingWindow),
    baRecruitCount: parameters.baRecruitCount === 0 ? null : parameters.baRecruitCount,
  };
}

/** One division of two integers: the nearest double, which JSON prints as the short decimal. */
const fraction = (basisPoints: number): number => basisPoints / 10_000;

/**
 * All limits and windows that `GET /v1/protocol` does not serve: lengths in characters, sizes in bytes, windows as
 * ISO 8601 durations, rates in requests per minute and gas (null if switched off).
 */
export function presentLimits(
  { minimumPrice, rateLimits, gasLimits }: Pick<Config, "minimumPrice" | "rateLimits" | "gasLimits">,
  { payoutHold }: Pick<Parameters, "payoutHold">,
) {
  return {
    requests: {
      bodyBytes: LIMITS.bodyBytes,
      bodyDepth: LIMITS.bodyDepth,
      urlLength: LIMITS.urlLength,
      searchLength: LIMITS.searchLength,
      downloadsPerClient: LIMITS.downloadsPerClient,
      readsPerMinute: rateOf(rateLimits.reads),
      writesPerMinute: rateOf(rateLimits.writes),
      anonymousPerMinute: rateOf(rateLimits.anonymous),
      challengesPerMinute: rateOf(rateLimits.challenges),
      pagesPerMinute: rateOf(rateLimits.pages),
      pageSize: LIMITS.pageSize,
      maxPageSize: LIMITS.maxPageSize,
    },
    authentication: {
      challengeValidity: isoDuration(LIMITS.challengeValidity),
      challengeAttempts: LIMITS.challengeAttempts,
      labelLength: LIMITS.labelLength,
      signatureLength: LIMITS.signatureLength,
    },
    signedActions: { validity: isoDuration(MAX_SIGNATURE_VALIDITY) },
    payments: { headerLength: LIMITS.paymentHeaderLength, signatureBytes: LIMITS.paymentSignatureBytes },
    gas: {
      allowance: gasLimits.allowance || null,
      budget: gasLimits.budget || null,
      perFee: gasLimits.perFee,
    },
    contracts: {
      idempotencyKeyLength: LIMITS.idempotencyKeyLength,
      pendingAttempts: LIMITS.pendingAttempts,
      pendingAttemptLifetime: isoDuration(LIMITS.pendingAttemptLifetime),
      paymentTimeout: isoDuration(LIMITS.paymentTimeout),
      minimumPrice: formatDecimal(minimumPrice),
      maximumPrice: formatDecimal(MAX_PRICE),
      titleLength: LIMITS.titleLength,
      taskDescriptionLength: LIMITS.taskDescriptionLength,
      acceptanceCriteria: LIMITS.acceptanceCriteria,
      criterionLength: LIMITS.criterionLength,
      referenceLength: LIMITS.referenceLength,
      shareLength: LIMITS.shareLength,
      applicationTermsBytes: LIMITS.applicationTermsBytes,
      reviewDeadlineHorizon: isoDuration(LIMITS.reviewDeadlineHorizon),
      payoutHold: isoDuration(payoutHold),
      maxPayoutHold: isoDuration(LIMITS.maxPayoutHold),
    },
    checkpoints: {
      dataBytes: LIMITS.checkpointDataBytes,
      bytesPerContract: LIMITS.checkpointBytesPerContract,
      bytesPerDay: LIMITS.checkpointBytesPerDay,
      pageBytes: LIMITS.checkpointPageBytes,
      stringLength: LIMITS.checkpointStringLength,
      clockSkew: isoDuration(LIMITS.checkpointClockSkew),
    },
    complaints: {
      window: isoDuration(LIMITS.complaintWindow),
      perRole: LIMITS.complaintsPerRole,
      evidenceBytes: LIMITS.evidenceBytes,
    },
    votes: {
      votersPerContract: LIMITS.votersPerContract,
      openingWindow: isoDuration(LIMITS.voteOpeningWindow),
      unstakingDelay: isoDuration(LIMITS.unstakingDelay),
      rewardsPerFee: Number(REWARD_PER_FEE),
    },
    events: {
      deadlineNotice: isoDuration(LIMITS.deadlineNotice),
      streamsPerAgent: LIMITS.streamsPerAgent,
      streamHeartbeat: isoDuration(LIMITS.streamHeartbeat),
      streamLifetime: isoDuration(LIMITS.streamLifetime),
      streamStall: isoDuration(LIMITS.streamStall),
      webhooksPerAgent: LIMITS.webhooksPerAgent,
      webhookUrlLength: LIMITS.webhookUrlLength,
      webhookDescriptionLength: LIMITS.webhookDescriptionLength,
    },
    profiles: {
      displayNameLength: LIMITS.displayNameLength,
      bioLength: LIMITS.bioLength,
      versionsPerDay: LIMITS.profileVersionsPerDay,
    },
  };
}

export type LimitsView = ReturnType<typeof presentLimits>;

const rateOf = (limit: number): number | null => (limit === 0 ? null : limit);

const tag = "Protocol";

export const protocolOperations = [
  operation({
    method: "get",
    path: "/v1/protocol",
    operationId: "getProtocol",
    tag,
    summary: "Read the global protocol parameters",
    auth: "none",
    returns: data("Parameters of future Working Contracts", ProtocolSchema),
    handle: async (deps) => presentParameters(await deps.readParameters()),
  }),
  operation({
    method: "get",
    path: "/v1/limits",
    operationId: "getLimits",
    tag,
    summary: "Read every limit and window that is not a protocol parameter",
    auth: "none",
    returns: data("Limits", LimitsSchema),
    handle: async (deps) => presentLimits(deps.config, await deps.readParameters()),
  }),
];
