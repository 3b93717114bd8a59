// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Outcome, Parameters, Status, Terms} from "../../../contracts/types/Types.sol";

/// @notice A second payout ledger, from the published formulas and vote by vote, which shares no code with the
/// contracts: the gain or loss of each account once everyone is paid.
library Ledger {
    uint256 private constant CLIENT = 0;
    uint256 private constant WORKER = 1;
    uint256 private constant TREASURY = 2;
    uint256 private constant FIRST_VOTER = 3;
    uint256 private constant VOTERS = 7;

    struct Ballot {
        uint24 votes;
        bool opened;
    }

    struct Due {
        Status status;
        /// Client, Worker, Treasury, then the voters.
        int256[FIRST_VOTER + VOTERS] money;
        /// Whole tokens of each voter.
        uint256[VOTERS] tokens;
    }

    /// @notice Cancelled, declined or unmatched: the initiator's deposit is refunded.
    function unmatched(Status status) internal pure returns (Due memory due) {
        due.status = status;
    }

    function withdrawn(Terms memory t) internal pure returns (Due memory due) {
        int256 slash = int256(_share(_stake(t), t.parameters.earlyWithdrawalSlashRatio));
        due.status = Status.CancelledWithdrawn;
        due.money[CLIENT] = slash;
        due.money[WORKER] = -slash;
    }

    function absent(Terms memory t) internal pure returns (Due memory due) {
        int256 stake = int256(_stake(t));
        int256 toClient = int256(_share(_stake(t), t.parameters.absentNoneMetClientShare));
        due.status = Status.CancelledAbsent;
        due.money[CLIENT] = toClient;
        due.money[WORKER] = -stake;
        due.money[TREASURY] = stake - toClient;
    }

    /// @notice Approved, or review timed out: every criterion met, or as computed, with unclear paying as met.
    function accepted(Terms memory t, uint24 computed) internal pure returns (Due memory due) {
        uint256 notMet;
        for (uint256 i = 0; i < t.criteriaCount; ++i) {
            if (_at(computed, i) == Outcome.NotMet) ++notMet;
        }
        _resolve(due, t, [t.criteriaCount - notMet, 0, notMet], 0);
    }

    function disputed(Terms memory t, Ballot[] memory ballots) internal pure returns (Due memory due) {
        uint256[3] memory tally;
        for (uint256 i = 0; i < t.criteriaCount; ++i) {
            Outcome outcome = _majority(ballots, i);
            ++tally[outcome == Outcome.Met ? 0 : outcome == Outcome.Unclear ? 1 : 2];
            _payJury(due, t, ballots, i, outcome);
        }
        uint256 paid = _resolve(due, t, tally, _share(t.price, t.parameters.disputeBondRatio));
        _reward(due, t, ballots, paid);
    }

    /// @dev Each matching vote mints its reward, at most an equal share of 200 tokens for 1.0 paid to the Treasury.
    function _reward(Due memory due, Terms memory t, Ballot[] memory ballots, uint256 paid) private pure {
        uint256 opened;
        for (uint256 i = 0; i < ballots.length; ++i) {
            if (ballots[i].opened) ++opened;
        }
        if (opened == 0) return;
        uint256 most = paid * 200 / (1e6 * t.criteriaCount * opened);
        for (uint256 criterion = 0; criterion < t.criteriaCount; ++criterion) {
            Outcome outcome = _majority(ballots, criterion);
            uint256 reward =
                outcome == Outcome.Unclear ? t.parameters.tokenMintRewardReduced : t.parameters.tokenMintRewardFull;
            for (uint256 i = 0; i < ballots.length; ++i) {
                if (!ballots[i].opened || _at(ballots[i].votes, criterion) != outcome) continue;
                due.tokens[i] += reward < most ? reward : most;
            }
        }
    }

    /// @dev One criterion's jury: each voter's loss, and the pot shared by those that matched a decisive majority.
    function _payJury(Due memory due, Terms memory t, Ballot[] memory ballots, uint256 criterion, Outcome outcome)
        private
        pure
    {
        uint256 bond = _share(t.price, t.parameters.backupAgentBondRatio);
        uint256 pot;
        uint256 winners;
        for (uint256 i = 0; i < ballots.length; ++i) {
            Outcome cast = _at(ballots[i].votes, criterion);
            uint256 lost;
            if (!ballots[i].opened) {
                lost = bond;
            } else if (outcome != Outcome.Unclear) {
                if (cast == outcome) ++winners;
                else lost = cast == Outcome.Unclear ? _share(bond, t.parameters.baUnclearSlashRatio) : bond;
            }
            pot += lost;
            due.money[FIRST_VOTER + i] -= int256(lost);
        }
        uint256 each = winners == 0 ? 0 : pot / winners;
        for (uint256 i = 0; i < ballots.length; ++i) {
            if (!ballots[i].opened || _at(ballots[i].votes, criterion) != outcome) continue;
            if (outcome != Outcome.Unclear) due.money[FIRST_VOTER + i] += int256(each);
        }
        due.money[TREASURY] += int256(pot - each * winners);
    }

    /// @dev Price, fee, stake and Dispute Bond by {met, unclear, not met}.
    function _resolve(Due memory due, Terms memory t, uint256[3] memory tally, uint256 bond)
        private
        pure
        returns (uint256 paid)
    {
        uint256 price = t.price;
        uint256 gross = price * (2 * tally[0] + tally[1]) / (2 * t.criteriaCount);
        uint256 fee = _share(gross, t.parameters.protocolFee);
        uint256 slash = _stake(t) * tally[2] / t.criteriaCount;
        uint256 toClient = _share(slash, t.parameters.absentNoneMetClientShare);
        uint256 bondLost = bond * tally[0] / t.criteriaCount;

        due.status = gross == price ? Status.SettledAllMet : gross == 0 ? Status.SettledNoneMet : Status.SettledPartial;
        due.money[CLIENT] += int256(toClient) - int256(gross) - int256(bondLost);
        due.money[WORKER] += int256(gross) - int256(fee) - int256(slash) + int256(bondLost);
        paid = fee + slash - toClient;
        due.money[TREASURY] += int256(paid);
    }

    function _majority(Ballot[] memory ballots, uint256 criterion) private pure returns (Outcome) {
        uint256 cast;
        uint256 met;
        uint256 notMet;
        for (uint256 i = 0; i < ballots.length; ++i) {
            if (!ballots[i].opened) continue;
            ++cast;
            if (_at(ballots[i].votes, criterion) == Outcome.Met) ++met;
            if (_at(ballots[i].votes, criterion) == Outcome.NotMet) ++notMet;
        }
        if (2 * met > cast) return Outcome.Met;
        return 2 * notMet > cast ? Outcome.NotMet : Outcome.Unclear;
    }

    function _stake(Terms memory t) private pure returns (uint256) {
        return _share(t.price, t.parameters.workerStakeRatio);
    }

    function _share(uint256 amount, uint256 ratio) private pure returns (uint256) {
        return amount * ratio / 10_000;
    }

    function _at(uint24 outcomes, uint256 criterion) private pure returns (Outcome) {
        return Outcome((outcomes >> uint24(2 * criterion)) & 3);
    }
}
