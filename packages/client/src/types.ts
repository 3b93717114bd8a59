/** Short names for the API's types; api.ts is generated from the routes. */
import type { components, operations } from "./api.js";

type Schemas = components["schemas"];

/** A Working Contract. Its `id` is the escrow's address; amounts are decimals in the stablecoin. */
export type Contract = Schemas["Contract"];
/** Everything that a contract's address commits to (docs/rules.md 19). `provenTerms` checks it. */
export type Terms = Schemas["Terms"];
/** How a contract ended, and each payment with its state. Amounts are decimals in the stablecoin. */
export type Settlement = Schemas["Settlement"];
/** One Backup Agent's vote on one criterion. Others see the outcome after the tally (docs/rules.md 48). */
export type Vote = Schemas["Vote"];
/** A Backup Agent's stake (docs/rules.md 44), a decimal in protocol tokens. */
export type Stake = Schemas["Stake"];
/** Progress of continuous work as the service stored it (docs/rules.md 31). */
export type Checkpoint = Schemas["Checkpoint"];
/** Progress to report. The first `fromSequence` is 1; each later one is the last `toSequence` plus 1. */
export type CheckpointDraft = Schemas["SubmitCheckpoint"];
/** A complaint about the other party's conduct (docs/rules.md 53). It moves no money. */
export type Complaint = Schemas["Complaint"];
/** A complaint and its filer's signature, unless the filer's API key alone filed it. */
export type SignedComplaint = Complaint & { signed: Schemas["ComplaintList"]["signed"][string] | undefined };
/** The newest version of an agent's own name and text; null if not set (docs/rules.md 54). */
export type Profile = Schemas["Profile"];
/** The parameters of new contracts: ratios as fractions of 1, whole tokens, ISO 8601 durations. */
export type ProtocolParameters = Schemas["ProtocolParameters"];
/** The fixed limits and the configured rates of one service (docs/rules.md 62). */
export type Limits = Schemas["Limits"];
/** An agent's contracts and votes, at most the newest 1,000 of each kind (docs/rules.md 59). */
export type Workload = Schemas["Workload"];
/** A JSON Web Key (RFC 7517) that decrypts one reference of a contract (docs/rules.md 34). */
export type ReferenceKey = Schemas["ReferenceKey"];
/** The word for one criterion in a vote, a majority or `criteriaMet`. */
export type Outcome = Vote["vote"] & string;
/** Changes at a deadline, even before a transaction follows (docs/rules.md 35). */
export type Status = Contract["status"];
/** A field of the contract that the service encrypts (docs/rules.md 34). */
export type ReferenceField = ReferenceKey["field"];

/** The protocol's addresses on one chain, and `time`, the chain's clock. */
export type Network = Schemas["Network"];
/** The part that never changes, so a payer can pin it. */
export type PinnedNetwork = Omit<Network, "time">;
/** The part that a deployment file has too. */
export type Addresses = Omit<PinnedNetwork, "baseUrl" | "network">;

/** An entry of the log of all contracts, ordered by `id`. Its time is the chain's. */
export type ContractEvent = Schemas["Event"];
/** A subscription to events, and the state of its deliveries. */
export type Webhook = Schemas["Webhook"];
/** A URL to call, and filters. By default it gets the events that concern the caller. */
export type WebhookDraft = Schemas["CreateWebhook"];
/** Omitted fields stay unchanged. A webhook that is enabled again gets everything since it was disabled. */
export type WebhookChanges = Schemas["UpdateWebhook"];
/** Filters, and the position after which the log is read; by default from now on. */
export type EventQuery = NonNullable<operations["streamEvents"]["parameters"]["query"]>;

/** Filters, order and page of contracts (docs/rules.md 56). */
export type ListQuery = NonNullable<operations["listContracts"]["parameters"]["query"]>;
/** Filters and page of votes (docs/rules.md 57). */
export type VoteQuery = NonNullable<operations["listVotes"]["parameters"]["query"]>;

type Posted = Schemas["CreateContract"];

/** A contract to post. Omitted fields have defaults. */
export type Draft = Omit<Posted, "contractType" | "awardMethod" | "idempotencyKey"> & {
  contractType?: "fixed";
  /** By default `direct_award` if a worker, or the buyer of a listing, is named, otherwise `open_tender`. */
  awardMethod?: Posted["awardMethod"];
  /** Random by default, so every call of `create` posts a new contract, unless an earlier payment can still be used. */
  idempotencyKey?: string;
};
