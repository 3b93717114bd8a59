// Generated from contracts/ by `npm run abi`: the deployed code's hash with zeros for immutables, and their places in bytes.
export const DEPLOYED_CODE = {
  factory: {
    hash: "0x60d20db3677daf1ae2545f153b01a1d63e5da236d9991fa791b8fb53324c481b",
    implementation: [5388, 8346],
  },
  implementation: {
    hash: "0x45a5654c897e8d2d620858c5cb3df4541322eb52d8c6d7a2ec21527c46aeccc0",
    factory: [10421, 11502, 17058],
    asset: [3382, 7497, 10466, 15108, 18197, 20552, 20756, 20982, 21519, 23217],
    relay: [6443, 8646, 10508, 14945, 19839, 20013],
    registry: [5730, 10553, 13140],
    protocolToken: [10592, 18622],
  },
  relay: {
    hash: "0x467fb4c79061288e602d3f85cfe4653e6153153c56e6271490c031766b853838",
    factory: [3303, 5891],
  },
  registry: {
    hash: "0x68f1a3aa233e2adc95882ab7d1548821b366802e2db6a3e68bb73377cd6f97eb",
    protocolToken: [980, 1656, 1718, 3531],
    factory: [598, 2003, 4025],
    relay: [2203, 2282, 3034],
  },
  protocolToken: {
    hash: "0x1a2124833bf0da35037ab59c384282137be22e0e7115e3cfaac245c0a5b352a7",
    factory: [2792, 4977],
    registry: [5849, 7828, 8134],
    grantDelay: [4058, 6614, 7465, 7681],
    eip712: [8529, 8718, 8482, 8608, 8646, 3777, 3818],
  },
} as const;

/** Errors that the contracts declare. */
export type DeclaredError =
  | "AddressEmptyCode"
  | "AlreadySettled"
  | "AlreadyVoted"
  | "AuthorizationSpent"
  | "CommitmentMismatch"
  | "DeadlinePassed"
  | "DelegationOutdated"
  | "DirectTransferNotRefundable"
  | "FailedCall"
  | "FailedDeployment"
  | "InitiatorCannotAccept"
  | "InsufficientBalance"
  | "InsufficientUnbookedBalance"
  | "InvalidActionDeadline"
  | "InvalidActionSignature"
  | "InvalidAuthorization"
  | "InvalidDelegationSignature"
  | "InvalidOutcomes"
  | "InvalidParameters"
  | "InvalidTerms"
  | "NoDraw"
  | "NotAgentOrOperator"
  | "NotCounterparty"
  | "NotDrawn"
  | "NotEligible"
  | "NotEscrow"
  | "NotOperator"
  | "NotParty"
  | "NotPayerOrOperator"
  | "NotReleasable"
  | "NotStaked"
  | "NothingToClaim"
  | "NothingToDecline"
  | "OpeningClosed"
  | "PanelFull"
  | "PartyCannotVote"
  | "PaymentFailed"
  | "PayoutHeld"
  | "ReentrancyGuardReentrantCall"
  | "SafeERC20FailedOperation"
  | "TallyNotDue"
  | "Unbonding"
  | "UnknownParameters"
  | "VoteNotSealed"
  | "VotingClosed"
  | "VotingOpen"
  | "WrongStatus"
  | "ZeroAddress";
