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
import { data, endpoints } from "../../http/endpoint.js";

/** Spares the node; short compared with the day for which the factory still accepts former parameters. */
const FRESH_FOR_MS = 5_000;

export type ParameterReader = () => Promise<Parameters>;

/** Reads the factory's parameters at most every few seconds; callers share a read. A failed one is not kept. */
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

const RATIOS = [
  "protocolFee",
  "workerStakeRatio",
  "disputeBondRatio",
  "backupAgentBondRatio",
  "earlyWithdrawalSlashRatio",
  "absentNoneMetClientShare",
  "baUnclearSlashRatio",
] as const;
const each = <K extends string, V>(names: readonly K[], of: (name: K) => V) =>
  Object.fromEntries(names.map((name) => [name, of(name)])) as Record<K, V>;

const ProtocolSchema = z
  .object({
    ...each(RATIOS, () => z.number().min(0).max(1)),
    tokenMintRewardFull: z.number(),
    tokenMintRewardReduced: z.number(),
    baEligibilityStake: z.number(),
    baVotingWindow: z.string().openapi({ example: "PT24H" }),
    baRecruitCount: z.number().nullable(),
  })
  .openapi("ProtocolParameters");

/** The parameters as `GET /v1/protocol` shows them (specification, "Protocol parameters"). */
export type ProtocolView = z.infer<typeof ProtocolSchema>;

/** Basis points as fractions, the window as an ISO 8601 duration; `payoutHold` is served with the limits. */
export function presentParameters({ payoutHold: _, ...parameters }: Parameters): ProtocolView {
  return {
    ...parameters,
    // One division of two integers: the nearest double, which JSON prints as the short decimal.
    ...each(RATIOS, (name) => parameters[name] / 10_000),
    baVotingWindow: isoDuration(parameters.baVotingWindow),
    baRecruitCount: parameters.baRecruitCount === 0 ? null : parameters.baRecruitCount,
  };
}

interface ServedConfig extends Pick<Config, "minimumPrice" | "rateLimits" | "gasPolicy"> {
  payoutHold: number;
}

const duration = z.string().openapi({ example: "PT5M", description: "ISO 8601 duration" });
const rate = z.number().nullable().openapi({ description: "Requests per minute; null means unlimited" });
const gasOf = (description: string) =>
  z
    .number()
    .nullable()
    .openapi({ description: `${description}; null means unlimited` });

const limit = <T>(schema: z.ZodType<T>, value: (served: ServedConfig) => T) => ({ schema, value });
const numberLimit = (value: number, description?: string) =>
  limit(description === undefined ? z.number() : z.number().openapi({ description }), () => value);
const durationLimit = (value: number) => limit(duration, () => isoDuration(value));
type Limit = keyof typeof LIMITS;
const numberLimits = <K extends Limit>(...names: K[]) => each(names, (name) => numberLimit(LIMITS[name]));
const durationLimits = <K extends Limit>(...names: K[]) => each(names, (name) => durationLimit(LIMITS[name]));
const rateLimit = (name: keyof Config["rateLimits"]) =>
  limit(rate, ({ rateLimits }) => rateLimits[name] || null);

/** Limits of calls that `GET /v1/protocol` does not serve: characters, bytes, ISO 8601 durations, requests a minute, gas (null if off). */
const SHOWN_LIMITS = {
  requests: {
    ...numberLimits("bodyBytes", "bodyDepth", "urlLength", "searchLength", "pageSize", "maxPageSize"),
    downloadsPerClient: numberLimit(
      LIMITS.downloadsPerClient,
      "Whole lists that one IP address can receive at a time",
    ),
    readsPerMinute: rateLimit("reads"),
    writesPerMinute: rateLimit("writes"),
    anonymousPerMinute: rateLimit("anonymous"),
    challengesPerMinute: rateLimit("challenges"),
    pagesPerMinute: rateLimit("pages"),
    newContractBytesPerMinute: numberLimit(
      LIMITS.newContractBytesPerMinute,
      "Bytes of new contracts that one IP address can post",
    ),
    failedOperationsPerHour: numberLimit(
      LIMITS.failedOperationsPerHour,
      "Operations of one address that can fail on chain before its calls wait",
    ),
    refusedOperationsPerHour: numberLimit(
      LIMITS.refusedOperationsPerHour,
      "Signatures of one address that the relayer's simulation can refuse before its paid calls wait",
    ),
  },
  authentication: {
    ...numberLimits("challengeAttempts", "labelLength", "signatureLength"),
    challengeValidity: durationLimit(LIMITS.challengeValidity),
  },
  signedActions: {
    validity: durationLimit(MAX_SIGNATURE_VALIDITY),
    signatureLength: numberLimit(LIMITS.actionSignatureLength),
  },
  payments: {
    headerLength: numberLimit(LIMITS.paymentHeaderLength),
    signatureBytes: numberLimit(LIMITS.paymentSignatureBytes),
  },
  gas: {
    allowance: limit(
      gasOf("Gas relayed in a day for one address beyond what it earned"),
      ({ gasPolicy }) => gasPolicy.allowance || null,
    ),
    budget: limit(
      gasOf("Gas relayed in an hour for all addresses beyond what they earned"),
      ({ gasPolicy }) => gasPolicy.budget || null,
    ),
    perFee: limit(
      z.number().openapi({ description: "Gas earned by each 1.0 that a contract pays to the Treasury" }),
      ({ gasPolicy }) => gasPolicy.perFee,
    ),
  },
  contracts: {
    ...numberLimits("idempotencyKeyLength", "pendingAttempts", "titleLength", "taskDescriptionLength"),
    ...numberLimits(
      "acceptanceCriteria",
      "criterionLength",
      "referenceLength",
      "shareLength",
      "applicationTermsBytes",
    ),
    ...durationLimits("pendingAttemptLifetime", "paymentTimeout", "reviewDeadlineHorizon", "maxPayoutHold"),
    payoutHold: limit(duration, ({ payoutHold }) => isoDuration(payoutHold)),
    minimumPrice: limit(z.string(), ({ minimumPrice }) => formatDecimal(minimumPrice)),
    maximumPrice: limit(z.string(), () => formatDecimal(MAX_PRICE)),
  },
  checkpoints: {
    bytesPerContract: numberLimit(LIMITS.checkpointBytesPerContract),
    bytesPerDay: numberLimit(
      LIMITS.checkpointBytesPerDay,
      "For each day since the match, and as much again for each 1.00 of the price",
    ),
    pageBytes: numberLimit(LIMITS.checkpointPageBytes),
    dataBytes: numberLimit(LIMITS.checkpointDataBytes),
    stringLength: numberLimit(LIMITS.checkpointStringLength),
    clockSkew: durationLimit(LIMITS.checkpointClockSkew),
  },
  complaints: {
    window: durationLimit(LIMITS.complaintWindow),
    perRole: numberLimit(LIMITS.complaintsPerRole),
    evidenceBytes: numberLimit(LIMITS.evidenceBytes),
  },
  votes: {
    votersPerContract: numberLimit(LIMITS.votersPerContract),
    openingWindow: durationLimit(LIMITS.voteOpeningWindow),
    unstakingDelay: durationLimit(LIMITS.unstakingDelay),
    rewardsPerFee: numberLimit(
      Number(REWARD_PER_FEE),
      "Protocol tokens minted at most by a dispute for each 1.0 that it pays to the Treasury",
    ),
  },
  events: {
    ...durationLimits("deadlineNotice", "streamHeartbeat", "streamLifetime", "streamStall"),
    ...numberLimits("streamsPerAgent", "webhooksPerAgent", "webhookUrlLength", "webhookDescriptionLength"),
    webhooksForOthers: numberLimit(
      LIMITS.webhooksForOthers,
      "Webhooks of all agents for other agents' events",
    ),
    webhooksForOthersOfStrangers: numberLimit(
      LIMITS.webhooksForOthersOfStrangers,
      "From this number of them on, only agents with a matched contract or a stake create more",
    ),
    webhookRetries: numberLimit(LIMITS.webhookRetries, "Events of one webhook that can wait for a retry"),
  },
  profiles: {
    ...numberLimits("displayNameLength", "bioLength"),
    versionsPerDay: numberLimit(LIMITS.profileVersionsPerDay),
  },
};

type Shown = typeof SHOWN_LIMITS;
export type LimitsView = {
  [Group in keyof Shown]: {
    [Name in keyof Shown[Group]]: Shown[Group][Name] extends { value(served: ServedConfig): infer T }
      ? T
      : never;
  };
};

function eachLimit(read: (one: ReturnType<typeof limit>) => unknown) {
  const groups = Object.entries(SHOWN_LIMITS).map(([group, limits]) => [
    group,
    Object.fromEntries(Object.entries(limits).map(([name, limit]) => [name, read(limit)])),
  ]);
  return Object.fromEntries(groups);
}

const groupSchemas = Object.entries<Record<string, z.ZodType>>(eachLimit(({ schema }) => schema));
const LimitsSchema = z
  .object(Object.fromEntries(groupSchemas.map(([group, schemas]) => [group, z.object(schemas)])))
  .openapi("Limits") as unknown as z.ZodType<LimitsView>;

export function presentLimits(
  config: Omit<ServedConfig, "payoutHold">,
  { payoutHold }: Pick<Parameters, "payoutHold">,
): LimitsView {
  const served = { ...config, payoutHold };
  return eachLimit(({ value }) => value(served)) as LimitsView;
}

const { get } = endpoints("Protocol");

export const protocolEndpoints = [
  get("/v1/protocol", {
    operationId: "getProtocol",
    summary: "Read the global protocol parameters",
    auth: "none",
    returns: data("Parameters of future Working Contracts", ProtocolSchema),
    handle: async (deps) => presentParameters(await deps.readParameters()),
  }),
  get("/v1/limits", {
    operationId: "getLimits",
    summary: "Read the limits and windows of calls that are not protocol parameters",
    auth: "none",
    returns: data("Limits", LimitsSchema),
    handle: async (deps) => presentLimits(deps.config, await deps.readParameters()),
  }),
];
