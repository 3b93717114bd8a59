// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract LockForVoteTest is BaseTest {
    address internal escrow;

    function setUp() public override {
        super.setUp();
        _stakeAgents(1);
        escrow = address(_escrowIn(Status.Disputed));
    }

    function test_RevertWhen_CallerNotEscrow() public {
        address[4] memory callers = [stranger, operator, address(factory), factory.IMPLEMENTATION()];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotEscrow.selector, callers[i]));
            vm.prank(callers[i]);
            registry.lockForVote(agents[0], 1, _now(), _now());
        }
    }

    function test_RevertGiven_NotEligible() public {
        vm.expectRevert(
            abi.encodeWithSelector(
                IBackupAgentRegistry.NotEligible.selector, agents[0], ELIGIBILITY_STAKE, ELIGIBILITY_STAKE + 1
            )
        );
        vm.prank(escrow);
        registry.lockForVote(agents[0], ELIGIBILITY_STAKE + 1, _now(), _now());

        // No one is eligible without a stake, even if none is required.
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotEligible.selector, stranger, 0, 0));
        vm.prank(escrow);
        registry.lockForVote(stranger, 0, _now(), _now());
    }

    function test_WhenEscrowLocks() public {
        vm.startPrank(escrow);
        registry.lockForVote(agents[0], ELIGIBILITY_STAKE, _now(), _now() + 10);
        registry.lockForVote(agents[0], ELIGIBILITY_STAKE, _now(), _now() + 5);
        (,, uint40 lockedUntil,,) = registry.stakes(agents[0]);
        assertEq(lockedUntil, _now() + 10, "locked until");
    }
}
