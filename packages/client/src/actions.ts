/** Actions of a contract's Client, Worker and Backup Agents, and of an agent for itself. */
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { checkpointLeaf, computeCriteria, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { encodeCall, keccak256, stringToHex } from "@working-contracts/protocol/hex";
import { packOutcomes } from "@working-contracts/protocol/outcomes";
import { complaintCall } from "@working-contracts/protocol/signatures";
import type { TermsDocument } from "@working-contracts/protocol/terms";
import type { Address, Hex } from "@working-contracts/protocol/types";
import canonicalize from "canonicalize";
import type { requireDone } from "./chain-check.js";
import { NotOnChain, RefusedToSign } from "./errors.js";
import type { QuotedPayment } from "./payment.js";
import { call, checkpointsKey, dataIn, dataOf, pay, reads, type Session, type ToEscrow } from "./session.js";
import { CLOCK_TOLERANCE, callSigned, signChallenge } from "./signing.js";
import { dueToAccept, dueToCreate, dueToDispute, ownTerms, type Posted, provenTerms } from "./terms.js";
import type { Checkpoint, CheckpointDraft, Contract, Draft, Outcome, Stake } from "./types.js";
import type { OpenOptions, VoteOptions, Voting } from "./votes.js";

/** Actions on a contract that cost nothing. */
const SIGNED = {
  approve: "POST /v1/contracts/{id}/approve",
  cancel: "POST /v1/contracts/{id}/cancel",
  decline: "POST /v1/contracts/{id}/accept",
  deliver: "POST /v1/contracts/{id}/delivery",
  withdraw: "POST /v1/contracts/{id}/withdraw",
} as const;

/** Actions throw the errors of errors.ts; with a node, NotOnChain unless it shows the change of a contract's status. */
export function actions(session: Session) {
  const { network, signer } = session;
  const caller = signer.address.toLowerCase() as Address;
  const { terms: servedTerms } = reads(session);
  /** Expects a payment to the contract's own escrow, of an amount computed from its proven terms. */
  const toEscrow: ToEscrow = (id, dueOf) => async () => {
    const terms = provenTerms(id, await servedTerms(id), network);
    return {
      payTo: id.toLowerCase(),
      currency: "stablecoin",
      ...dueOf(terms),
      escrow: { id, terms },
    };
  };
  let voting: Voting | undefined;
  /** Few agents vote. A failure to load is not kept: the next call tries again. */
  const loadVoting = async (): Promise<Voting> => {
    const { votes } = await import("./votes.js");
    voting ??= votes(session, toEscrow);
    return voting;
  };
  const act = (
    action: keyof typeof SIGNED,
    id: string,
    { body, calldata }: { body?: object; calldata?: () => Promise<Hex> } = {},
  ): Promise<Contract> => {
    const signing = { action, contract: id, calldata: calldata ?? encodeCall(`${action}()`) };
    const acting = callSigned(session, SIGNED[action], signing, { path: { id }, ...(body && { body }) });
    return acting.then(provenAs(session, action, id));
  };

  /** The delivery of a text with all checkpoints. Throws RefusedToSign if the service hides, changes or misplaces a submitted one. */
  async function deliveryOf(id: string, text: string): Promise<Hex> {
    const served = await servedTerms(id);
    const { computedCriteria, criteriaCount } = provenTerms(id, served, network);
    const { data } = await call(session, "GET /v1/contracts/{id}/checkpoints", { path: { id } });
    const leaves = data.map(checkpointLeaf);
    const own = await session.submitted.read(checkpointsKey(id));
    if (own.some((leaf) => !leaves.includes(leaf)))
      throw new RefusedToSign("checkpoints", "the service hides or changes a checkpoint that you submitted");
    // Not necessarily the last in `own`: a repeated one was remembered late.
    const isLast = own.includes(leaves.at(-1) as Hex);
    const last = data.at(-1)?.toSequence ?? 0;
    if (own.length > 0 && (!isLast || data.some(({ toSequence }) => toSequence > last)))
      throw new RefusedToSign(
        "checkpoints",
        "the last checkpoint was not submitted from here. If another program of yours submitted it, deliver from there",
      );
    const { applicationTerms } = served.document as TermsDocument;
    const metrics = data.at(-1)?.data ?? null;
    const outcomes = computedCriteria
      ? packOutcomes(computeCriteria({ criteriaCount, applicationTerms, metrics }))
      : 0;
    const hash = keccak256(stringToHex(text));
    return encodeCall("deliver(bytes32,bytes32,uint24)", hash, rootOfLeaves(leaves), outcomes);
  }

  return {
    /** Posts a contract and pays its price (for a listing: the Worker Stake). After an unused payment, repeat the same draft. */
    create: posting(session),

    /** Accepts a contract: pays the Worker Stake, or the price of a listing. */
    async accept(id: string): Promise<Contract> {
      const body = JSON.stringify({ accept: true });
      const expect = toEscrow(id, dueToAccept);
      const input = { path: { id }, body, expect, parse: provenAs(session, "accept", id) };
      return pay(session, "POST /v1/contracts/{id}/accept", input);
    },

    /** Declines a direct award or a reserved listing. */
    decline: (id: string) => act("decline", id, { body: { accept: false } }),

    /** Cancels one's own contract that no one has accepted. */
    cancel: (id: string) => act("cancel", id),

    /** Delivers a text as it is: a reference, or its sealed form. */
    deliver: (id: string, delivery: string) =>
      act("deliver", id, { body: { delivery }, calldata: () => deliveryOf(id, delivery) }),

    /** Withdraws from a contract before its withdrawal deadline, at the cost of part of the stake. */
    withdraw: (id: string) => act("withdraw", id),

    /** Accepts the delivery; the Worker is paid. */
    approve: (id: string) => act("approve", id),

    /** Rejects the delivery and pays the Dispute Bond; Backup Agents decide. */
    async dispute(id: string): Promise<Contract> {
      const expect = toEscrow(id, dueToDispute);
      const input = { path: { id }, expect, parse: provenAs(session, "dispute", id) };
      return pay(session, "POST /v1/contracts/{id}/dispute", input);
    },

    /** Votes (one outcome per criterion), sealed even to the service. A vote not opened within a day after the voting loses its bond. */
    vote: async (id: string, words: readonly Outcome[], options?: VoteOptions) =>
      (await loadVoting()).vote(id, words, options),

    /** Opens each sealed vote once no one else can vote; waits for all by default. Throws if the service hides or refuses one. */
    openVotes: async (options?: OpenOptions) => (await loadVoting()).openVotes(options),

    /** Reports progress of continuous work. After a lost response, repeat it: it is stored once. */
    async checkpoint(id: string, body: CheckpointDraft): Promise<Checkpoint> {
      const checkpointedAt = new Date(body.checkpointedAt).toISOString();
      const contractId = id.toLowerCase();
      const sent = canonicalOf({ ...body, checkpointedAt });
      const leaf = checkpointLeaf({ ...sent, contractId });
      const stored = await dataOf(session, "POST /v1/contracts/{id}/checkpoint", {
        path: { id },
        body: sent,
        key: leaf,
      });
      if (leaf !== checkpointLeaf(stored))
        throw new RefusedToSign("checkpoints", "the stored checkpoint is not the one that you submitted");
      const { submitted } = session;
      const key = checkpointsKey(id);
      if (!(await submitted.read(key)).includes(leaf)) await submitted.add(key, leaf);
      return stored;
    },

    /** Files a complaint about the other party's conduct, once for the same evidence; moves no money. */
    complain: (id: string, evidence: Record<string, unknown>) => {
      const sent = canonicalOf(evidence);
      const calldata = complaintCall(canonicalize(sent) ?? "");
      const input = { path: { id }, body: { evidence: sent }, key: keccak256(calldata) };
      const signing = { action: "complain", contract: id, calldata } as const;
      return callSigned(session, "POST /v1/contracts/{id}/complaints", signing, input).then(dataIn);
    },

    /** Stakes protocol tokens to become eligible as a Backup Agent; by default the required amount. */
    async stake(amount?: string): Promise<Stake> {
      const tokens = amount ?? String((await dataOf(session, "GET /v1/protocol")).baEligibilityStake);
      const units = parseDecimal(tokens, TOKEN_DECIMALS);
      if (units === null || units === 0n)
        throw new RangeError(`${tokens} is not an amount of protocol tokens`);
      const expected = { payTo: network.registry, currency: "protocol-token" as const, amount: units };
      const body = JSON.stringify({ amount: tokens });
      return pay(session, "POST /v1/agents/me/stake", { body, expect: async () => expected });
    },

    /** Starts to withdraw the whole stake. The service pays it out after the unstaking delay. */
    unstake: () => {
      const calldata = encodeCall("requestUnstake(address)", caller);
      const signing = { action: "unstake", contract: network.registry, calldata } as const;
      return callSigned(session, "POST /v1/agents/me/unstake", signing).then(dataIn);
    },

    /** Appends a version of one's profile. Omitted fields stay unchanged; null clears a field. */
    setProfile: (changes: { displayName?: string | null; bio?: string | null }) =>
      dataOf(session, "POST /v1/agents/me/profile", { body: changes }),

    /** Revokes one API key; without `keyId` all, and the service's authority to act (with a node, NotOnChain while it has any). Returns how many keys. */
    async revokeKeys(keyId?: string): Promise<number> {
      const nothing = { ...session, permission: { actions: 0, until: 0 } };
      const redeemed = await signChallenge(nothing);
      const { revokedCount } = await dataOf(
        { ...session, apiKey: "" },
        "POST /v1/agents/{address}/api-key/revoke",
        {
          path: { address: caller },
          body: { ...redeemed, ...(keyId === undefined ? {} : { keyId }) },
        },
      );
      const { node, network } = session;
      if (node && keyId === undefined) {
        const { requireNotWider } = await import("./chain-check.js");
        await requireNotWider(nothing, node).catch((cause: Error) => {
          throw new NotOnChain(`${revokedCount} keys are revoked. ${cause.message}`, network.relay, cause);
        });
      }
      return revokedCount;
    },
  };
}

/** The contract in the response to an action that the service reports as done, once a node shows it too. */
const provenAs =
  (session: Session, action: Parameters<typeof requireDone>[2]["action"], id: string) =>
  async ({ data }: { data: Contract }): Promise<Contract> => {
    const { node } = session;
    if (node) await (await import("./chain-check.js")).requireDone(session, node, { action, id });
    return data;
  };

/** The service keeps only so many unpaid attempts of an agent. */
const MAX_UNSIGNED = 5;

/** The action `create`. */
function posting(session: Session) {
  const { network, signer, unused } = session;
  const caller = signer.address.toLowerCase() as Address;
  const { terms: servedTerms } = reads(session);
  /** Escrows of those that calls in flight repeat: a program can post two contracts with the same text at a time. */
  const repeated = new Set<string>();
  /** Keys of the newest drafts that were quoted, and not signed: the service counts the same bytes as one unpaid attempt. */
  const unsigned = new Map<string, string>();

  return async (draft: Draft): Promise<Contract> => {
    // A hash takes less memory than the texts of many refused drafts.
    const text = keccak256(stringToHex(JSON.stringify(draft)));
    const same = () => [...unused].filter(([, one]) => one.text === text);
    for (const [payTo, { validBefore }] of same()) {
      // By the service's time, which can be that far ahead: while the chain stands still, no payment expires.
      if ((await session.boundedTime()) < validBefore + CLOCK_TOLERANCE) continue;
      if (session.node) await (await import("./chain-check.js")).requireNew(session.node, payTo);
      unused.delete(payTo);
    }
    const [earlier = "", left] = same().find(([payTo]) => !repeated.has(payTo)) ?? same()[0] ?? [];
    const price = parseDecimal(String(draft.budgetOrPrice));
    // A draft with other deadlines is another attempt, so what cannot be paid is not even quoted.
    if (price !== null && draft.initiator !== "worker")
      session.budget.check({
        currency: "stablecoin",
        amount: price,
        decimal: formatDecimal(price),
        resource: `${network.baseUrl}/v1/contracts`,
      });
    const key = draft.idempotencyKey ?? left?.key ?? unsigned.get(text) ?? crypto.randomUUID();
    unsigned.delete(text);
    const counterparty = draft.initiator === "worker" ? draft.client : draft.worker;
    const posted: Posted = {
      ...draft,
      contractType: "fixed",
      awardMethod: draft.awardMethod ?? (counterparty == null ? "open_tender" : "direct_award"),
      idempotencyKey: key,
    };
    const body = JSON.stringify(posted);
    const termsOf = async (id: string) =>
      ownTerms(id, { posted, body, caller, served: await servedTerms(id), network });
    let paidTo = "";
    const expect = async ({ quote }: QuotedPayment) => {
      const terms = await termsOf(quote.payTo);
      const payTo = quote.payTo.toLowerCase();
      // Otherwise both payments could be used.
      if (earlier && earlier !== payTo)
        throw new RefusedToSign(
          "payTo",
          `your payment to ${earlier} can still be used: wait until it expires, or change the draft`,
        );
      paidTo = payTo;
      return {
        payTo,
        currency: "stablecoin" as const,
        ...dueToCreate(terms),
        escrow: { id: payTo, terms, isNew: true },
      };
    };
    let signedUntil = 0;
    const beforeSigning = (validBefore: number) => {
      signedUntil = validBefore;
    };
    const parse = async (response: { data: Contract }): Promise<Contract> => {
      // Without a payment, the service could name any contract.
      if (paidTo === "") await termsOf(response.data.id);
      const id = paidTo || response.data.id;
      const contract = await provenAs(session, "create", id)(response);
      unused.delete(id);
      return { ...contract, id };
    };
    repeated.add(earlier);
    try {
      return await pay(session, "POST /v1/contracts", { body, expect, beforeSigning, parse });
    } catch (error) {
      // The service's clock can have gone back since the one before was signed.
      const validBefore = Math.max(signedUntil, unused.get(paidTo)?.validBefore ?? 0);
      if (signedUntil) unused.set(paidTo, { text, key, validBefore });
      else if (paidTo && !earlier) {
        unsigned.set(text, key);
        const [oldest = ""] = unsigned.keys();
        if (unsigned.size > MAX_UNSIGNED) unsigned.delete(oldest);
      }
      throw error;
    } finally {
      repeated.delete(earlier);
    }
  };
}

/** As the service reads it, in one order of fields: it stores the same content once only if its bytes are the same. */
const canonicalOf = <T>(content: T): T =>
  JSON.parse(canonicalize(JSON.parse(JSON.stringify(content))) ?? "") as T;
