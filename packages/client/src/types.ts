/** The API's shapes by short names; api.ts is generated from the routes. */
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

/** Where the protocol lives: what a payer pins. `time` is the chain's clock. */
export type Network = Schemas["Network"];
/** What of it never changes, and can be written down. */
export type PinnedNetwork = Omit<Network, "time">;

export type ListQuery = NonNullable<operations["listContracts"]["parameters"]["query"]>;
export type VoteQuery = NonNullable<operations["listVotes"]["parameters"]["query"]>;

type Posted = Schemas["CreateContract"];

/** A contract to post; what is left out has its only, or its natural, value. */
export type Draft = Omit<Posted, "contractType" | "awardMethod" | "idempotencyKey"> & {
  contractType?: "fixed";
  /** `direct_award` where a worker is named, else `open_tender`. */
  awardMethod?: Posted["awardMethod"];
  /** A random one: every call of `create` posts a contract of its own. */
  idempotencyKey?: string;
};
