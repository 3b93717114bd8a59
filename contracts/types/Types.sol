// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The economic parameters of one Working Contract, fixed together with its terms.
/// Ratios are basis points; token amounts are whole protocol tokens; durations are seconds.
struct Parameters {
    uint16 protocolFee;
    uint16 workerStakeRatio;
    uint16 disputeBondRatio;
    uint16 backupAgentBondRatio;
    uint16 earlyWithdrawalSlashRatio;
    uint16 absentNoneMetClientShare;
    uint16 baUnclearSlashRatio;
    uint16 tokenMintRewardFull;
    uint16 tokenMintRewardReduced;
    uint32 baEligibilityStake;
    uint24 baVotingWindow;
    /// Zero: every eligible Backup Agent may vote.
    uint8 baRecruitCount;
    uint24 payoutHold;
}

/// @notice Everything that an escrow's address commits to.
struct Terms {
    /// The party that creates and pays first: the Client, or the Worker of a worker-initiated listing.
    address initiator;
    /// Price in the stablecoin's base units. Its width keeps all that an escrow can ever hold, with 4,095 voters' bonds
    /// on ten criteria, within 96 bits.
    uint80 price;
    /// The named Worker or the reserved Buyer; zero if anyone may accept.
    address counterparty;
    uint8 criteriaCount;
    bool workerInitiated;
    /// Criteria are computed at delivery (usage ticket) instead of being met by approval.
    bool computedCriteria;
    uint32 matchDeadline;
    uint32 withdrawalDeadline;
    uint32 deliveryDeadline;
    uint32 reviewDeadline;
    /// keccak256 of the canonical JSON (RFC 8785) of the text fields and the salt.
    bytes32 termsHash;
    Parameters parameters;
}

/// @notice An EIP-3009 transfer authorization; payer, payee and value follow from the call that uses it.
/// An empty signature means that the amount is pulled from the caller's allowance instead.
struct Authorization {
    uint256 validAfter;
    uint256 validBefore;
    bytes32 nonce;
    bytes signature;
}

/// @notice Status of a Working Contract, in the words of the specification.
enum Status {
    None,
    Created,
    Matched,
    UnderReview,
    Disputed,
    Resolved,
    SettledAllMet,
    SettledNoneMet,
    SettledPartial,
    CancelledUnmatched,
    CancelledByInitiator,
    CancelledWithdrawn,
    CancelledAbsent
}

/// @notice The last stored step; time turns it into a {Status}.
enum Phase {
    None,
    Created,
    Matched,
    Delivered,
    Disputed,
    Approved,
    Tallied,
    Declined,
    Cancelled,
    Withdrawn
}

/// @notice Actions that an agent can leave to an operator, without a signature for each. A delegation has a bit for
/// each.
enum AgentAction {
    Approve,
    Deliver,
    Withdraw,
    Cancel,
    Decline,
    /// Choosing the votes for a bond that the agent signed.
    Vote,
    Unstake,
    /// Filing a complaint with the service, which no contract sees.
    Complain
}

/// @notice What an agent signs when it signs in, and how far an operator may act for it.
struct Delegation {
    address agent;
    address operator;
    /// A bit per {AgentAction}, the first lowest. Zero: every action needs its own signature.
    uint8 actions;
    /// When the operator's power ends; zero if only a revocation ends it.
    uint40 until;
    bytes32 nonce;
    uint40 issuedAt;
    uint40 expiresAt;
}

/// @notice Outcome of, or vote on, one acceptance criterion; two bits each when packed, criterion 0 lowest.
enum Outcome {
    None,
    Met,
    NotMet,
    Unclear
}
