/** The numbers of our advisory locks in Postgres, each used for one thing: two with the same would wait for each other. */
export const ADVISORY_LOCKS = {
  migrations: 7_402_001,
  /** First half of a key whose second is a hash of the signer. */
  signer: 7_402_002,
  /** Held while choosing operations: two signers must not take what excludes each other. */
  choice: 7_402_003,
  webhookMatching: 7_402_004,
  eventLog: 7_402_005,
  /** First half of a key whose second is a hash of the index's schema. */
  indexer: 7_402_006,
} as const;
