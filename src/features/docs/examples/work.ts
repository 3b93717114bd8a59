/** Votes, checkpoints, complaints, keys and events of a contract. */
import { CLIENT, type Examples, HASH, ID, JUROR, quote, TRANSACTION, WORKER } from "./shared.js";

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

export const WORK_EXAMPLES: Examples = {
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
  listEvents: {
    response: {
      data: [
        {
          id: "1042",
          type: "contract.accepted",
          timestamp: "2026-01-30T10:00:00.000Z",
          contractId: ID,
          agents: [CLIENT, WORKER],
          data: { status: "matched", actor: WORKER },
          chain: { blockNumber: 21_001_000, blockHash: HASH, transactionHash: TRANSACTION, logIndex: 3 },
        },
      ],
      nextAfter: "1042",
      hasMore: false,
    },
  },
};
