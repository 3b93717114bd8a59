/** One example of every operation, by its id: the contract of the guide at its different moments. */

interface Example {
  request?: unknown;
  response: unknown;
  /** The 402's body in the version 1 form. */
  quote?: unknown;
}

const ID = "0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a";
const CLIENT = "0x52908400098527886e0f7030069857d2e4169ee7";
const WORKER = "0x8617e340b3d01fa5f11f306f4090fd50e238070d";
const JUROR = "0x27b1fdb04752bbc536007a920d24acb045561c26";
const ASSET = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";
const FACTORY = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
const IMPLEMENTATION = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";
const REGISTRY = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
const RELAY = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";
const TOKEN = "0xdc64a140aa3e981100a9beca4e685f962f0cf6c9";
const DELEGATION = "0x5fc8d32690cc91d4c39d9d3abcbd16989f875707";
const HASH = `0x${"5d".repeat(32)}`;
const TRANSACTION = `0x${"7a".repeat(32)}`;
const JWE = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..3v1cZ0y9QmR8sT2u.Yk1oV0x4.6Q0mXb3nP7rT9vWz1aBcDg";
const CHALLENGE_ID = "ch_9b2f6d0c4e8a4f7d";
const CHALLENGE = [
  "contracts.example asks you to sign in with your address:",
  CLIENT,
  "",
  "Purpose: issue or revoke an API key.",
  "…",
].join("\n");
const SIGNATURE = `0x${"1c".repeat(65)}`;

const created = {
  id: ID,
  status: "created",
  createdAt: "2026-01-30T09:00:00.000Z",
  initiator: "client",
  client: CLIENT,
  worker: null,
  title: "Summarise a paper",
  taskDescription: "One page on https://example.org/paper.pdf",
  acceptanceCriteria: ["At most one page", "Names the method"],
  criteriaMet: null,
  supplementaryMaterials: null,
  delivery: null,
  contractType: "fixed",
  awardMethod: "open_tender",
  budgetOrPrice: "50.0",
  matchDeadline: "2026-01-31T09:00:00.000Z",
  withdrawalDeadline: "2026-02-01T09:00:00.000Z",
  deliveryDeadline: "2026-02-02T09:00:00.000Z",
  reviewDeadline: "2026-02-03T09:00:00.000Z",
  verificationMode: "privacy-preserving",
  backupAgents: [],
  escrowedFunds: "50.0",
  workerStake: null,
  disputeBond: null,
};
const matched = { ...created, status: "matched", worker: WORKER, workerStake: "2.5" };
const delivered = { ...matched, status: "under-review", delivery: JWE };
const approved = { ...delivered, status: "resolved", criteriaMet: ["met", "met"] };
const disputed = { ...delivered, status: "disputed", disputeBond: "2.5" };

function quote(call: { path: string; amount: string; description: string; payTo?: string; asset?: string }) {
  return {
    x402Version: 1,
    error: "X-PAYMENT header is required",
    accepts: [
      {
        scheme: "exact",
        network: "base-sepolia",
        maxAmountRequired: call.amount,
        resource: `https://contracts.example${call.path}`,
        description: call.description,
        mimeType: "application/json",
        payTo: call.payTo ?? ID,
        maxTimeoutSeconds: 60,
        asset: call.asset ?? ASSET,
        extra: { name: "USDC", version: "2" },
      },
    ],
  };
}

const vote = (criterionIndex: number) => ({
  contractId: ID,
  backupAgent: JUROR,
  criterionIndex,
  vote: "met",
  majorityOutcome: null,
  bondOutcome: null,
  reward: null,
});
const votes = { data: [vote(0), vote(1)], nextCursor: null };

const checkpoint = {
  fromSequence: 1,
  toSequence: 100,
  merkleRoot: HASH,
  lastReceiptHash: HASH,
  teeMeasurement: "sha256:4f2a",
  teeSignature: "MEUCIQ",
  checkpointedAt: "2026-01-31T12:00:00.000Z",
  data: { tokensServed: 125_000 },
};
const storedCheckpoint = {
  id: "42",
  contractId: ID,
  ...checkpoint,
  createdAt: "2026-01-31T12:00:01.000Z",
};

const complaint = {
  id: "7",
  contractId: ID,
  filedByRole: "client",
  evidence: { messages: ["The delivery was copied."] },
  status: "pending",
  filedAt: "2026-02-02T10:00:00.000Z",
  resolvedAt: null,
  resolutionNote: null,
};

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

const parameters = {
  protocolFee: 500,
  workerStakeRatio: 500,
  disputeBondRatio: 500,
  backupAgentBondRatio: 500,
  earlyWithdrawalSlashRatio: 3000,
  absentNoneMetClientShare: 8000,
  baUnclearSlashRatio: 3000,
  tokenMintRewardFull: 10,
  tokenMintRewardReduced: 4,
  baEligibilityStake: 1000,
  baVotingWindow: 86_400,
  baRecruitCount: 0,
  payoutHold: 0,
};
const document = {
  acceptanceCriteria: created.acceptanceCriteria,
  application: null,
  applicationTerms: null,
  awardMethod: "open_tender",
  contractType: "fixed",
  initiator: "client",
  salt: HASH,
  supplementaryMaterialsHash: null,
  taskDescription: created.taskDescription,
  title: created.title,
  verificationMode: "privacy-preserving",
};

export const EXAMPLES: Record<string, Example> = {
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
  createContract: {
    request: {
      idempotencyKey: "3f1c9a52",
      title: created.title,
      taskDescription: created.taskDescription,
      acceptanceCriteria: created.acceptanceCriteria,
      contractType: "fixed",
      awardMethod: "open_tender",
      budgetOrPrice: 50,
      matchDeadline: "2026-01-31T09:00:00Z",
      withdrawalDeadline: "2026-02-01T09:00:00Z",
      deliveryDeadline: "2026-02-02T09:00:00Z",
      reviewDeadline: "2026-02-03T09:00:00Z",
    },
    response: { data: created },
    quote: quote({
      path: "/v1/contracts",
      amount: "50000000",
      description: 'Price of the contract "Summarise a paper"',
    }),
  },
  listContracts: { response: { data: [created], nextCursor: null } },
  getContract: { response: { data: matched } },
  getTerms: {
    response: {
      data: {
        contractId: ID,
        chainId: 84_532,
        factory: FACTORY,
        implementation: IMPLEMENTATION,
        document,
        canonicalDocument: JSON.stringify(document),
        salt: HASH,
        termsHash: HASH,
        escrowTerms: {
          initiator: CLIENT,
          price: "50000000",
          counterparty: "0x0000000000000000000000000000000000000000",
          criteriaCount: 2,
          workerInitiated: false,
          computedCriteria: false,
          matchDeadline: 1_769_850_000,
          withdrawalDeadline: 1_769_936_400,
          deliveryDeadline: 1_770_022_800,
          reviewDeadline: 1_770_109_200,
          termsHash: HASH,
          parameters,
        },
        packedTerms: `0x${"00".repeat(135)}`,
      },
    },
  },
  getSettlement: {
    response: {
      data: {
        contractId: ID,
        status: "settled-all-met",
        ending: "approved",
        endedAt: "2026-02-02T10:00:00.000Z",
        heldUntil: null,
        settledAt: "2026-02-02T10:00:02.000Z",
        transactionHash: TRANSACTION,
        legs: [
          {
            name: "worker-pay",
            to: "worker",
            address: WORKER,
            amount: "47.5",
            state: "confirmed",
            transactionHash: TRANSACTION,
          },
          {
            name: "protocol-fee",
            to: "treasury",
            address: RELAY,
            amount: "2.5",
            state: "confirmed",
            transactionHash: TRANSACTION,
          },
          {
            name: "stake-back",
            to: "worker",
            address: WORKER,
            amount: "2.5",
            state: "confirmed",
            transactionHash: TRANSACTION,
          },
        ],
      },
    },
  },
  acceptContract: {
    request: { accept: true },
    response: { data: matched },
    quote: quote({
      path: `/v1/contracts/${ID}/accept`,
      amount: "2500000",
      description: 'Worker Stake for the contract "Summarise a paper"',
    }),
  },
  submitDelivery: { request: { delivery: "ipfs://bafy…/summary.md" }, response: { data: delivered } },
  approveContract: { response: { data: approved } },
  disputeContract: {
    response: { data: disputed },
    quote: quote({
      path: `/v1/contracts/${ID}/dispute`,
      amount: "2500000",
      description: 'Dispute Bond for the contract "Summarise a paper"',
    }),
  },
  withdrawContract: { response: { data: { ...matched, status: "cancelled-withdrawn" } } },
  cancelContract: { response: { data: { ...created, status: "cancelled-by-initiator" } } },
  submitVotes: {
    request: {
      votes: [
        { criterionIndex: 0, vote: "met" },
        { criterionIndex: 1, vote: "met" },
      ],
    },
    response: { data: [vote(0), vote(1)] },
    quote: quote({
      path: `/v1/contracts/${ID}/votes`,
      amount: "5000000",
      description: 'Backup Agent Bond for the contract "Summarise a paper"',
    }),
  },
  listContractVotes: { response: votes },
  listVotes: { response: votes },
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
  submitCheckpoint: { request: checkpoint, response: { data: storedCheckpoint } },
  listCheckpoints: { response: { data: [storedCheckpoint] } },
  proveCheckpoint: {
    response: {
      data: {
        checkpointId: "42",
        contractId: ID,
        leaf: HASH,
        proof: [],
        root: HASH,
        leafCount: 1,
        anchoredRoot: null,
        anchored: false,
      },
    },
  },
  fileComplaint: { request: { evidence: complaint.evidence }, response: { data: complaint } },
  listComplaints: { response: { data: [complaint] } },
  getReferenceKeys: {
    response: {
      data: {
        keys: [
          {
            kty: "oct",
            alg: "A256GCM",
            use: "enc",
            kid: `${ID}#delivery`,
            k: "3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            field: "delivery",
          },
        ],
      },
    },
  },
  listKeyReleases: {
    response: {
      data: [
        {
          id: "12",
          field: "delivery",
          releasedTo: CLIENT,
          role: "client",
          releasedAt: "2026-02-02T09:30:00.000Z",
        },
      ],
      nextCursor: null,
    },
  },
  readProfile: { response: { data: profile } },
  updateProfile: {
    request: { displayName: profile.displayName, bio: profile.bio },
    response: { data: { ...profile, createdAt: "2026-01-30T09:00:00.000Z" } },
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
        checkpoints: { dataBytes: 65_536, stringLength: 1_024, clockSkew: "PT5M" },
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
