// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Settlement} from "../../../contracts/libraries/Settlement.sol";
import {Parameters} from "../../../contracts/types/Types.sol";

contract SettlementTest is Test {
    function testFuzz_ResolvePaysExactlyWhatCameIn(
        uint96 price,
        uint96 stake,
        uint96 bond,
        Settlement.Tally memory tally,
        Parameters memory p
    ) public pure {
        _bound(tally, p);
        Settlement.Payout memory payout = _resolve(price, stake, bond, tally, p);
        assertEq(payout.client + payout.worker + payout.treasury, uint256(price) + stake + bond, "out = in");
    }

    function testFuzz_AbsentAndWithdrawnPayExactlyWhatCameIn(uint96 price, uint96 stake, Parameters memory p)
        public
        pure
    {
        Settlement.Tally memory none;
        _bound(none, p);
        Settlement.Payout memory payout = Settlement.absent(price, stake, p.absentNoneMetClientShare);
        assertEq(payout.client + payout.worker + payout.treasury, uint256(price) + stake, "absent");
        assertEq(payout.worker, 0, "an absent worker gets nothing");
        payout = Settlement.withdrawn(price, stake, p.earlyWithdrawalSlashRatio);
        assertEq(payout.client + payout.worker + payout.treasury, uint256(price) + stake, "withdrawn");
        assertEq(payout.treasury, 0, "no fee on a withdrawal");
        assertGe(payout.client, price, "price refunded");
    }

    /// Changing one criterion from not met to met never costs the worker anything and never gains the client anything.
    function testFuzz_ResolveIsMonotone(
        uint96 price,
        uint96 stake,
        uint96 bond,
        Settlement.Tally memory tally,
        Parameters memory p
    ) public pure {
        _bound(tally, p);
        vm.assume(tally.notMet != 0);
        Settlement.Payout memory lower = _resolve(price, stake, bond, tally, p);
        --tally.notMet;
        ++tally.met;
        Settlement.Payout memory higher = _resolve(price, stake, bond, tally, p);
        // The fee is rounded: it can grow by a unit while the price grows by none.
        assertGe(higher.worker + 1, lower.worker, "worker");
        assertLe(higher.client, lower.client + 1, "client");
    }

    function test_CountOfEveryCombination() public pure {
        for (uint256 combination = 0; combination < 4096; ++combination) {
            uint256 bits;
            uint256 expected;
            for (uint256 i = 0; i < 12; ++i) {
                uint256 bit = (combination >> i) & 1;
                bits |= bit << (2 * i);
                expected += bit;
            }
            assertEq(Settlement.count(bits), expected, "count");
        }
    }

    function testFuzz_PotIsWhatLosersLost(uint16[4] memory counts, uint96 bond, uint16 ratio) public pure {
        Settlement.CriterionVotes memory votes =
            Settlement.CriterionVotes(counts[0] % 4096, counts[1] % 4096, counts[2] % 4096, counts[3] % 4096);
        uint256 unclearSlash = Settlement.share(bond, bound(ratio, 0, 10_000));
        (uint256 pot, uint256 winners) = Settlement.pot(votes, bond, unclearSlash);
        (bool decisive, bool isMet) = Settlement.majority(votes);

        uint256 posted = (votes.met + votes.notMet + votes.unclear + votes.unopened) * uint256(bond);
        uint256 kept;
        if (!decisive) {
            kept = (votes.met + votes.notMet + votes.unclear) * uint256(bond);
            assertEq(winners, 0, "winners");
        } else {
            kept = (isMet ? votes.met : votes.notMet) * uint256(bond) + votes.unclear * (bond - unclearSlash);
            assertGt(winners, 0, "winners of a decisive majority");
            assertGt(2 * winners, votes.met + votes.notMet + votes.unclear, "more than half");
        }
        assertEq(kept + pot, posted, "kept + pot = posted");
    }

    function _resolve(uint256 price, uint256 stake, uint256 bond, Settlement.Tally memory tally, Parameters memory p)
        private
        pure
        returns (Settlement.Payout memory)
    {
        return Settlement.resolve(price, stake, bond, tally, p.protocolFee, p.absentNoneMetClientShare);
    }

    function _bound(Settlement.Tally memory tally, Parameters memory p) private pure {
        tally.met = bound(tally.met, 0, 10);
        tally.notMet = bound(tally.notMet, 0, 10 - tally.met);
        tally.unclear = bound(tally.unclear, tally.met + tally.notMet == 0 ? 1 : 0, 10 - tally.met - tally.notMet);
        p.protocolFee = uint16(bound(p.protocolFee, 0, 2000));
        p.absentNoneMetClientShare = uint16(bound(p.absentNoneMetClientShare, 0, 10_000));
        p.earlyWithdrawalSlashRatio = uint16(bound(p.earlyWithdrawalSlashRatio, 0, 10_000));
    }
}
