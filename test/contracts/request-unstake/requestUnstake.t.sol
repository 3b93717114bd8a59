// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {BaseTest} from "../Base.t.sol";

contract RequestUnstakeTest is BaseTest {
    address internal agent;

    function setUp() public override {
        super.setUp();
        agent = agents[1];
        _stakeAgents(3);
    }

    function test_RevertWhen_CallerDoesNotActForAgent() public {
        vm.prank(agent);
        delegation.revoke(agent, operator);
        address[3] memory callers = [stranger, operator, agents[0]];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotAgentOrOperator.selector, callers[i], agent));
            vm.prank(callers[i]);
            registry.requestUnstake(agent);
        }
    }

    function test_RevertGiven_NoStake() public {
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotStaked.selector, stranger));
        vm.prank(stranger);
        registry.requestUnstake(stranger);
    }

    function test_RevertGiven_Unbonding() public {
        vm.startPrank(agent);
        registry.requestUnstake(agent);
        uint40 releasableAt = _now() + 48 hours;
        vm.warp(_now() + 1);
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.Unbonding.selector, agent, releasableAt));
        registry.requestUnstake(agent);
    }

    function test_WhenAgentAsks() public {
        vm.expectEmit(address(registry));
        emit IBackupAgentRegistry.UnstakeRequested(agent, ELIGIBILITY_STAKE, _now() + 48 hours);
        vm.prank(agent);
        registry.requestUnstake(agent);
        assertTrue(registry.isEligible(agent, ELIGIBILITY_STAKE, _now()), "eligible where matched before");
        assertFalse(registry.isEligible(agent, ELIGIBILITY_STAKE, _now() + 1), "eligible where matched later");
        assertEq(registry.poolSize(_now() + 1), 2, "pool");
        assertNotEq(registry.poolAt(0, _now() + 1), agent, "first of the pool");
        assertNotEq(registry.poolAt(1, _now() + 1), agent, "second of the pool");
        assertEq(token.balanceOf(address(registry)), 3 * ELIGIBILITY_STAKE, "tokens of the registry");
    }
}
