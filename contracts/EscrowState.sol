// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {AgentSignatures} from "./AgentSignatures.sol";
import {IAgentDelegation} from "./interfaces/IAgentDelegation.sol";
import {IBackupAgentRegistry} from "./interfaces/IBackupAgentRegistry.sol";
import {IEIP3009} from "./interfaces/IEIP3009.sol";
import {IProtocolToken} from "./interfaces/IProtocolToken.sol";
import {Dependencies, IWorkingContractEscrow} from "./interfaces/IWorkingContractEscrow.sol";
import {IWorkingContractFactory} from "./interfaces/IWorkingContractFactory.sol";
import {Settlement} from "./libraries/Settlement.sol";
import {TermsCodec} from "./libraries/TermsCodec.sol";
import {AgentAction, Outcome, Phase, Status, Terms} from "./types/Types.sol";

/// @notice Terms, facts, and the status that follows from them and the time. Moves no money.
abstract contract EscrowState is IWorkingContractEscrow, AgentSignatures, ReentrancyGuardTransient {
    using TermsCodec for bytes;

    /// @dev One storage slot. Every lifecycle step writes it; without a dispute, a direct transfer or a refused payout
    /// it is the only one.
    struct Facts {
        /// The party that matched the initiator.
        address counterparty;
        Phase phase;
        /// When the parties were matched; once the contract has ended, when it ended.
        uint40 matchedOrEndedAt;
        /// Packed {Outcome} per criterion.
        uint24 outcomes;
        bool settled;
        /// The deposit arrived before `open`: one authorization of the initiator for it must still be marked spent.
        bool openedFromBalance;
    }

    /// @dev Bytes of code in front of the arguments of OpenZeppelin's clones.
    uint256 private constant PROXY_LENGTH = 45;

    /// @dev The lower bit of each packed outcome.
    uint24 private constant ODD_BITS = 0x555555;

    IWorkingContractFactory internal immutable FACTORY;
    IEIP3009 internal immutable ASSET;
    address internal immutable OPERATOR;
    IBackupAgentRegistry internal immutable REGISTRY;
    IProtocolToken internal immutable REWARD_TOKEN;

    Facts internal _facts;
    Jury internal _jury;

    constructor(Dependencies memory d) {
        FACTORY = d.factory;
        ASSET = d.asset;
        OPERATOR = d.operator;
        REGISTRY = d.registry;
        REWARD_TOKEN = d.rewardToken;
    }

    /// @inheritdoc IWorkingContractEscrow
    /// @dev One getter for all: each further function adds 22 gas to every call with a higher selector.
    function dependencies() external view returns (Dependencies memory) {
        return Dependencies({
            factory: FACTORY, asset: ASSET, operator: OPERATOR, registry: REGISTRY, rewardToken: REWARD_TOKEN
        });
    }

    /// @inheritdoc IWorkingContractEscrow
    function terms() external view returns (Terms memory) {
        return _terms().unpack();
    }

    /// @inheritdoc IWorkingContractEscrow
    function status() external view returns (Status) {
        return _statusOf(_terms(), _facts);
    }

    /// @inheritdoc IWorkingContractEscrow
    function client() external view returns (address) {
        return _clientOf(_terms(), _facts);
    }

    /// @inheritdoc IWorkingContractEscrow
    function worker() external view returns (address) {
        return _workerOf(_terms(), _facts);
    }

    /// @inheritdoc IWorkingContractEscrow
    function outcomeOf(uint256 criterion) external view returns (Outcome) {
        bytes memory t = _terms();
        Facts memory f = _facts;
        // During review nothing is accepted yet: only computed outcomes count.
        return _at(_statusOf(t, f) == Status.UnderReview ? f.outcomes : _outcomesOf(t, f), criterion);
    }

    /// @inheritdoc IWorkingContractEscrow
    function booked() external view returns (uint256) {
        return _bookedOf(_terms(), _facts);
    }

    /// @dev The packed terms that follow this escrow's proxy code. Without a counterparty zeros take its place, so
    /// there is no length to ask for. The copy ends with a whole word (160 bytes, 192 with the length), so that the
    /// memory behind the terms is defined; `new bytes` would clear it first.
    function _terms() internal view returns (bytes memory packed) {
        uint256 length = TermsCodec.MAX_LENGTH;
        assembly ("memory-safe") {
            packed := mload(0x40)
            mstore(0x40, add(packed, 192))
            mstore(packed, length)
            extcodecopy(address(), add(packed, 32), PROXY_LENGTH, 160)
        }
    }

    /// @dev Only here do time limits turn facts into a status. "Before" is strict: at the deadline it has passed.
    function _statusOf(bytes memory t, Facts memory f) internal view returns (Status) {
        Phase phase = f.phase;
        if (phase == Phase.Created) {
            return block.timestamp < t.matchDeadline() ? Status.Created : Status.CancelledUnmatched;
        }
        if (phase == Phase.Matched) {
            return block.timestamp < t.deliveryDeadline() ? Status.Matched : Status.CancelledAbsent;
        }
        if (phase == Phase.Delivered && block.timestamp < t.reviewDeadline()) return Status.UnderReview;
        if (phase == Phase.Delivered || phase == Phase.Approved || phase == Phase.Tallied) {
            return f.settled ? _settledStatusOf(t.price(), _tallyOf(t, f)) : Status.Resolved;
        }
        if (phase == Phase.Disputed) return Status.Disputed;
        if (phase == Phase.Declined) return Status.CancelledUnmatched;
        if (phase == Phase.Cancelled) return Status.CancelledByInitiator;
        if (phase == Phase.Withdrawn) return Status.CancelledWithdrawn;
        return Status.None;
    }

    /// @dev Named by who received the price.
    function _settledStatusOf(uint256 price, Settlement.Tally memory tally_) internal pure returns (Status) {
        uint256 released = Settlement.released(price, tally_);
        if (released == price) return Status.SettledAllMet;
        return released == 0 ? Status.SettledNoneMet : Status.SettledPartial;
    }

    /// @dev When the contract ended. The caller has checked that it did.
    function _endedAtOf(bytes memory t, Facts memory f) internal pure returns (uint40) {
        Phase phase = f.phase;
        if (phase == Phase.Created) return t.matchDeadline();
        if (phase == Phase.Matched) return t.deliveryDeadline();
        if (phase == Phase.Delivered) return t.reviewDeadline();
        return f.matchedOrEndedAt;
    }

    function _clientOf(bytes memory t, Facts memory f) internal pure returns (address) {
        return t.workerInitiated() ? f.counterparty : t.initiator();
    }

    function _workerOf(bytes memory t, Facts memory f) internal pure returns (address) {
        return t.workerInitiated() ? t.initiator() : f.counterparty;
    }

    function _stakeOf(bytes memory t) internal pure returns (uint256) {
        return Settlement.share(t.price(), t.workerStakeRatio());
    }

    function _disputeBondOf(bytes memory t) internal pure returns (uint256) {
        return Settlement.share(t.price(), t.disputeBondRatio());
    }

    /// @dev A Backup Agent's bond for one criterion.
    function _voteBondOf(bytes memory t) internal pure returns (uint256) {
        return Settlement.share(t.price(), t.backupAgentBondRatio());
    }

    /// @dev The initiator's deposit, paid to open.
    function _depositOf(bytes memory t) internal pure returns (uint256) {
        return t.workerInitiated() ? _stakeOf(t) : t.price();
    }

    /// @dev The outcomes that an ended contract pays by: the stored ones, or all met if the review timed out.
    function _outcomesOf(bytes memory t, Facts memory f) internal pure returns (uint24) {
        if (f.phase == Phase.Delivered && !t.computedCriteria()) return _allMet(t.criteriaCount());
        return f.outcomes;
    }

    /// @dev Computed criteria that are unclear pay as met, because the Client accepted; only a vote splits them.
    function _tallyOf(bytes memory t, Facts memory f) internal pure returns (Settlement.Tally memory tally_) {
        uint24 outcomes = _outcomesOf(t, f);
        uint24 metOrUnclear = outcomes & ODD_BITS;
        uint24 notMetOrUnclear = (outcomes >> 1) & ODD_BITS;
        tally_.notMet = Settlement.count(notMetOrUnclear & ~metOrUnclear);
        if (f.phase == Phase.Tallied) tally_.unclear = Settlement.count(notMetOrUnclear & metOrUnclear);
        tally_.met = t.criteriaCount() - tally_.notMet - tally_.unclear;
    }

    function _allMet(uint256 criteriaCount) internal pure returns (uint24) {
        return uint24(ODD_BITS & ((1 << (2 * criteriaCount)) - 1));
    }

    function _at(uint24 outcomes, uint256 criterion) internal pure returns (Outcome) {
        return Outcome((outcomes >> (2 * criterion)) & 3);
    }

    /// @dev Reverts unless there is exactly one outcome per criterion and no other bit is set.
    function _requireComplete(uint24 outcomes, uint256 criteriaCount) internal pure {
        uint24 decided = (outcomes | (outcomes >> 1)) & ODD_BITS;
        require(outcomes >> (2 * criteriaCount) == 0 && decided == _allMet(criteriaCount), InvalidOutcomes(outcomes));
    }

    /// @dev Money booked in state `f`.
    function _bookedOf(bytes memory t, Facts memory f) internal view returns (uint256) {
        return (f.settled ? 0 : _principalOf(t, f)) + _jury.held;
    }

    /// @dev Price, stake and dispute bond posted so far, before settlement.
    function _principalOf(bytes memory t, Facts memory f) internal view returns (uint256) {
        if (f.phase == Phase.None) return 0;
        if (f.counterparty == address(0)) return _depositOf(t);
        return t.price() + _stakeOf(t) + (_jury.disputedAt == 0 ? 0 : _disputeBondOf(t));
    }

    function _requireStatus(bytes memory t, Facts memory f, Status expected) internal view {
        Status actual = _statusOf(t, f);
        require(actual == expected, WrongStatus(actual, expected));
    }

    /// @dev Reverts unless the party signed the call, is the caller, or delegated the action to the caller.
    function _requireActsFor(address party, AgentAction action) internal view {
        if (!_hasSigned(party)) _requirePartyOrDelegate(party, action);
    }

    function _requirePartyOrDelegate(address party, AgentAction action) internal view {
        require(
            msg.sender == party || IAgentDelegation(OPERATOR).isAuthorized(party, msg.sender, action),
            NotParty({caller: msg.sender, party: party})
        );
    }

    /// @dev Actions that carry the payer's own signature need no delegation; no one else may choose their arguments.
    function _requirePayerOrOperator(address payer) internal view {
        require(msg.sender == payer || msg.sender == OPERATOR, NotPayerOrOperator({caller: msg.sender, payer: payer}));
    }
}
