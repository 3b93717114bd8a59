// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Outcome, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

/// @notice The disputed rows of the published table of results; SettleTest covers the undisputed ones.
contract WorkedResultsTest is BaseTest {
    Outcome internal constant MET = Outcome.Met;
    Outcome internal constant NOT = Outcome.NotMet;
    Outcome internal constant UNCLEAR = Outcome.Unclear;

    /// Amounts of the parties, then of each voter, then the tokens of each voter.
    struct Row {
        Status status;
        uint256 client;
        uint256 worker;
        uint256 treasury;
        uint256 a;
        uint256 b;
        uint256 c;
        uint256 tokensOfA;
        uint256 tokensOfB;
        uint256 tokensOfC;
    }

    function test_GivenAllMet() public {
        Row memory row = Row(Status.SettledAllMet, 0, 52.5e6, 2.5e6, 11.25e6, 11.25e6, 0, 30, 30, 0);
        _assertRow(PRICE, _ballots(ALL_MET, ALL_MET, NONE_MET), row);
    }

    function test_GivenNoneMet() public {
        Row memory row = Row(Status.SettledNoneMet, 54.5e6, 0, 0.5e6, 8.625e6, 8.625e6, 5.25e6, 30, 30, 0);
        _assertRow(PRICE, _ballots(NONE_MET, NONE_MET, ALL_UNCLEAR), row);
    }

    function test_GivenTwoOfThreeMet() public {
        Row memory row = Row(Status.SettledPartial, 18_166_667, 35e6, 1_833_333, 9.125e6, 9.125e6, 4.25e6, 30, 30, 10);
        _assertRow(PRICE, _ballots(TWO_MET, TWO_MET, _pack(MET, UNCLEAR, MET)), row);
    }

    function test_GivenTwoMetAndOneUnclear() public {
        uint24 votes = _pack(MET, MET, UNCLEAR);
        Row memory row = Row(Status.SettledPartial, 9_166_668, 43_749_999, 2_083_333, 7.5e6, 7.5e6, 7.5e6, 24, 24, 20);
        _assertRow(PRICE, _ballots(votes, votes, ALL_MET), row);
    }

    function test_GivenOneOfEach() public {
        uint24 votes = _pack(MET, NOT, UNCLEAR);
        Row memory row = Row(Status.SettledPartial, 27_333_333, 26.25e6, 1_416_667, 7.5e6, 7.5e6, 7.5e6, 24, 24, 24);
        _assertRow(PRICE, _ballots(votes, votes, votes), row);
    }

    function test_GivenNoVotes() public {
        _assertRow(PRICE, new uint24[](0), Row(Status.SettledPartial, 27.5e6, 26.25e6, 1.25e6, 0, 0, 0, 0, 0, 0));
    }

    function test_GivenTie() public {
        uint24[] memory votes = new uint24[](2);
        (votes[0], votes[1]) = (ALL_MET, NONE_MET);
        _assertRow(PRICE, votes, Row(Status.SettledPartial, 27.5e6, 26.25e6, 1.25e6, 7.5e6, 7.5e6, 0, 0, 0, 0));
    }

    function test_GivenRoundingPrice() public {
        Row memory row =
            Row(Status.SettledPartial, 4_485_595, 8_641_974, 452_676, 2_253_082, 2_253_082, 1_049_382, 30, 30, 10);
        uint256 paidIn = _assertRow(12_345_678, _ballots(TWO_MET, TWO_MET, _pack(MET, UNCLEAR, MET)), row);
        assertEq(paidIn, 19_135_791, "paid in");
        assertEq(row.client + row.worker + row.treasury + row.a + row.b + row.c, paidIn, "paid out");
    }

    function _assertRow(uint80 price, uint24[] memory votes, Row memory row) private returns (uint256 paidIn) {
        Terms memory t = _newTerms();
        t.price = price;
        WorkingContractEscrow escrow = _votedBy(t, votes);
        paidIn = usd.balanceOf(address(escrow));
        address[6] memory payees = [client, worker, treasury, agents[0], agents[1], agents[2]];
        uint256[6] memory due = [row.client, row.worker, row.treasury, row.a, row.b, row.c];
        for (uint256 i = 0; i < payees.length; ++i) {
            due[i] += usd.balanceOf(payees[i]);
        }
        _openVotes(escrow, votes);
        escrow.tally();
        escrow.settle();
        for (uint256 i = 0; i < votes.length; ++i) {
            escrow.claim(agents[i]);
        }

        assertStatus(escrow, row.status);
        for (uint256 i = 0; i < payees.length; ++i) {
            assertBalance(payees[i], due[i], vm.toString(i));
        }
        uint256[3] memory tokens = [row.tokensOfA, row.tokensOfB, row.tokensOfC];
        for (uint256 i = 0; i < tokens.length; ++i) {
            assertEq(token.balanceOf(agents[i]), tokens[i] * 1e18, "tokens of voter");
        }
        assertBalance(address(escrow), 0, "escrow");
        assertEq(escrow.booked(), 0, "booked");
    }
}
