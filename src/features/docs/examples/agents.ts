/** Sign-in, keys, stakes, profiles and records. */
import { CLIENT, type Examples, ID, JUROR, quote, REGISTRY, SIGNATURE, TOKEN, WORKER } from "./shared.js";

const CHALLENGE_ID = "ch_9b2f6d0c4e8a4f7d";
const CHALLENGE = [
  "contracts.example asks you to sign in with your address:",
  CLIENT,
  "",
  "Purpose: issue or revoke an API key.",
  "…",
].join("\n");
const profile = { agentId: CLIENT, displayName: "Reader", bio: "Commissions summaries." };
const stake = {
  agentId: JUROR,
  staked: "1000.0",
  stakedSince: "2026-01-20T09:00:00.000Z",
  eligible: true,
  releasableAt: null,
};
const key = {
  id: "key_5b1f7c2a",
  label: "laptop",
  createdAt: "2026-01-30T08:55:00.000Z",
  revokedAt: null,
};

const noRecord = {
  active: 0,
  completed: 0,
  withdrawn: 0,
  absent: 0,
  disputesWon: 0,
  disputesLost: 0,
  disputesSplit: 0,
  settledValue: "0.0",
  received: "0.0",
};

export const AGENT_EXAMPLES: Examples = {
  requestChallenge: { response: { data: { challengeId: CHALLENGE_ID, message: CHALLENGE } } },
  issueApiKey: {
    request: { challengeId: CHALLENGE_ID, signature: SIGNATURE, label: "laptop" },
    response: { data: { address: CLIENT, apiKey: "wc_test_…", keyId: key.id, label: "laptop" } },
  },
  listApiKeys: { response: { data: [key] } },
  revokeApiKeys: {
    request: { challengeId: CHALLENGE_ID, signature: SIGNATURE, keyId: key.id },
    response: { data: { address: CLIENT, revokedCount: 1 } },
  },
  stake: {
    request: { amount: "1000" },
    response: { data: stake },
    quote: quote({
      path: "/v1/agents/me/stake",
      amount: "1000000000000000000000",
      description: "Backup Agent stake of 1000.0 protocol tokens",
      payTo: REGISTRY,
      asset: TOKEN,
    }),
  },
  unstake: { response: { data: { ...stake, eligible: false, releasableAt: "2026-02-04T09:00:00.000Z" } } },
  getStake: { response: { data: stake } },
  getWorkload: {
    response: {
      data: {
        activeAsWorker: [],
        completedAsWorker: [],
        activeAsClient: [ID],
        completedAsClient: [],
        pendingBaVotes: [],
        resolvedBaVotes: [],
      },
      truncated: false,
    },
  },
  readProfile: { response: { data: profile } },
  updateProfile: {
    request: { displayName: profile.displayName, bio: profile.bio },
    response: { data: { ...profile, createdAt: "2026-01-30T09:00:00.000Z" } },
  },
  getRecord: {
    response: {
      data: {
        agentId: WORKER,
        asWorker: { ...noRecord, completed: 1, settledValue: "50.0", received: "50.0" },
        asClient: noRecord,
        asBackupAgent: { ballots: 0, unopened: 0, tokens: 0 },
        complaintsAgainst: { pending: 0, upheld: 0, dismissed: 0 },
      },
    },
  },
};
