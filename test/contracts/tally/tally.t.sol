// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Outcome, Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract TallyTest is BaseTest {
    WorkingContractEscrow internal escrow;

    function test_RevertGiven_NotDisputed() public {
        _assertOnlyIn(Status.Disputed, stranger, abi.encodeCall(IWorkingContractEscrow.tally, ()));
    }

    function test_RevertGiven_WindowOpen() public {
        escrow = _disputed(_newTerms());
        vm.warp(_now() + 24 hours - 1);
        _expectNotDue(_now() + 1 + 24 hours);
        escrow.tally();
    }

    function test_RevertGiven_VoteNotOpened() public {
        escrow = _votedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, NONE_MET));
        _openVote(escrow, agents[0], ALL_MET);
        _openVote(escrow, agents[2], NONE_MET);
        uint40 dueAt = _now() + 24 hours;
        vm.warp(dueAt - 1);
        _expectNotDue(dueAt);
        escrow.tally();

        vm.warp(dueAt);
        _expectTallied(ALL_UNCLEAR);
        escrow.tally();
    }

    function test_GivenEveryVoteOpen() public {
        uint24[] memory votes = _ballots(TWO_MET, TWO_MET, ALL_UNCLEAR);
        escrow = _votedBy(_newTerms(), votes);
        _openVotes(escrow, votes);
        _expectTallied(TWO_MET);
        vm.prank(stranger);
        escrow.tally();
        assertStatus(escrow, Status.Resolved);
        assertEq(uint8(escrow.outcomeOf(1)), uint8(Outcome.Met), "second criterion");
        assertEq(uint8(escrow.outcomeOf(2)), uint8(Outcome.NotMet), "third criterion");
        assertBalance(address(escrow), PRICE + STAKE + BOND + 3 * 7.5e6, "escrow");
    }

    function test_GivenTwoTwoAndOne() public {
        uint24[] memory votes = new uint24[](5);
        (votes[0], votes[1], votes[2], votes[3], votes[4]) = (ALL_MET, ALL_MET, NONE_MET, NONE_MET, ALL_UNCLEAR);
        escrow = _votedBy(_newTerms(), votes);
        _openVotes(escrow, votes);
        _expectTallied(ALL_UNCLEAR);
        escrow.tally();
    }

    function test_GivenComputedCriteria() public {
        _stakeAgents(1);
        escrow = _delivered(_newComputedTerms(), ALL_MET);
        _dispute(escrow);
        _vote(escrow, agents[0], NONE_MET);
        vm.warp(_now() + 24 hours);
        _openVote(escrow, agents[0], NONE_MET);
        _expectTallied(NONE_MET);
        escrow.tally();
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.NotMet), "first criterion");
    }

    function _expectTallied(uint24 outcomes) private {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractTallied(outcomes);
    }

    function _expectNotDue(uint40 dueAt) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.TallyNotDue.selector, dueAt));
    }
}
