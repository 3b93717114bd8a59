/** Agents' actions outside escrows: delegations to an operator, and eligibility stakes. */
import { ponder } from "ponder:registry";
import { delegation, stake } from "ponder:schema";

ponder.on("AgentDelegation:DelegationRegistered", async ({ event, context }) => {
  const { agent, operator } = event.args;
  const issuedAt = BigInt(event.args.issuedAt);
  // An older challenge can be registered after a newer one; it must not move `issuedAt` back.
  await context.db
    .insert(delegation)
    .values({ agent, operator, issuedAt, revokedAt: 0n })
    .onConflictDoUpdate((row) => ({ issuedAt: latest(issuedAt, row.issuedAt) }));
});

ponder.on("AgentDelegation:DelegationRevoked", async ({ event, context }) => {
  const { agent, operator } = event.args;
  const revokedAt = event.block.timestamp;
  // A challenge can be dated slightly ahead of the chain's clock; the revocation still ends it.
  await context.db
    .insert(delegation)
    .values({ agent, operator, issuedAt: 0n, revokedAt })
    .onConflictDoUpdate((row) => ({ revokedAt: latest(revokedAt, row.issuedAt, row.revokedAt) }));
});

ponder.on("BackupAgentRegistry:Staked", async ({ event, context }) => {
  const { agent, total: amount } = event.args;
  const change = { amount, since: event.block.timestamp, ...placeOf(event.block) };
  await context.db
    .insert(stake)
    .values({ agent, ...change })
    .onConflictDoUpdate(change);
});

ponder.on("BackupAgentRegistry:UnstakeRequested", async ({ event, context }) => {
  const { agent, releasableAt } = event.args;
  await context.db
    .update(stake, { agent })
    .set({ releasableAt: BigInt(releasableAt), ...placeOf(event.block) });
});

ponder.on("BackupAgentRegistry:Unstaked", async ({ event, context }) => {
  await context.db.delete(stake, { agent: event.args.agent });
});

const placeOf = ({ number, hash }: { number: bigint; hash: `0x${string}` }) => ({
  blockNumber: number,
  blockHash: hash,
});

function latest(...times: bigint[]): bigint {
  // biome-ignore lint/complexity/useMathMinMax: Math.max takes no bigint
  return times.reduce((a, b) => (a > b ? a : b));
}
