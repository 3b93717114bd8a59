// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The payout ledger: who gets what when a Working Contract ends. Integers in base units. Every division rounds
/// down, and the second of each pair is the whole minus the first, so nothing is lost. {share}, {count},
/// {released} and {resolve} are unchecked, because amounts have at most 96 bits, ratios are at most {BASIS_POINTS}, and
/// there are at most ten criteria.
library Settlement {
    uint256 internal constant BASIS_POINTS = 10_000;

    /// @notice Criteria of one Working Contract by outcome.
    struct Tally {
        uint256 met;
        uint256 notMet;
        uint256 unclear;
    }

    /// @notice Opened votes on one criterion by outcome, and the number of sealed votes that were never opened.
    struct CriterionVotes {
        uint256 met;
        uint256 notMet;
        uint256 unclear;
        uint256 unopened;
    }

    struct Payout {
        uint256 client;
        uint256 worker;
        uint256 treasury;
    }

    /// @notice `ratio` basis points of `amount`, rounded down.
    function share(uint256 amount, uint256 ratio) internal pure returns (uint256) {
        unchecked {
            return amount * ratio / BASIS_POINTS;
        }
    }

    /// @notice The number of criteria whose bit is set in `bits`: bit 0 for criterion 0, bit 2 for criterion 1, and so
    /// on up to bit 22. Adds two bits per hexadecimal digit; the multiplication then adds all six digits in the sixth.
    function count(uint256 bits) internal pure returns (uint256) {
        unchecked {
            return (((bits & 0x333333) + ((bits >> 2) & 0x333333)) * 0x111111 >> 20) & 15;
        }
    }

    /// @notice The part of the price released to the Worker, before the fee.
    function released(uint256 price, Tally memory tally) internal pure returns (uint256) {
        unchecked {
            return price * (2 * tally.met + tally.unclear) / (2 * (tally.met + tally.notMet + tally.unclear));
        }
    }

    /// @notice Payout of a Working Contract that ended with an outcome per criterion; `bond` is zero without a dispute.
    function resolve(
        uint256 price,
        uint256 stake,
        uint256 bond,
        Tally memory tally,
        uint256 protocolFee,
        uint256 absentNoneMetClientShare
    ) internal pure returns (Payout memory payout) {
        unchecked {
            uint256 gross = released(price, tally);
            uint256 criteria = tally.met + tally.notMet + tally.unclear;
            uint256 slash = stake * tally.notMet / criteria;
            uint256 slashToClient = share(slash, absentNoneMetClientShare);
            uint256 bondLost = bond * tally.met / criteria;

            payout.treasury = share(gross, protocolFee);
            payout.worker = gross - payout.treasury + stake - slash + bondLost;
            payout.client = price - gross + slashToClient + bond - bondLost;
            payout.treasury += slash - slashToClient;
        }
    }

    /// @notice Payout when the Worker never delivered: the whole stake is slashed, no fee.
    function absent(uint256 price, uint256 stake, uint256 absentNoneMetClientShare)
        internal
        pure
        returns (Payout memory payout)
    {
        uint256 slashToClient = share(stake, absentNoneMetClientShare);
        payout.client = price + slashToClient;
        payout.treasury = stake - slashToClient;
    }

    /// @notice Payout when the Worker withdrew in time: part of the stake goes to the Client, no fee.
    function withdrawn(uint256 price, uint256 stake, uint256 earlyWithdrawalSlashRatio)
        internal
        pure
        returns (Payout memory payout)
    {
        uint256 slash = share(stake, earlyWithdrawalSlashRatio);
        payout.client = price + slash;
        payout.worker = stake - slash;
    }

    /// @notice More than half of the opened votes decide a criterion; otherwise it is unclear.
    /// @return decisive Whether `met` or `not met` has the majority.
    /// @return isMet Which of the two.
    function majority(CriterionVotes memory votes) internal pure returns (bool decisive, bool isMet) {
        uint256 cast = votes.met + votes.notMet + votes.unclear;
        isMet = 2 * votes.met > cast;
        decisive = isMet || 2 * votes.notMet > cast;
    }

    /// @notice Slashed jury bonds on one criterion, and the number of voters that share them.
    /// @param bond Bond per voter and criterion.
    /// @param unclearSlash Part of `bond` lost by voting `unclear` against a decisive majority.
    /// @return pot Sum of slashed bonds. Goes to the Treasury if `winners` is zero.
    /// @return winners Voters that matched the decisive majority.
    function pot(CriterionVotes memory votes, uint256 bond, uint256 unclearSlash)
        internal
        pure
        returns (uint256, uint256 winners)
    {
        (bool decisive, bool isMet) = majority(votes);
        if (!decisive) return (votes.unopened * bond, 0);

        uint256 losers;
        (winners, losers) = isMet ? (votes.met, votes.notMet) : (votes.notMet, votes.met);
        return ((losers + votes.unopened) * bond + votes.unclear * unclearSlash, winners);
    }
}
