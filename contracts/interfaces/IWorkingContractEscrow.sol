// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization, Outcome, Status, Terms} from "../types/Types.sol";
import {Settlement} from "../libraries/Settlement.sol";
import {IAgentSignatures} from "./IAgentSignatures.sol";
import {IBackupAgentRegistry} from "./IBackupAgentRegistry.sol";
import {IEIP3009} from "./IEIP3009.sol";
import {IProtocolToken} from "./IProtocolToken.sol";
import {IWorkingContractFactory} from "./IWorkingContractFactory.sol";

/// @notice The contracts that every escrow of a deployment shares.
struct Dependencies {
    IWorkingContractFactory factory;
    IEIP3009 asset;
    /// The Relay: it acts for agents, and knows which of them delegated to it.
    address operator;
    IBackupAgentRegistry registry;
    IProtocolToken rewardToken;
}

/// @notice The escrow of one Working Contract: its money, its facts and its rules.
///
/// A party acts itself. Anyone can act for it with its signature for the action ({withSignature}); so can the
/// operator's Relay with the party's payment signature, and any account to which the party delegated the action
/// ({IAgentDelegation}). Anyone can trigger time-outs, the tally, settlement and claims.
///
/// A direct transfer is money that reached the escrow outside its own calls, for example because someone broadcast a
/// payer's authorization at the token. The escrow's balance beyond {booked} is called unbooked.
interface IWorkingContractEscrow is IAgentSignatures {
    /// @dev One storage slot, empty without a dispute or a refused payout.
    struct Jury {
        uint40 disputedAt;
        /// Block whose hash seeds the draw.
        uint40 drawBlock;
        uint16 sealedVotes;
        bool drawn;
        /// Money owed to voters and to payees that could not be paid.
        uint96 held;
    }

    event WorkingContractCreated(uint256 deposit);
    event WorkingContractMatched(address indexed counterparty, uint256 deposit);
    event WorkingContractDeclined();
    event WorkingContractCancelled();
    event WorkingContractWithdrawn();
    /// @param outcomes One packed {Outcome} per criterion; zero unless criteria are computed.
    event WorkingContractDelivered(bytes32 deliveryHash, bytes32 checkpointsRoot, uint24 outcomes);
    /// @param outcomes One packed {Outcome} per criterion.
    event WorkingContractApproved(uint24 outcomes);
    event WorkingContractDisputed(uint256 bond, uint40 votingClosesAt);
    event BackupAgentsDrawn(address[] backupAgents);
    event VoteSealed(address indexed backupAgent, bytes32 commitment, uint256 bond);
    /// @param votes One packed {Outcome} per criterion.
    event VoteOpened(address indexed backupAgent, uint24 votes);
    /// @param outcomes One packed {Outcome} per criterion.
    event WorkingContractTallied(uint24 outcomes);
    event WorkingContractSettled(
        Status indexed status, address client, address worker, address treasury, Settlement.Payout payout
    );
    event VoteClaimed(address indexed backupAgent, uint256 amount, uint256 reward);
    event RewardDeferred(address indexed backupAgent, uint256 reward);
    event PayoutDeferred(address indexed payee, uint256 amount);
    event PayoutClaimed(address indexed payee, uint256 amount);
    event DirectTransferCredited(address indexed payer, bytes32 nonce, uint256 amount);
    event DirectTransferRefunded(address indexed payer, bytes32 nonce, uint256 amount);

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
    error InsufficientUnbookedBalance(uint256 balance, uint256 bookedAfter);
    error DirectTransferNotRefundable(uint40 refundableAt);
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

    /// @notice Locks the initiator's deposit: the price, or the Worker Stake of a listing. Anyone can call.
    ///
    /// Uses money already at the address, otherwise `deposit`. Once the match deadline has passed, money already here
    /// can only be refunded, by {settle}.
    ///
    /// Requirements:
    /// - The escrow has not been opened.
    /// - The money is already here, or the match deadline has not passed and the initiator pays.
    function open(Authorization calldata deposit) external;

    /// @notice Matches `party` as Worker (or as Client of a listing) and locks its deposit.
    ///
    /// Requirements:
    /// - Status is Created.
    /// - The caller is `party` or the operator's Relay.
    /// - `party` is neither the initiator nor zero, and is the named counterparty if one is named.
    /// - `party` pays its deposit.
    function accept(address party, Authorization calldata deposit) external;

    /// @notice The named Worker or reserved Buyer declines; the initiator's deposit is refunded.
    ///
    /// Requirements:
    /// - Status is Created and a counterparty is named.
    /// - The caller acts for that counterparty.
    function decline() external;

    /// @notice The initiator cancels before a match; its deposit is refunded.
    ///
    /// Requirements:
    /// - Status is Created.
    /// - The caller acts for the initiator.
    function cancel() external;

    /// @notice Records the Worker's delivery and the Merkle root of all checkpoints so far.
    ///
    /// Requirements:
    /// - Status is Matched.
    /// - The caller acts for the Worker.
    /// - `outcomes` has one outcome per criterion if criteria are computed, and is zero otherwise.
    function deliver(bytes32 deliveryHash, bytes32 checkpointsRoot, uint24 outcomes) external;

    /// @notice The Worker withdraws and loses part of its stake.
    ///
    /// Requirements:
    /// - Status is Matched and the withdrawal deadline has not passed.
    /// - The caller acts for the Worker.
    function withdraw() external;

    /// @notice The Client approves the delivery.
    ///
    /// Requirements:
    /// - Status is UnderReview.
    /// - The caller acts for the Client.
    function approve() external;

    /// @notice The Client disputes the delivery and locks the Dispute Bond.
    ///
    /// Requirements:
    /// - Status is UnderReview.
    /// - The caller is the Client or the operator's Relay.
    /// - The Client pays the bond.
    function dispute(Authorization calldata bond) external;

    /// @notice Draws the panel of a contract with a recruit count, from a block hash after the dispute. Anyone can
    /// call.
    /// If that hash is already out of reach, the call draws no one and takes the next block as the seed: call again
    /// after that block.
    ///
    /// Requirements:
    /// - Status is Disputed, the contract has a recruit count, and no draw was made.
    /// - The block after the seed's has begun.
    ///
    /// Seats go to agents that were in the pool before the match and are still eligible. The draw looks at up to four
    /// slots of the pool per seat, each once. Someone who sees the seed can change nothing but their own place, and pay
    /// out agents that have unbonded ({IBackupAgentRegistry.withdrawStake}). Before the draw that removes these from
    /// it; after the draw, until they have voted, it empties their seats.
    ///
    /// Warning: whoever builds the seed's block can choose among the hashes it can reach, and so among panels.
    function draw() external;

    /// @notice Locks a Backup Agent's bond together with its sealed votes on all criteria.
    ///
    /// Requirements:
    /// - Status is Disputed and the voting window is open.
    /// - If the nonce of the bond's authorization is keccak256 of the commitment, it signs the votes, and the caller is
    /// the Backup Agent or the Relay. Otherwise `validAfter` is not 1, and the caller is the Backup Agent or an account
    /// to which it delegated voting.
    /// - The agent is eligible, is not a party and has not voted.
    /// - With a recruit count, the agent was drawn or the first half of the window has passed, and a seat is free.
    /// - `commitment` is at least 2^27, so that it cannot be read as opened votes.
    /// - The agent pays the bond for all criteria.
    function vote(address backupAgent, bytes32 commitment, Authorization calldata bond) external;

    /// @notice Opens a sealed vote. Anyone who knows its votes and salt can call.
    ///
    /// Requirements:
    /// - Status is Disputed, voting has closed, and less than 24 hours have passed since the window ended.
    /// - `votes` and `salt` match the sealed commitment.
    /// - `votes` has one outcome per criterion.
    function openVote(address backupAgent, uint24 votes, bytes32 salt) external;

    /// @notice Fixes the majority outcome of each criterion. Anyone can call.
    ///
    /// Requirements:
    /// - Status is Disputed.
    /// - Voting has closed and every vote is open, or 24 hours have passed since the window ended.
    function tally() external;

    /// @notice Pays Client, Worker and Treasury. Anyone can call.
    ///
    /// Requirements:
    /// - The contract has ended and is not settled.
    /// - The payout hold has passed, or the caller is the operator's reviewer.
    function settle() external;

    /// @notice Pays a Backup Agent's bond and its share of slashed bonds, and mints its reward. Anyone can call.
    ///
    /// Requirements:
    /// - The votes are tallied, and the agent opened its vote and has something left to claim.
    /// - The payout hold has passed, or the caller is the operator's reviewer.
    function claim(address backupAgent) external;

    /// @notice Retries paying an amount that `payee` could not receive. Anyone can call.
    ///
    /// Requirements:
    /// - An amount is deferred for `payee`, and the token now accepts the transfer.
    function claimDeferred(address payee) external;

    /// @notice Carries out {accept}, {dispute} or {vote}, given as calldata, and allows a direct transfer to pay for
    /// it. If the token rejects the authorization because it has already been used, the action is paid with the money
    /// that this authorization brought.
    ///
    /// Requirements:
    /// - The caller is the operator's Relay, which has seen that transfer.
    /// - The authorization is used, neither credited nor refunded yet, and the unbooked balance covers its amount.
    function withDirectTransfer(bytes calldata action) external;

    /// @notice Refunds a direct transfer made with `payer`'s authorization to `payer`.
    ///
    /// If the escrow was opened from its balance, the initiator's first authorization of exactly the deposit counts as
    /// the one that paid for the opening: the call marks it as credited, emits {DirectTransferCredited} and pays
    /// nothing.
    ///
    /// Requirements:
    /// - The payer signed the authorization, to this escrow and for `amount`. It is used, and neither credited nor
    ///   refunded yet.
    /// - The contract has been opened: before that, money here is the initiator's. {open} books it as the deposit,
    /// which {settle} refunds if the match deadline has passed.
    /// - The caller is the operator's Relay, which has seen the transfer. Anyone else must wait until a week after the
    ///   review deadline if `payer` has money booked here, otherwise two weeks.
    ///
    /// Warning: an authorization that was cancelled, that this escrow has consumed, or whose money opened it looks like
    /// one of a direct transfer. A Relay signer that colludes with its payer can have it paid from other direct
    /// transfers; so can anyone after the time above.
    function refundDirectTransfer(address payer, uint256 amount, Authorization calldata authorization) external;

    /// @notice The terms that this escrow's address commits to.
    function terms() external view returns (Terms memory);

    /// @notice Status at the current time: deadlines count even before a transaction records their effect.
    function status() external view returns (Status);

    /// @notice The Client; zero for a listing until a Buyer accepts.
    function client() external view returns (address);

    /// @notice The Worker; zero until one accepts, unless the Worker is the initiator.
    function worker() external view returns (address);

    /// @notice Current outcome of a criterion: computed at delivery, accepted by the Client or by the review deadline,
    /// or voted. None while undecided.
    function outcomeOf(uint256 criterion) external view returns (Outcome);

    /// @notice Money that is booked; the balance is never below it.
    function booked() external view returns (uint256);

    /// @notice Amount that `payee` could not receive; {claimDeferred} pays it.
    function deferred(address payee) external view returns (uint256);

    /// @notice Whether an authorization was credited or refunded after someone used it directly at the token.
    function directTransferSpent(address payer, bytes32 nonce) external view returns (bool);

    /// @notice State of the dispute.
    function jury() external view returns (Jury memory);

    /// @notice Whether {draw} gave a Backup Agent a seat.
    function isDrawn(address backupAgent) external view returns (bool);

    /// @notice A Backup Agent's ballot: its commitment while sealed, then the packed votes with bit 24 set, bit 25 once
    /// claimed, and bit 26 once no reward is left to claim.
    function ballotOf(address backupAgent) external view returns (uint256);

    /// @notice Ballots opened so far.
    function openedVotes() external view returns (uint256);

    /// @notice The contracts that this escrow calls.
    function dependencies() external view returns (Dependencies memory);
}
