// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract WithdrawTest is BaseTest {
    Terms internal t;
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        t = _newTerms();
        escrow = _matched(t);
    }

    function test_RevertGiven_NotMatched() public {
        _assertOnlyIn(Status.Matched, worker, abi.encodeCall(IWorkingContractEscrow.withdraw, ()));
    }

    function test_RevertGiven_WithdrawalDeadlinePassed() public {
        vm.warp(t.withdrawalDeadline);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.DeadlinePassed.selector, t.withdrawalDeadline));
        vm.prank(worker);
        escrow.withdraw();
    }

    function test_RevertWhen_CallerDoesNotActForWorker() public {
        bytes memory call = abi.encodeCall(IWorkingContractEscrow.withdraw, ());
        _assertNotParty(worker, [client, stranger, operator], address(escrow), call);
    }

    function test_WhenWorkerWithdraws() public {
        vm.warp(t.withdrawalDeadline - 1);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractWithdrawn();
        vm.prank(worker);
        escrow.withdraw();
        assertStatus(escrow, Status.CancelledWithdrawn);
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
    }
}
