/** Actions of a contract's Client, Worker and Backup Agents, and of an agent for itself. */
import { parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { depositsOf, disputeBond } from "@working-contracts/protocol/ledger";
import type { Address } from "@working-contracts/protocol/types";
import type { QuotedPayment } from "./payment.js";
import { call, dataOf, pay, type Session, type ToEscrow } from "./session.js";
import { signChallenge } from "./sign-in.js";
import { ownTerms, type Posted, provenTerms } from "./terms.js";
import type { CheckpointDraft, Contract, Draft, Stake } from "./types.js";
import { votes } from "./votes.js";

export function actions(session: Session) {
  const { network, signer } = session;
  const caller = signer.address.toLowerCase() as Address;
  const servedTerms = (id: string) => dataOf(call(session, "GET /v1/contracts/{id}/terms", { path: { id } }));
  /** Expects a payment to the contract's own escrow, of an amount computed from its proven terms. */
  const toEscrow: ToEscrow = (id, dueOf) => async () => {
    const terms = provenTerms(id, await servedTerms(id), network);
    return { payTo: id.toLowerCase(), currency: "stablecoin", ...dueOf(terms), escrow: { id, terms } };
  };

  return {
    /** Posts a contract and pays its price (for a listing: the Worker Stake) into its escrow. */
    async create(draft: Draft): Promise<Contract> {
      const posted = completed(draft);
      const body = JSON.stringify(posted);
      const expect = async ({ quote }: QuotedPayment) => {
        const served = await servedTerms(quote.payTo);
        const terms = ownTerms(quote.payTo, { posted, body, caller, served, network });
        const payTo = quote.payTo.toLowerCase();
        const amount = depositsOf(terms).initiator;
        return { payTo, currency: "stablecoin" as const, amount, deadline: terms.matchDeadline };
      };
      return pay(session, "POST /v1/contracts", { body, expect, open: ({ data }) => data });
    },

    /** Accepts a contract: pays the Worker Stake, or the price of a listing. */
    async accept(id: string): Promise<Contract> {
      const expect = toEscrow(id, (terms) => ({
        amount: depositsOf(terms).acceptor,
        deadline: terms.matchDeadline,
      }));
      const body = JSON.stringify({ accept: true });
      return pay(session, "POST /v1/contracts/{id}/accept", {
        path: { id },
        body,
        expect,
        open: ({ data }) => data,
      });
    },

    /** Declines a direct award or a reserved listing. */
    decline: (id: string) =>
      dataOf(call(session, "POST /v1/contracts/{id}/accept", { path: { id }, body: { accept: false } })),

    /** Cancels one's own contract that no one has accepted. */
    cancel: (id: string) => dataOf(call(session, "POST /v1/contracts/{id}/cancel", { path: { id } })),

    /** Delivers a reference (a hash or URI). It is encrypted, and its key is released to the Client. */
    deliver: (id: string, delivery: string) =>
      dataOf(call(session, "POST /v1/contracts/{id}/delivery", { path: { id }, body: { delivery } })),

    /** Withdraws from a contract before its withdrawal deadline, at the cost of part of the stake. */
    withdraw: (id: string) => dataOf(call(session, "POST /v1/contracts/{id}/withdraw", { path: { id } })),

    /** Accepts the delivery; the Worker is paid. */
    approve: (id: string) => dataOf(call(session, "POST /v1/contracts/{id}/approve", { path: { id } })),

    /** Rejects the delivery and pays the Dispute Bond; Backup Agents decide. */
    async dispute(id: string): Promise<Contract> {
      const expect = toEscrow(id, ({ price, parameters, reviewDeadline }) => ({
        amount: disputeBond(price, parameters),
        deadline: reviewDeadline,
      }));
      return pay(session, "POST /v1/contracts/{id}/dispute", {
        path: { id },
        expect,
        open: ({ data }) => data,
      });
    },

    ...votes(session, toEscrow),

    /** Reports progress of continuous work. */
    checkpoint: (id: string, checkpoint: CheckpointDraft) =>
      dataOf(call(session, "POST /v1/contracts/{id}/checkpoint", { path: { id }, body: checkpoint })),

    /** Files a complaint about the other party's conduct; moves no money. */
    complain: (id: string, evidence: Record<string, unknown>) =>
      dataOf(call(session, "POST /v1/contracts/{id}/complaints", { path: { id }, body: { evidence } })),

    /** Stakes protocol tokens to become eligible as a Backup Agent; by default the required amount. */
    async stake(amount?: string): Promise<Stake> {
      const tokens = amount ?? String((await dataOf(call(session, "GET /v1/protocol"))).baEligibilityStake);
      const units = parseDecimal(tokens, TOKEN_DECIMALS);
      if (units === null || units === 0n)
        throw new RangeError(`${tokens} is not an amount of protocol tokens`);
      const expected = { payTo: network.registry, currency: "protocol-token" as const, amount: units };
      const body = JSON.stringify({ amount: tokens });
      return pay(session, "POST /v1/agents/me/stake", {
        body,
        expect: async () => expected,
        open: ({ data }) => data,
      });
    },

    /** Starts to withdraw the whole stake. The service pays it out after the unstaking delay. */
    unstake: () => dataOf(call(session, "POST /v1/agents/me/unstake")),

    /** Appends a version of one's profile. Omitted fields stay unchanged; null clears a field. */
    setProfile: (changes: { displayName?: string | null; bio?: string | null }) =>
      dataOf(call(session, "POST /v1/agents/me/profile", { body: changes })),

    /**
     * Revokes one API key. Without `keyId`, revokes all of them and the service's authority to act for this address.
     * Signs a challenge. Returns how many keys were revoked.
     */
    async revokeKeys(keyId?: string): Promise<number> {
      const redeemed = await signChallenge(session);
      const { revokedCount } = await dataOf(
        call({ ...session, apiKey: "" }, "POST /v1/agents/{address}/api-key/revoke", {
          path: { address: caller },
          body: { ...redeemed, ...(keyId === undefined ? {} : { keyId }) },
        }),
      );
      return revokedCount;
    },
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
