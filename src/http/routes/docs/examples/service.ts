/** What holds for everybody: network, parameters, limits, probes. */
import {
  ASSET,
  DELEGATION,
  type Examples,
  FACTORY,
  IMPLEMENTATION,
  REGISTRY,
  RELAY,
  TOKEN,
} from "./shared.js";

export const SERVICE_EXAMPLES: Examples = {
  getNetwork: {
    response: {
      data: {
        baseUrl: "https://contracts.example",
        chainId: 84_532,
        network: "eip155:84532",
        time: "2026-01-30T09:00:00.000Z",
        startBlock: 21_000_000,
        domain: "contracts.example",
        factory: FACTORY,
        implementation: IMPLEMENTATION,
        relay: RELAY,
        delegation: DELEGATION,
        registry: REGISTRY,
        protocolToken: TOKEN,
        asset: { address: ASSET, name: "USDC", version: "2", symbol: "USDC", decimals: 6 },
      },
    },
  },
  getProtocol: {
    response: {
      data: {
        protocolFee: 0.05,
        workerStakeRatio: 0.05,
        disputeBondRatio: 0.05,
        backupAgentBondRatio: 0.05,
        earlyWithdrawalSlashRatio: 0.3,
        absentNoneMetClientShare: 0.8,
        baUnclearSlashRatio: 0.3,
        tokenMintRewardFull: 10,
        tokenMintRewardReduced: 4,
        baEligibilityStake: 1000,
        baVotingWindow: "PT24H",
        baRecruitCount: null,
      },
    },
  },
  getLimits: {
    response: {
      data: {
        requests: {
          bodyBytes: 262_144,
          bodyDepth: 64,
          readsPerMinute: 300,
          writesPerMinute: 60,
          anonymousPerMinute: 60,
          challengesPerMinute: 10,
          pagesPerMinute: 120,
          pageSize: 50,
          maxPageSize: 200,
        },
        authentication: { challengeValidity: "PT5M", challengeAttempts: 5, labelLength: 100 },
        contracts: {
          idempotencyKeyLength: 200,
          pendingAttempts: 5,
          pendingAttemptLifetime: "PT30M",
          paymentTimeout: "PT1M",
          minimumPrice: "0.01",
          titleLength: 200,
          taskDescriptionLength: 65_536,
          acceptanceCriteria: 10,
          criterionLength: 1_000,
          referenceLength: 4_096,
          applicationTermsBytes: 32_768,
          reviewDeadlineHorizon: "PT8760H",
          payoutHold: "PT0S",
          maxPayoutHold: "PT72H",
        },
        checkpoints: { perContract: 100_000, dataBytes: 65_536, stringLength: 1_024, clockSkew: "PT5M" },
        complaints: { window: "PT168H", perRole: 10, evidenceBytes: 65_536 },
        votes: { votersPerContract: 4_095, openingWindow: "PT24H", unstakingDelay: "PT48H" },
        profiles: { displayNameLength: 32, bioLength: 280, versionsPerDay: 10 },
      },
    },
  },
  getHealth: { response: { data: { status: "ok" } } },
  getReady: {
    response: {
      data: {
        ready: true,
        database: { ok: true },
        chain: { ok: true, block: 21_004_000, ageSeconds: 1 },
        indexer: { ok: true, block: 21_004_000, lagBlocks: 0 },
      },
    },
  },
};
