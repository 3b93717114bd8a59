// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {TestUSD} from "../../../contracts/local/TestUSD.sol";
import {Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract ClaimDeferredTest is BaseTest {
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        escrow = _escrowIn(Status.Resolved);
        usd.setBlacklisted(worker, true);
        escrow.settle();
    }

    function test_RevertGiven_NothingDeferred() public {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NothingToClaim.selector, client));
        vm.prank(client);
        escrow.claimDeferred(client);
    }

    function test_RevertGiven_StillBlacklisted() public {
        vm.expectRevert(abi.encodeWithSelector(TestUSD.Blacklisted.selector, worker));
        escrow.claimDeferred(worker);
    }

    function test_GivenPayableAgain() public {
        usd.setBlacklisted(worker, false);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.PayoutClaimed(worker, 50e6);
        vm.prank(stranger);
        escrow.claimDeferred(worker);
        assertBalance(worker, FUNDS - STAKE + 50e6, "worker");
        assertBalance(address(escrow), 0, "escrow");
        assertEq(escrow.booked(), 0, "booked");
        assertStatus(escrow, Status.SettledAllMet);

        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NothingToClaim.selector, worker));
        escrow.claimDeferred(worker);
    }

    function test_GivenDirectTransferOfSomeoneElse() public {
        usd.mint(address(escrow), 7e6);
        usd.setBlacklisted(worker, false);
        escrow.claimDeferred(worker);
        assertBalance(worker, FUNDS - STAKE + 50e6, "worker");
        assertBalance(address(escrow), 7e6, "escrow");
    }
}
