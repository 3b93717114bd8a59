// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, Outcome, Status, Terms} from "../types/Types.sol";
import {Settlement} from "../libraries/Settlement.sol";

/// @notice The escrow of one Working Contract: its money, its facts and its rules.
///
/// Who may act: the party itself; the operator's Relay where the act carries that party's payment signature, or where
/// the party delegated to it. Time-outs, tally, settlement and claims: anybody.
interface IWorkingContractEscrow {
    event WorkingContractCreated(uint256 deposit);
    event WorkingContractMatched(address indexed counterparty, uint256 deposit);
    event WorkingContractDeclined();
    event WorkingContractCancelled();
    event WorkingContractWithdrawn();
    event WorkingContractDelivered(bytes32 deliveryHash, bytes32 checkpointsRoot, uint24 outcomes);
    event WorkingContractApproved(uint24 outcomes);
    event WorkingContractDisputed(uint256 bond, uint40 votingClosesAt);
    event BackupAgentsDrawn(address[] backupAgents);
    event VoteSealed(address indexed backupAgent, bytes32 commitment, uint256 bond);
    event VoteOpened(address indexed backupAgent, uint24 votes);
    event WorkingContractTallied(uint24 outcomes);
    event WorkingContractSettled(
        Status indexed status, address client, address worker, address treasury, Settlement.Payout payout
    );
    event VoteClaimed(address indexed backupAgent, uint256 amount, uint256 reward);
    event RewardDeferred(address indexed backupAgent, uint256 reward);
    event PayoutDeferred(address indexed payee, uint256 amount);
    event PayoutClaimed(address indexed payee, uint256 amount);
    event SurplusCredited(address indexed payer, bytes32 nonce, uint256 amount);
    event SurplusReturned(address indexed payer, bytes32 nonce, uint256 amount);

    error WrongStatus(Status actual, Status expected);
    error NotParty(address caller, address party);
    error NotPayerOrOperator(address caller, address payer);
    error NotOperator(address caller);
    error NotCounterparty(address caller, address counterparty);
    error InitiatorCannotAccept(address initiator);
    error NothingToDecline();
    error DeadlinePassed(uint40 deadline);
    error InvalidOutcomes(uint24 outcomes);
    error PaymentFailed(address payer, uint256 amount);
    error AuthorizationSpent(address payer, bytes32 nonce);
    error InvalidAuthorization(address payer, bytes32 nonce);
    error InsufficientSurplus(uint256 surplus, uint256 amount);
    error SurplusNotReturnable(uint40 returnableAt);
    error PayoutHeld(uint40 until);
    error AlreadySettled();
    error NothingToClaim(address payee);
    error PartyCannotVote(address party);
    error NotDrawn(address backupAgent, uint40 openToAllAt);
    error AlreadyVoted(address backupAgent);
    error PanelFull(uint256 seats);
    error VotingClosed(uint40 closedAt);
    error VotingOpen(uint40 closesAt);
    error NoDraw();
    error VoteNotSealed(address backupAgent);
    error CommitmentMismatch(address backupAgent);
    error OpeningClosed(uint40 closedAt);
    error TallyNotDue(uint40 dueAt);

    /// @notice Locks the initiator's deposit (price, or Worker Stake of a listing): from money already here, else by
    /// the authorization. Where the match deadline has passed, money already here is only refunded. Anybody may call.
    ///
    /// Requirements:
    /// - Not opened before.
    function open(Authorization calldata deposit) external;

    /// @notice Matches `party` as Worker (or as Client of a listing) and locks its deposit.
    ///
    /// Requirements:
    /// - Status is Created.
    /// - The caller is `party` or the operator's Relay.
    /// - `party` is not the initiator, and is the named one where one is named.
    function accept(address party, Authorization calldata deposit) external;

    /// @notice The named Worker or reserved Buyer declines; the initiator's deposit goes back.
    function decline() external;

    /// @notice The initiator cancels before a match; its deposit goes back.
    function cancel() external;

    /// @notice Records the Worker's delivery and the Merkle root of all checkpoints so far.
    ///
    /// Requirements:
    /// - Status is Matched; the caller acts for the Worker.
    /// - `outcomes` has one outcome per criterion where criteria are computed, and is zero otherwise.
    function deliver(bytes32 deliveryHash, bytes32 checkpointsRoot, uint24 outcomes) external;

    /// @notice The Worker leaves before the withdrawal deadline and loses part of its stake.
    function withdraw() external;

    /// @notice The Client approves the delivery.
    function approve() external;

    /// @notice The Client disputes the delivery and locks the Dispute Bond.
    function dispute(Authorization calldata bond) external;

    /// @notice Draws the jury of a contract with a recruit count, from a block hash after the dispute. Anybody may
    /// call. Where that hash is out of reach already, the call draws nobody and names the next block as the seed's:
    /// call again after it.
    ///
    /// Requirements:
    /// - Status is Disputed, the contract has a recruit count, and no draw was made.
    /// - The block after the seed's has begun.
    ///
    /// Seats go to agents of the pool as it was before the dispute that are still eligible: nobody who sees the seed
    /// can change anything but its own place.
    ///
    /// Warning: whoever builds the seed's block can choose among the hashes it can reach, and with them among juries.
    function draw() external;

    /// @notice Locks a Backup Agent's bond together with its sealed votes on all criteria.
    ///
    /// Requirements:
    /// - Status is Disputed and the voting window is open.
    /// - The caller is the Backup Agent, or the Relay it delegated to: a bond's authorization does not sign the votes.
    /// - The agent is eligible, no party, has not voted, and was drawn where a draw limits the first half of the
    /// window.
    function vote(address backupAgent, bytes32 commitment, Authorization calldata bond) external;

    /// @notice Opens a sealed vote; knowing its content and salt is all that it takes.
    ///
    /// Requirements:
    /// - Voting has closed, less than 24 hours ago.
    function openVote(address backupAgent, uint24 votes, bytes32 salt) external;

    /// @notice Fixes the majority outcome per criterion once every vote is open, or 24 hours after voting closed.
    function tally() external;

    /// @notice Pays Client, Worker and Treasury. Anybody may call once the payout hold has passed; the operator's
    /// reviewer may call before.
    function settle() external;

    /// @notice Pays a Backup Agent's bond, its share of slashed bonds, and mints its reward. Anybody may call once due.
    function claim(address backupAgent) external;

    /// @notice Tries again to pay an amount that `payee` could not receive. Anybody may call.
    function claimDeferred(address payee) external;

    /// @notice Carries out {accept}, {dispute} or {vote} (its calldata), which pays with surplus where the token takes
    /// the authorization no more: with the money that this authorization brought before, outside of this escrow's
    /// calls.
    ///
    /// Requirements:
    /// - The caller is the operator's Relay, which has seen that transfer.
    /// - The authorization is used, neither credited nor returned yet, and the surplus covers its amount.
    function withSurplus(bytes calldata act) external;

    /// @notice Sends money that arrived by `payer`'s authorization outside of this escrow's calls back to `payer`.
    ///
    /// Requirements:
    /// - The authorization is the payer's, to this escrow, for `amount`, used, and neither credited nor returned yet.
    /// - The contract has been opened: before, money here is the initiator's, and {open} credits or refunds it.
    /// - The caller is the operator's Relay, which has seen the transfer; or a week has passed after the review
    ///   deadline for an address that has money booked here, two weeks for any other.
    ///
    /// Warning: a cancelled authorization looks like a used one. A Relay signer that colludes with the signer of a
    /// cancelled authorization can have it paid from money that reached the escrow outside of the escrow's own calls.
    function returnSurplus(address payer, uint256 amount, Authorization calldata authorization) external;

    function terms() external view returns (Terms memory);
    function status() external view returns (Status);
    function client() external view returns (address);
    function worker() external view returns (address);

    /// @notice Outcome of a criterion as it stands now: computed at delivery, accepted by the Client or by the review
    /// deadline, or voted. None while undecided.
    function outcomeOf(uint256 criterion) external view returns (Outcome);

    /// @notice Money that the books account for; the balance is never below it.
    function booked() external view returns (uint256);
}
