/** The guide's contract in each of its states. */
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/parameters";
import {
  CLIENT,
  type Examples,
  FACTORY,
  HASH,
  ID,
  IMPLEMENTATION,
  JWE,
  quote,
  RELAY,
  TRANSACTION,
  WORKER,
} from "./shared.js";

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

export const CONTRACT_EXAMPLES: Examples = {
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
          parameters: DEFAULT_PARAMETERS,
        },
        packedTerms: `0x${"00".repeat(115)}`,
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
  getLedger: {
    response: {
      data: {
        contractId: ID,
        entries: [
          {
            direction: "in",
            name: "price",
            party: CLIENT,
            amount: "50.0",
            at: created.createdAt,
            blockNumber: 21_000_400,
            transactionHash: TRANSACTION,
          },
        ],
        in: "50.0",
        out: "0.0",
        held: "50.0",
        asOfBlock: 21_004_000,
        balance: "50.0",
        unbooked: "0.0",
      },
    },
  },
};
