import { z } from "@hono/zod-openapi";

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

export const LimitsSchema = z
  .object({
    requests: z.object({
      bodyBytes: z.number(),
      bodyDepth: z.number(),
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
    }),
    contracts: z.object({
      idempotencyKeyLength: z.number(),
      pendingAttempts: z.number(),
      pendingAttemptLifetime: duration,
      paymentTimeout: duration,
      minimumPrice: z.string(),
      titleLength: z.number(),
      taskDescriptionLength: z.number(),
      acceptanceCriteria: z.number(),
      criterionLength: z.number(),
      referenceLength: z.number(),
      applicationTermsBytes: z.number(),
      reviewDeadlineHorizon: duration,
      payoutHold: duration,
      maxPayoutHold: duration,
    }),
    checkpoints: z.object({
      perContract: z.number(),
      dataBytes: z.number(),
      stringLength: z.number(),
      clockSkew: duration,
    }),
    complaints: z.object({ window: duration, perRole: z.number(), evidenceBytes: z.number() }),
    votes: z.object({ votersPerContract: z.number(), openingWindow: duration, unstakingDelay: duration }),
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
