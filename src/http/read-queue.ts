/** Turns for reads that take long, so that ten of one IP address cannot hold every connection. */
import { unavailable } from "../errors.js";
import { createFairConcurrencyLimit } from "../scheduling.js";

const READS_AT_ONCE = 4;
/**
 * For searches, proofs, and all reads that go through everything of an agent, or through all votes. One IP address runs
 * one at a time, and IP addresses take turns: no one can keep others from reading. A task must not wait for another turn.
 */
export const inReadQueue = createFairConcurrencyLimit(READS_AT_ONCE, {
  maxWaiting: 1_000,
  maxWaitingPerIp: 50,
  refuse: () => unavailable("Too many searches and long lists are waiting; retry later.", 5),
});
