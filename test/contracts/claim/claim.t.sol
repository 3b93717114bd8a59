// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IProtocolToken} from "../../../contracts/interfaces/IProtocolToken.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
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

    /// A dispute with oneself, which the documents price: nothing tells it from one between strangers.
    function test_GivenPartiesAndMajorityOfPanelAreOne() public {
        Parameters memory p = _defaultParameters();
        p.baRecruitCount = 5;
        _setParameters(p);
        _stakeAgents(5);
        escrow = _disputed(_newTerms());
        vm.roll(vm.getBlockNumber() + 2);
        vm.setBlockhash(vm.getBlockNumber() - 1, keccak256("seed"));
        escrow.draw();
        _voteFrom(0, 2, ALL_MET);
        _voteFrom(2, 5, NONE_MET);
        _assertGains({others: 2, voters: 5, gain: 14_499_994});
        assertBalance(treasury, 500_006, "treasury");
        assertEq(token.balanceOf(agents[2]), 18e18, "reward");
    }

    /// The number of sealed votes is public, and the window's last second is part of it.
    function test_GivenNoPanel_WhenOneMoreThanAllOthersVotesLast() public {
        _stakeAgents(7);
        escrow = _disputed(_newTerms());
        _voteFrom(0, 3, ALL_MET);
        vm.warp(_now() + 24 hours - 1);
        assertEq(escrow.jury().sealedVotes, 3, "votes of others");
        _voteFrom(3, 7, NONE_MET);
        _assertGains({others: 3, voters: 7, gain: 22e6});
        assertBalance(treasury, 500_000, "treasury");
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

    function _voteFrom(uint256 first, uint256 end, uint24 votes) private {
        for (uint256 i = first; i < end; ++i) {
            _vote(escrow, agents[i], votes);
        }
    }

    /// @dev The first `others` voters lose their bonds to the rest, who belong to one group with client and worker.
    function _assertGains(uint256 others, uint256 voters, uint256 gain) private {
        vm.warp(_now() + 24 hours);
        for (uint256 i = 0; i < voters; ++i) {
            _openVote(escrow, agents[i], i < others ? ALL_MET : NONE_MET);
        }
        escrow.tally();
        escrow.settle();
        assertStatus(escrow, Status.SettledNoneMet);
        uint256 group = usd.balanceOf(client) + usd.balanceOf(worker);
        for (uint256 i = 0; i < voters; ++i) {
            escrow.claim(agents[i]);
            if (i < others) assertBalance(agents[i], FUNDS - VOTE_BOND, "other voter");
            else group += usd.balanceOf(agents[i]);
        }
        assertEq(group, (2 + voters - others) * FUNDS + gain, "group");
        assertBalance(address(escrow), 0, "escrow");
    }

    function _expectNothing(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NothingToClaim.selector, agent));
    }
}
