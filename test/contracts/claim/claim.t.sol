// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IProtocolToken} from "../../../contracts/interfaces/IProtocolToken.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract ClaimTest is BaseTest {
    uint256 internal constant VOTE_BOND = 7.5e6;

    WorkingContractEscrow internal escrow;

    function test_RevertGiven_NoTally() public {
        escrow = _votedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, ALL_MET));
        _openVote(escrow, agents[0], ALL_MET);
        _expectNothing(agents[0]);
        escrow.claim(agents[0]);
    }

    function test_RevertGiven_NothingDue() public {
        escrow = _votedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, ALL_MET));
        _openVote(escrow, agents[0], ALL_MET);
        vm.warp(_now() + 24 hours);
        escrow.tally();

        _expectNothing(stranger);
        escrow.claim(stranger);
        _expectNothing(agents[1]);
        escrow.claim(agents[1]);
        escrow.claim(agents[0]);
        _expectNothing(agents[0]);
        escrow.claim(agents[0]);
    }

    function test_GivenPayoutHold() public {
        _setPayoutHold(1 hours);
        escrow = _talliedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, ALL_MET));
        uint40 until = _now() + 1 hours;
        vm.warp(until - 1);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.PayoutHeld.selector, until));
        vm.prank(agents[0]);
        escrow.claim(agents[0]);

        vm.prank(reviewer);
        escrow.claim(agents[0]);
        vm.warp(until);
        escrow.claim(agents[1]);
        assertBalance(agents[0], FUNDS, "released early");
        assertBalance(agents[1], FUNDS, "after the hold");
    }

    function test_GivenVoteNeverOpened() public {
        escrow = _votedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, ALL_MET));
        _openVote(escrow, agents[0], ALL_MET);
        _openVote(escrow, agents[1], ALL_MET);
        vm.warp(_now() + 24 hours);
        escrow.tally();
        escrow.claim(agents[0]);
        escrow.claim(agents[1]);
        escrow.settle();
        assertBalance(agents[0], FUNDS + VOTE_BOND / 2, "first");
        assertBalance(agents[1], FUNDS + VOTE_BOND / 2, "second");
        assertBalance(agents[2], FUNDS - VOTE_BOND, "agent that never opened");
        assertBalance(treasury, 2.5e6, "treasury");
        assertBalance(address(escrow), 0, "escrow");
    }

    function test_GivenAgentBlacklisted() public {
        escrow = _talliedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, ALL_MET));
        usd.setBlacklisted(agents[0], true);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.PayoutDeferred(agents[0], VOTE_BOND);
        escrow.claim(agents[0]);
        assertEq(token.balanceOf(agents[0]), 30e18, "reward");
        assertEq(escrow.deferred(agents[0]), VOTE_BOND, "claimable");
    }

    function test_GivenDailyCapReached() public {
        escrow = _talliedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, ALL_MET));
        vm.prank(address(escrow));
        token.mintReward(stranger, DAILY_CAP - 45e18);
        escrow.claim(agents[0]);

        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.VoteClaimed(agents[1], VOTE_BOND, 0);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.RewardDeferred(agents[1], 30);
        escrow.claim(agents[1]);
        assertBalance(agents[1], FUNDS, "money at once");
        assertEq(token.balanceOf(agents[1]), 0, "reward later");

        _expectNothing(agents[1]);
        escrow.claim(agents[1]);

        vm.warp((_now() / 1 days + 1) * 1 days);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.VoteClaimed(agents[1], 0, 30);
        escrow.claim(agents[1]);
        assertBalance(agents[1], FUNDS, "money once");
        assertEq(token.balanceOf(agents[1]), 30e18, "reward");

        _expectNothing(agents[1]);
        escrow.claim(agents[1]);
        escrow.claim(agents[2]);
        escrow.settle();
        assertBalance(address(escrow), 0, "escrow");
    }

    /// No one pays gas to mint nothing, and no state of the token can block the money.
    /// Otherwise disputes between someone's own addresses at the lowest price would mint tokens for nothing.
    function test_GivenLowPrice_CapsRewardsByWhatTheTreasuryGets() public {
        Terms memory t = _newTerms();
        t.price = 10e6;
        WorkingContractEscrow cheap = _talliedBy(t, _ballots(ALL_MET, ALL_MET, ALL_MET));
        cheap.settle();
        assertBalance(treasury, 0.5e6, "treasury");
        for (uint256 i = 0; i < 3; ++i) {
            cheap.claim(agents[i]);
            // 200 tokens for 1.0, over nine votes: 11 each, above the full reward.
            assertEq(token.balanceOf(agents[i]), 30e18, "full reward");
        }
        t = _newTerms();
        t.price = 5e6;
        cheap = _talliedBy(t, _ballots(ALL_MET, ALL_MET, ALL_MET));
        for (uint256 i = 0; i < 3; ++i) {
            cheap.claim(agents[i]);
            assertEq(token.balanceOf(agents[i]), 30e18 + 15e18, "five tokens for each criterion");
        }
    }

    function test_GivenNoRewardDue() public {
        escrow = _talliedBy(_newTerms(), _ballots(ALL_MET, ALL_MET, NONE_MET));
        vm.expectCall(address(token), abi.encodeWithSelector(IProtocolToken.mintReward.selector), 0);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.VoteClaimed(agents[2], 0, 0);
        escrow.claim(agents[2]);
        _expectNothing(agents[2]);
        escrow.claim(agents[2]);
    }

    function _expectNothing(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NothingToClaim.selector, agent));
    }
}
