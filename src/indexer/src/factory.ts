/** Deployed escrows, and the parameters of future ones. */
import { ponder } from "ponder:registry";
import { parameterSet, workingContract } from "ponder:schema";
import { priceBand } from "@working-contracts/protocol/amounts";
import { unpackTerms } from "@working-contracts/protocol/terms";
import { ZERO_ADDRESS } from "@working-contracts/protocol/types";

ponder.on("Factory:WorkingContractDeployed", async ({ event, context }) => {
  const { escrow, packedTerms } = event.args;
  const terms = unpackTerms(packedTerms);
  const { parameters, initiator, workerInitiated } = terms;
  const namedCounterparty = terms.counterparty === ZERO_ADDRESS ? null : terms.counterparty;

  await context.db.insert(workingContract).values({
    ...parameters,
    id: escrow,
    initiator,
    namedCounterparty,
    workerInitiated,
    computedCriteria: terms.computedCriteria,
    price: terms.price,
    priceBand: priceBand(terms.price),
    criteriaCount: terms.criteriaCount,
    matchDeadline: BigInt(terms.matchDeadline),
    withdrawalDeadline: BigInt(terms.withdrawalDeadline),
    deliveryDeadline: BigInt(terms.deliveryDeadline),
    reviewDeadline: BigInt(terms.reviewDeadline),
    termsHash: terms.termsHash,
    baEligibilityStake: BigInt(parameters.baEligibilityStake),
    phase: "none",
    // The Worker of a direct award is known from the start; a reserved Buyer is Client only once matched.
    client: workerInitiated ? null : initiator,
    worker: workerInitiated ? initiator : namedCounterparty,
    outcomes: 0,
    sealedVotes: 0,
    openedVotes: 0,
    drawn: false,
    settled: false,
    updatedBlock: event.block.number,
    updatedBlockHash: event.block.hash,
  });
});

ponder.on("Factory:ParametersChanged", async ({ event, context }) => {
  await context.db.insert(parameterSet).values({
    id: event.id,
    parameters: { ...event.args.parameters },
    changedAt: event.block.timestamp,
    blockNumber: event.block.number,
  });
});
