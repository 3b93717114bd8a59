// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Blockhash} from "@openzeppelin/contracts/utils/Blockhash.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {EscrowCustody} from "./EscrowCustody.sol";
import {IWorkingContractEscrow} from "./interfaces/IWorkingContractEscrow.sol";
import {Settlement} from "./libraries/Settlement.sol";
import {TermsCodec} from "./libraries/TermsCodec.sol";
import {AgentAction, Authorization, Outcome, Phase, Status} from "./types/Types.sol";

/// @notice Dispute, draw, sealed votes, tally and the voters' claims.
///
/// A ballot is one word: zero (no vote), a commitment (sealed), or the opened votes with flags. Votes are counted as
/// they are opened, so settlement stays O(criteria) for any number of voters.
abstract contract EscrowJury is EscrowCustody {
    using TermsCodec for bytes;

    uint256 private constant OPENED = 1 << 24;
    uint256 private constant CLAIMED = 1 << 25;
    uint256 private constant REWARDED = 1 << 26;
    /// @dev Commitments are larger than any opened ballot; a smaller one is as unlikely as a hash collision.
    uint256 private constant LARGEST_OPENED = (1 << 27) - 1;

    /// @dev 12 bits per counter: ten for `met` votes, ten for `not met` votes, one for opened ballots.
    uint256 private constant COUNTER_BITS = 12;
    uint256 private constant MAX_VOTERS = (1 << COUNTER_BITS) - 1;
    uint256 private constant NOT_MET_COUNTERS = 10 * COUNTER_BITS;
    uint256 private constant OPENED_COUNTER = 20 * COUNTER_BITS;

    uint40 private constant OPENING_PERIOD = 24 hours;
    /// @dev Bounds the gas of a draw, however large the pool is.
    uint256 private constant LOOKS_PER_SEAT = 4;
    uint256 private constant TOKEN_UNIT = 1e18;
    uint256 private constant STABLECOIN_UNIT = 1e6;
    /// @dev Whole tokens that a dispute can mint for 1.0 paid to the Treasury; `npm run economics` shows why.
    uint256 private constant REWARD_PER_FEE = 200;

    mapping(address backupAgent => uint256) private _ballots;
    /// @inheritdoc IWorkingContractEscrow
    mapping(address backupAgent => bool) public isDrawn;
    uint256 private _counts;

    /// @inheritdoc IWorkingContractEscrow
    function dispute(Authorization calldata bond) external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        _requireStatus(t, f, Status.UnderReview);
        address client_ = _clientOf(t, f);
        _requirePayerOrOperator(client_);

        uint256 amount = _disputeBondOf(t);
        _facts.phase = Phase.Disputed;
        _jury.disputedAt = uint40(block.timestamp);
        _jury.drawBlock = uint40(block.number) + 1;

        emit WorkingContractDisputed(amount, uint40(block.timestamp) + t.baVotingWindow());

        _collect(client_, amount, t.price() + _stakeOf(t) + amount, bond);
    }

    /// @inheritdoc IWorkingContractEscrow
    function draw() external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        _requireStatus(t, f, Status.Disputed);
        Jury memory jury_ = _jury;
        uint256 seats = t.baRecruitCount();
        require(seats != 0 && !jury_.drawn && block.number > jury_.drawBlock, NoDraw());
        bytes32 seed = Blockhash.blockHash(jury_.drawBlock);
        if (seed == 0) {
            // The seed's hash is out of reach: the next block provides another seed.
            _jury.drawBlock = uint40(block.number) + 1;
            return;
        }

        _jury.drawn = true;
        uint256 pool = REGISTRY.poolSize(f.matchedOrEndedAt);
        // The first steps of a shuffle: each slot is looked at once, and no two slots hold the same agent. With
        // replacement, seats stayed empty although a small pool had the agents for them.
        uint256 looks = Math.min(seats * LOOKS_PER_SEAT, pool);
        uint256[] memory moved = new uint256[](2 * looks);
        address[] memory chosen = new address[](seats);
        uint256 count;
        for (uint256 i = 0; i < looks && count < seats; ++i) {
            address candidate = REGISTRY.poolAt(_shuffle(moved, pool, seed, i), f.matchedOrEndedAt);
            if (_isParty(t, candidate)) continue;
            if (!REGISTRY.isEligible(candidate, _eligibilityStakeOf(t), f.matchedOrEndedAt)) continue;
            isDrawn[candidate] = true;
            chosen[count++] = candidate;
        }
        address[] memory drawn = new address[](count);
        for (uint256 i = 0; i < count; ++i) {
            drawn[i] = chosen[i];
        }

        emit BackupAgentsDrawn(drawn);
    }

    /// @inheritdoc IWorkingContractEscrow
    function vote(address backupAgent, bytes32 commitment, Authorization calldata bond) external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        Jury memory jury_ = _jury;
        _requireStatus(t, f, Status.Disputed);
        // A payment whose nonce is the commitment's hash signs the votes too: no one finds a commitment for the nonce
        // of another payment. For any other the operator, which could choose the votes, needs a delegation, and cannot
        // use what our client signs for a deposit.
        if (bond.nonce == keccak256(abi.encode(commitment))) {
            _requirePayerOrOperator(backupAgent);
        } else {
            _requirePartyOrDelegate(backupAgent, AgentAction.Vote);
            require(bond.validAfter != RECEIVED, CommitmentMismatch(backupAgent));
        }
        uint40 closesAt = jury_.disputedAt + t.baVotingWindow();
        require(block.timestamp < closesAt, VotingClosed(closesAt));
        require(!_isParty(t, backupAgent), PartyCannotVote(backupAgent));
        require(_ballots[backupAgent] == 0, AlreadyVoted(backupAgent));
        require(uint256(commitment) > LARGEST_OPENED, CommitmentMismatch(backupAgent));
        uint256 seats = t.baRecruitCount() == 0 ? MAX_VOTERS : t.baRecruitCount();
        require(jury_.sealedVotes < seats, PanelFull(seats));
        if (t.baRecruitCount() != 0) {
            uint40 openToAllAt = jury_.disputedAt + t.baVotingWindow() / 2;
            require(block.timestamp >= openToAllAt || isDrawn[backupAgent], NotDrawn(backupAgent, openToAllAt));
        }

        uint256 amount = t.criteriaCount() * _voteBondOf(t);
        _ballots[backupAgent] = uint256(commitment);
        _jury.sealedVotes = jury_.sealedVotes + 1;
        _jury.held = jury_.held + uint96(amount);

        emit VoteSealed(backupAgent, commitment, amount);

        // Only stakes that both parties could see when they agreed: no one can pack the jury of a running contract.
        REGISTRY.lockForVote(backupAgent, _eligibilityStakeOf(t), f.matchedOrEndedAt, closesAt + OPENING_PERIOD);
        _collect(backupAgent, amount, _bookedOf(t, f), bond);
    }

    /// @inheritdoc IWorkingContractEscrow
    function openVote(address backupAgent, uint24 votes, bytes32 salt) external {
        bytes memory t = _terms();
        Jury memory jury_ = _jury;
        _requireStatus(t, _facts, Status.Disputed);
        uint40 closesAt = _votingClosesAt(t, jury_);
        require(_votingClosed(t, jury_), VotingOpen(closesAt));
        require(block.timestamp < closesAt + OPENING_PERIOD, OpeningClosed(closesAt + OPENING_PERIOD));
        uint256 ballot = _ballots[backupAgent];
        require(ballot > LARGEST_OPENED, VoteNotSealed(backupAgent));
        bytes32 commitment = keccak256(abi.encode(block.chainid, address(this), backupAgent, votes, salt));
        require(bytes32(ballot) == commitment, CommitmentMismatch(backupAgent));
        _requireComplete(votes, t.criteriaCount());

        _ballots[backupAgent] = OPENED | votes;
        uint256 counts = _counts + (1 << OPENED_COUNTER);
        for (uint256 i = 0; i < t.criteriaCount(); ++i) {
            Outcome outcome = _at(votes, i);
            if (outcome == Outcome.Met) counts += 1 << (i * COUNTER_BITS);
            if (outcome == Outcome.NotMet) counts += 1 << (NOT_MET_COUNTERS + i * COUNTER_BITS);
        }
        _counts = counts;

        emit VoteOpened(backupAgent, votes);
    }

    /// @inheritdoc IWorkingContractEscrow
    function tally() external {
        bytes memory t = _terms();
        Jury memory jury_ = _jury;
        _requireStatus(t, _facts, Status.Disputed);
        uint256 counts = _counts;
        uint40 dueAt = _votingClosesAt(t, jury_) + OPENING_PERIOD;
        require(
            (_votingClosed(t, jury_) && counts >> OPENED_COUNTER == jury_.sealedVotes) || block.timestamp >= dueAt,
            TallyNotDue(dueAt)
        );

        uint24 outcomes;
        for (uint256 i = 0; i < t.criteriaCount(); ++i) {
            outcomes |= uint24(uint256(_majorityOf(_votesOn(i, counts, jury_)))) << uint24(2 * i);
        }
        _facts.phase = Phase.Tallied;
        _facts.outcomes = outcomes;
        _facts.matchedOrEndedAt = uint40(block.timestamp);

        emit WorkingContractTallied(outcomes);
    }

    /// @inheritdoc IWorkingContractEscrow
    function claim(address backupAgent) external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        uint256 ballot = _ballots[backupAgent];
        require(
            f.phase == Phase.Tallied && ballot & OPENED != 0 && ballot <= LARGEST_OPENED
                && ballot & (CLAIMED | REWARDED) != (CLAIMED | REWARDED),
            NothingToClaim(backupAgent)
        );
        _requirePayable(t, f);

        uint256 amount = _amountDueTo(t, f.outcomes, uint24(ballot));
        uint256 reward = _rewardOf(t, f, uint24(ballot));
        if (ballot & CLAIMED != 0) amount = 0;
        _ballots[backupAgent] = ballot | CLAIMED;
        if (amount != 0) _jury.held -= uint96(amount);

        _pay(backupAgent, amount);
        // If the token's daily cap is reached, the money is still paid now and a later claim mints the reward.
        if (reward == 0 || _mintReward(backupAgent, reward)) {
            _ballots[backupAgent] = ballot | CLAIMED | REWARDED;
            emit VoteClaimed(backupAgent, amount, reward);
        } else {
            require(ballot & CLAIMED == 0, NothingToClaim(backupAgent));
            emit VoteClaimed(backupAgent, amount, 0);
            emit RewardDeferred(backupAgent, reward);
        }
    }

    /// @inheritdoc IWorkingContractEscrow
    function ballotOf(address backupAgent) external view returns (uint256) {
        return _ballots[backupAgent];
    }

    /// @inheritdoc IWorkingContractEscrow
    function jury() external view returns (Jury memory) {
        return _jury;
    }

    /// @inheritdoc IWorkingContractEscrow
    function openedVotes() external view returns (uint256) {
        return _counts >> OPENED_COUNTER;
    }

    /// @dev Slashed bonds that go to no voter.
    function _juryLeftover(bytes memory t) internal view returns (uint256 leftover) {
        Jury memory jury_ = _jury;
        if (jury_.sealedVotes == 0) return 0;
        uint256 counts = _counts;
        uint256 bond = _voteBondOf(t);
        uint256 unclearSlash = Settlement.share(bond, t.baUnclearSlashRatio());
        for (uint256 i = 0; i < t.criteriaCount(); ++i) {
            (uint256 pot, uint256 winners) = Settlement.pot(_votesOn(i, counts, jury_), bond, unclearSlash);
            leftover += winners == 0 ? pot : pot % winners;
        }
    }

    /// @dev Reverts during the payout hold, unless the reviewer releases early.
    function _requirePayable(bytes memory t, Facts memory f) internal view {
        uint40 until = _endedAtOf(t, f) + t.payoutHold();
        require(block.timestamp >= until || msg.sender == FACTORY.reviewer(), PayoutHeld(until));
    }

    function _hasVoted(address account) internal view override returns (bool) {
        return _ballots[account] != 0;
    }

    /// @dev Money due to an agent that opened `votes`.
    function _amountDueTo(bytes memory t, uint24 outcomes, uint24 votes) private view returns (uint256 amount) {
        Jury memory jury_ = _jury;
        uint256 counts = _counts;
        uint256 bond = _voteBondOf(t);
        uint256 unclearSlash = Settlement.share(bond, t.baUnclearSlashRatio());
        for (uint256 i = 0; i < t.criteriaCount(); ++i) {
            Outcome outcome = _at(outcomes, i);
            Outcome cast = _at(votes, i);
            if (outcome == Outcome.Unclear) {
                amount += bond;
            } else if (cast == outcome) {
                (uint256 pot, uint256 winners) = Settlement.pot(_votesOn(i, counts, jury_), bond, unclearSlash);
                amount += bond + pot / winners;
            } else if (cast == Outcome.Unclear) {
                amount += bond - unclearSlash;
            }
        }
    }

    /// @dev Reward (whole tokens) of an agent that opened `votes`.
    function _rewardOf(bytes memory t, Facts memory f, uint24 votes) private view returns (uint256) {
        uint24 differing = votes ^ f.outcomes;
        uint24 matching = _allMet(t.criteriaCount()) & ~(differing | (differing >> 1));
        uint24 unclear = matching & f.outcomes & (f.outcomes >> 1);
        uint256 cap = _rewardCap(t, f, _counts >> OPENED_COUNTER);
        return Settlement.count(matching ^ unclear) * Math.min(t.tokenMintRewardFull(), cap) + Settlement.count(unclear)
            * Math.min(t.tokenMintRewardReduced(), cap);
    }

    /// @dev Maximum reward (whole tokens) of one vote on one criterion. Whoever disputes with itself pays only what
    /// goes to the Treasury, so all votes together mint in proportion to that.
    function _rewardCap(bytes memory t, Facts memory f, uint256 opened) private pure returns (uint256) {
        Settlement.Payout memory payout = Settlement.resolve({
            price: t.price(),
            stake: _stakeOf(t),
            bond: 0,
            tally: _tallyOf(t, f),
            protocolFee: t.protocolFee(),
            absentNoneMetClientShare: t.absentNoneMetClientShare()
        });
        return payout.treasury * REWARD_PER_FEE / (STABLECOIN_UNIT * t.criteriaCount() * opened);
    }

    /// @dev Returns false if the token refused, as it does beyond its daily cap.
    function _mintReward(address backupAgent, uint256 reward) private returns (bool) {
        try REWARD_TOKEN.mintReward(backupAgent, reward * TOKEN_UNIT) {
            return true;
        } catch {
            return false;
        }
    }

    /// @dev Step `i` of a shuffle: takes one of the slots that are left, and moves the slot of place `i` to its place.
    function _shuffle(uint256[] memory moved, uint256 pool, bytes32 seed, uint256 i)
        private
        pure
        returns (uint256 slot)
    {
        uint256 place = i + uint256(keccak256(abi.encode(seed, i))) % (pool - i);
        slot = _slotAt(moved, place);
        moved[_entryOf(moved, place)] = ((place + 1) << 128) | _slotAt(moved, i);
    }

    function _slotAt(uint256[] memory moved, uint256 place) private pure returns (uint256) {
        uint256 entry = moved[_entryOf(moved, place)];
        return entry == 0 ? place : uint128(entry);
    }

    /// @dev Where `moved` has `place`, or room for it: a hash table, at most half full. An entry is the place plus one,
    /// then its slot. A place without an entry holds the slot of its number: memory does not grow with the pool.
    function _entryOf(uint256[] memory moved, uint256 place) private pure returns (uint256 entry) {
        entry = place % moved.length;
        while (moved[entry] != 0 && moved[entry] >> 128 != place + 1) {
            entry = (entry + 1) % moved.length;
        }
    }

    function _votesOn(uint256 criterion, uint256 counts, Jury memory jury_)
        private
        pure
        returns (Settlement.CriterionVotes memory votes)
    {
        uint256 opened = counts >> OPENED_COUNTER;
        votes.met = (counts >> (criterion * COUNTER_BITS)) & MAX_VOTERS;
        votes.notMet = (counts >> (NOT_MET_COUNTERS + criterion * COUNTER_BITS)) & MAX_VOTERS;
        votes.unclear = opened - votes.met - votes.notMet;
        votes.unopened = jury_.sealedVotes - opened;
    }

    function _majorityOf(Settlement.CriterionVotes memory votes) private pure returns (Outcome) {
        (bool decisive, bool isMet) = Settlement.majority(votes);
        if (!decisive) return Outcome.Unclear;
        return isMet ? Outcome.Met : Outcome.NotMet;
    }

    function _votingClosesAt(bytes memory t, Jury memory jury_) private pure returns (uint40) {
        return jury_.disputedAt + t.baVotingWindow();
    }

    /// @dev True once the window has passed or every recruited agent has voted.
    function _votingClosed(bytes memory t, Jury memory jury_) private view returns (bool) {
        uint256 seats = t.baRecruitCount();
        return block.timestamp >= _votingClosesAt(t, jury_) || (seats != 0 && jury_.sealedVotes == seats);
    }

    function _isParty(bytes memory t, address account) private view returns (bool) {
        return account == t.initiator() || account == _facts.counterparty;
    }

    function _eligibilityStakeOf(bytes memory t) private pure returns (uint256) {
        return t.baEligibilityStake() * TOKEN_UNIT;
    }
}
