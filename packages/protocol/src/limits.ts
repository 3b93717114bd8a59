/** Every fixed limit and window of the API (specification, "Limits"; docs/rules.md 62), served by GET /v1/limits. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Seconds. Exported apart, as the next one is, so that the client does not bundle `LIMITS`. */
export const CHALLENGE_VALIDITY = 5 * MINUTE;
/** Characters of a delivery or of supplementary materials (docs/rules.md 23). */
export const REFERENCE_LENGTH = 4_096;

/** In a header: room for a multisig of dozens of owners, within Node's limit of all headers. */
export const ACTION_SIGNATURE_LENGTH = 8_192;

/** Lengths in characters, sizes in bytes, durations in seconds. */
export const LIMITS = {
  bodyBytes: 256 * 1024,
  bodyDepth: 64,
  /** Decoding a hostile 64 KB URL takes 0.1 s, and happens before any rate limit. */
  urlLength: 8_192,

  /** Bytes that one IP address can post. Their texts are stored unpaid, for 40 minutes. */
  newContractBytesPerMinute: 32 * 1024 * 1024,
  /** Operations of one agent that can fail on chain: a wallet can sign so that only simulations pass. */
  failedOperationsPerHour: 3,
  /** Signatures of one agent that the relayer's simulation can refuse: each had passed the same check. */
  refusedOperationsPerHour: 30,

  challengeValidity: CHALLENGE_VALIDITY,
  challengeAttempts: 5,
  labelLength: 100,

  idempotencyKeyLength: 200,
  pendingAttempts: 5,
  pendingAttemptLifetime: 30 * MINUTE,
  paymentTimeout: MINUTE,
  /** Passkey and multi-owner wallets sign payments with hundreds of bytes, none with thousands. */
  paymentSignatureBytes: 8 * 1024,
  /** Room for the largest signature in hex, the echoed quote and extensions, in base64. */
  paymentHeaderLength: 32 * 1024,

  titleLength: 200,
  taskDescriptionLength: 65_536,
  acceptanceCriteria: 10,
  criterionLength: 1_000,
  /** Contract wallets' signatures have no fixed length; this leaves room for a large multisig. */
  signatureLength: 16_384,
  actionSignatureLength: ACTION_SIGNATURE_LENGTH,
  referenceLength: REFERENCE_LENGTH,
  /** Of a reference that a party encrypted for a Backup Agent; base64url, with its header. */
  shareLength: 8_192,
  applicationTermsBytes: 32 * 1024,
  reviewDeadlineHorizon: 365 * DAY,

  checkpointDataBytes: 64 * 1024,
  checkpointStringLength: 1_024,
  /** One with four hashes every 20 minutes for a whole year. */
  checkpointBytesPerContract: 16 * 1024 * 1024,
  /** For each day since the match, and as much again for each 1.00 of the price. */
  checkpointBytesPerDay: 1024 * 1024,
  checkpointPageBytes: 256 * 1024,
  checkpointClockSkew: 5 * MINUTE,

  complaintWindow: 7 * DAY,
  complaintsPerRole: 10,
  evidenceBytes: 64 * 1024,

  /** The maximum that an escrow can count. */
  votersPerContract: 4_095,
  /** After the voting window, as in EscrowJury. */
  voteOpeningWindow: DAY,
  unstakingDelay: 48 * HOUR,
  maxPayoutHold: 72 * HOUR,

  displayNameLength: 32,
  bioLength: 280,
  profileVersionsPerDay: 10,

  /** How long before a deadline its event is emitted. */
  deadlineNotice: HOUR,
  streamsPerAgent: 10,
  streamHeartbeat: 15,
  /** After this time a stream ends; its reader opens another with the last event id. */
  streamLifetime: 15 * MINUTE,
  /** A stream is dropped if its reader accepts no data for this long. */
  streamStall: 20,
  webhooksPerAgent: 10,
  /** Webhooks of all agents for events of others: an event updates every one that matches. */
  webhooksForOthers: 10_000,
  /** From this number of them on, only agents with a matched contract or a stake create more. */
  webhooksForOthersOfStrangers: 2_000,
  /** Failed events of a webhook that wait for a retry. At the limit, no new event is sent. */
  webhookRetries: 1_000,
  webhookUrlLength: 2_048,
  webhookDescriptionLength: 200,

  /** Unpaged lists that one client IP can receive at a time. */
  downloadsPerClient: 4,
  searchLength: 200,
  pageSize: 50,
  maxPageSize: 200,
} as const;
