// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {Parameters} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract WithdrawStakeTest is BaseTest {
    address internal agent;

    function setUp() public override {
        super.setUp();
        agent = agents[0];
        _stakeAgents(2);
    }

    function test_RevertGiven_NotUnbonding() public {
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotStaked.selector, agent));
        vm.prank(agent);
        registry.withdrawStake(agent);
    }

    function test_RevertGiven_TooEarly() public {
        _request();
        uint40 releasableAt = _now() + 48 hours;
        vm.warp(releasableAt - 1);
        _expectNotReleasable(releasableAt);
        registry.withdrawStake(agent);
    }

    function test_RevertGiven_VoteOpen() public {
        Parameters memory p = _defaultParameters();
        p.baVotingWindow = 72 hours;
        _setParameters(p);
        WorkingContractEscrow escrow = _disputed(_newTerms());
        uint40 lockedUntil = _now() + 72 hours + 24 hours;
        _vote(escrow, agent, ALL_MET);
        _request();
        vm.warp(lockedUntil - 1);
        _expectNotReleasable(lockedUntil);
        registry.withdrawStake(agent);
        vm.warp(lockedUntil);
        registry.withdrawStake(agent);
        assertEq(token.balanceOf(agent), ELIGIBILITY_STAKE, "tokens of the agent");
    }

    function test_WhenAnyoneWithdrawsOnceDue() public {
        _request();
        vm.warp(_now() + 48 hours);
        vm.expectEmit(address(registry));
        emit IBackupAgentRegistry.Unstaked(agent, ELIGIBILITY_STAKE);
        vm.prank(stranger);
        registry.withdrawStake(agent);
        assertEq(token.balanceOf(agent), ELIGIBILITY_STAKE, "tokens of the agent");
        assertEq(token.balanceOf(address(registry)), ELIGIBILITY_STAKE, "the other agent's stake");

        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotStaked.selector, agent));
        registry.withdrawStake(agent);
    }

    function _request() private {
        vm.prank(agent);
        registry.requestUnstake(agent);
    }

    function _expectNotReleasable(uint40 releasableAt) private {
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotReleasable.selector, agent, releasableAt));
    }
}
