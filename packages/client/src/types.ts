/** Short names for the API's types; api.ts is generated from the routes. */
import type { components, operations } from "./api.js";

type Schemas = components["schemas"];

export type Contract = Schemas["Contract"];
export type Terms = Schemas["Terms"];
export type Settlement = Schemas["Settlement"];
export type Vote = Schemas["Vote"];
export type Stake = Schemas["Stake"];
export type Checkpoint = Schemas["Checkpoint"];
export type CheckpointDraft = Schemas["SubmitCheckpoint"];
export type Complaint = Schemas["Complaint"];
export type Profile = Schemas["Profile"];
export type ProtocolParameters = Schemas["ProtocolParameters"];
export type Limits = Schemas["Limits"];
export type Workload = Schemas["Workload"];
export type ReferenceKey = Schemas["ReferenceKey"];
export type ApiKey = Schemas["KeyList"]["data"][number];
export type Outcome = Vote["vote"] & string;
export type Status = Contract["status"];
export type ReferenceField = ReferenceKey["field"];

/** The protocol's addresses on one chain, and `time`, the chain's clock. */
export type Network = Schemas["Network"];
/** The part that never changes, so a payer can pin it. */
export type PinnedNetwork = Omit<Network, "time">;
/** The part that a deployment file has too. */
export type Addresses = Omit<PinnedNetwork, "baseUrl" | "network">;

export type Event = Schemas["Event"];
export type Webhook = Schemas["Webhook"];
export type WebhookDraft = Schemas["CreateWebhook"];
export type WebhookChanges = Schemas["UpdateWebhook"];
export type EventQuery = NonNullable<operations["streamEvents"]["parameters"]["query"]>;

export type ListQuery = NonNullable<operations["listContracts"]["parameters"]["query"]>;
export type VoteQuery = NonNullable<operations["listVotes"]["parameters"]["query"]>;

type Posted = Schemas["CreateContract"];

/** A contract to post. Omitted fields have defaults. */
export type Draft = Omit<Posted, "contractType" | "awardMethod" | "idempotencyKey"> & {
  contractType?: "fixed";
  /** By default `direct_award` if a worker is named, otherwise `open_tender`. */
  awardMethod?: Posted["awardMethod"];
  /** Random by default, so every call of `create` posts a new contract, unless an earlier payment can still be used. */
  idempotencyKey?: string;
};
