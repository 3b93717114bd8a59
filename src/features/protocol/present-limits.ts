import { formatDecimal, parseDecimal } from "@working-contracts/protocol/amounts";
import { LIMITS } from "@working-contracts/protocol/limits";
import { isoDuration, type Parameters } from "@working-contracts/protocol/parameters";
import type { Config } from "../../config.js";

/**
 * All limits and windows that `GET /v1/protocol` does not serve: lengths in characters, sizes in bytes, windows as
 * ISO 8601 durations, rates in requests per minute (null if switched off).
 */
export function presentLimits(
  { minimumPrice, rateLimits }: Pick<Config, "minimumPrice" | "rateLimits">,
  { payoutHold }: Pick<Parameters, "payoutHold">,
) {
  return {
    requests: {
      bodyBytes: LIMITS.bodyBytes,
      bodyDepth: LIMITS.bodyDepth,
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
    },
    contracts: {
      idempotencyKeyLength: LIMITS.idempotencyKeyLength,
      pendingAttempts: LIMITS.pendingAttempts,
      pendingAttemptLifetime: isoDuration(LIMITS.pendingAttemptLifetime),
      paymentTimeout: isoDuration(LIMITS.paymentTimeout),
      minimumPrice: formatDecimal(parseDecimal(minimumPrice) ?? 0n),
      titleLength: LIMITS.titleLength,
      taskDescriptionLength: LIMITS.taskDescriptionLength,
      acceptanceCriteria: LIMITS.acceptanceCriteria,
      criterionLength: LIMITS.criterionLength,
      referenceLength: LIMITS.referenceLength,
      applicationTermsBytes: LIMITS.applicationTermsBytes,
      reviewDeadlineHorizon: isoDuration(LIMITS.reviewDeadlineHorizon),
      payoutHold: isoDuration(payoutHold),
      maxPayoutHold: isoDuration(LIMITS.maxPayoutHold),
    },
    checkpoints: {
      dataBytes: LIMITS.checkpointDataBytes,
      perContract: LIMITS.checkpointsPerContract,
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
