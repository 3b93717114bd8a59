/** Actions of a contract's Client, Worker and Backup Agents. */
import { disputeBond, voteDeposit, workerStake } from "@working-contracts/protocol/ledger";
import type { Address, EscrowTerms, Hex } from "@working-contracts/protocol/types";
import type { Answer } from "./http.js";
import type { QuotedPayment } from "./payment.js";
import { act, pay, read, type Session } from "./session.js";
import { ownTerms, type Posted, provenTerms } from "./terms.js";
import type {
  Checkpoint,
  CheckpointDraft,
  Complaint,
  Contract,
  Draft,
  Outcome,
  Terms,
  Vote,
} from "./types.js";

export function contractActs(session: Session) {
  const { network, signer } = session;
  const caller = signer.address.toLowerCase() as Address;
  const pathOf = (id: string): string => `/v1/contracts/${id.toLowerCase()}`;
  const termsOf = async (id: string): Promise<EscrowTerms> =>
    provenTerms(id, await read<Terms>(session, `${pathOf(id)}/terms`), network);
  /** Expects a payment to the contract's own escrow, of an amount computed from its proven terms. */
  const toEscrow = (id: string, amountOf: (terms: EscrowTerms) => bigint) => async () => {
    const amount = amountOf(await termsOf(id));
    return { payTo: id.toLowerCase(), currency: "stablecoin" as const, amount };
  };

  return {
    /** Posts a contract and pays its price (for a listing: the Worker Stake) into its escrow. */
    async create(draft: Draft): Promise<Contract> {
      const posted = completed(draft);
      const body = JSON.stringify(posted);
      const expect = async ({ quote }: QuotedPayment) => {
        const served = await read<Terms>(session, `${pathOf(quote.payTo)}/terms`);
        const terms = ownTerms(quote.payTo, { posted, body, caller, served, network });
        const amount = terms.workerInitiated ? workerStake(terms.price, terms.parameters) : terms.price;
        return { payTo: quote.payTo.toLowerCase(), currency: "stablecoin" as const, amount };
      };
      return pay<Contract>(session, "/v1/contracts", { body, expect });
    },

    /** Accepts a contract: pays the Worker Stake, or the price of a listing. */
    async accept(id: string): Promise<Contract> {
      const expect = toEscrow(id, ({ price, parameters, workerInitiated }) =>
        workerInitiated ? price : workerStake(price, parameters),
      );
      const body = JSON.stringify({ accept: true });
      return pay<Contract>(session, `${pathOf(id)}/accept`, { body, expect });
    },

    /** Declines a direct award or a reserved listing. */
    decline: (id: string) => act<Contract>(session, `${pathOf(id)}/accept`, { body: { accept: false } }),

    /** Cancels one's own contract that no one has accepted. */
    cancel: (id: string) => act<Contract>(session, `${pathOf(id)}/cancel`),

    /** Delivers a reference (a hash or URI). It is encrypted, and its key is released to the Client. */
    deliver: (id: string, delivery: string) =>
      act<Contract>(session, `${pathOf(id)}/delivery`, { body: { delivery } }),

    /** Withdraws from a contract before its withdrawal deadline, at the cost of part of the stake. */
    withdraw: (id: string) => act<Contract>(session, `${pathOf(id)}/withdraw`),

    /** Accepts the delivery; the Worker is paid. */
    approve: (id: string) => act<Contract>(session, `${pathOf(id)}/approve`),

    /** Rejects the delivery and pays the Dispute Bond; Backup Agents decide. */
    async dispute(id: string): Promise<Contract> {
      const expect = toEscrow(id, ({ price, parameters }) => disputeBond(price, parameters));
      return pay<Contract>(session, `${pathOf(id)}/dispute`, { expect });
    },

    /** Votes on a disputed contract, one outcome per criterion. With `salt` the voter can open its vote on chain. */
    async vote(id: string, words: readonly Outcome[]): Promise<{ votes: Vote[]; salt: Hex | null }> {
      const body = JSON.stringify({
        votes: words.map((vote, criterionIndex) => ({ criterionIndex, vote })),
      });
      const expect = toEscrow(id, ({ price, parameters, criteriaCount }) =>
        voteDeposit(price, criteriaCount, parameters),
      );
      const open = ({ json, headers }: Answer) => ({
        votes: json.data as Vote[],
        salt: headers.get("vote-salt") as Hex | null,
      });
      return pay(session, `${pathOf(id)}/votes`, { body, expect, open });
    },

    /** Reports progress of continuous work. */
    checkpoint: (id: string, checkpoint: CheckpointDraft) =>
      act<Checkpoint>(session, `${pathOf(id)}/checkpoint`, { body: checkpoint, repeatable: false }),

    /** Files a complaint about the other party's conduct; moves no money. */
    complain: (id: string, evidence: Record<string, unknown>) =>
      act<Complaint>(session, `${pathOf(id)}/complaints`, { body: { evidence }, repeatable: false }),
  };
}

function completed(draft: Draft): Posted {
  return {
    ...draft,
    contractType: "fixed",
    awardMethod: draft.awardMethod ?? (draft.worker == null ? "open_tender" : "direct_award"),
    idempotencyKey: draft.idempotencyKey ?? crypto.randomUUID(),
  };
}
