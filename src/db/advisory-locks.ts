/** Our Postgres advisory lock numbers. Each has one use: two uses of the same number would block each other. */
export const ADVISORY_LOCKS = {
  migrations: 7_402_001,
  /** First half of the key; the second is a hash of the signer. */
  signer: 7_402_002,
  /** Held while choosing operations: two signers must not claim operations that exclude each other. */
  choice: 7_402_003,
  webhookMatching: 7_402_004,
  eventLog: 7_402_005,
  /** First half of the key; the second is a hash of the index's schema. */
  indexer: 7_402_006,
} as const;
