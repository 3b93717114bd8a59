// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract DeclineTest is BaseTest {
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        escrow = _escrowIn(Status.Created);
    }

    function test_RevertGiven_NotCreated() public {
        _assertOnlyIn(Status.Created, worker, abi.encodeCall(IWorkingContractEscrow.decline, ()));
    }

    function test_RevertGiven_NoOneNamed() public {
        WorkingContractEscrow tender = _create(_newTerms());
        vm.expectRevert(IWorkingContractEscrow.NothingToDecline.selector);
        vm.prank(worker);
        tender.decline();
    }

    function test_RevertWhen_CallerDoesNotActForNamedParty() public {
        bytes memory call = abi.encodeCall(IWorkingContractEscrow.decline, ());
        _assertNotParty(worker, [client, stranger, operator], address(escrow), call);
    }

    function test_WhenNamedWorkerDeclines() public {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractDeclined();
        vm.prank(worker);
        escrow.decline();
        assertStatus(escrow, Status.CancelledUnmatched);
        assertBalance(address(escrow), PRICE, "escrow");
    }

    function test_GivenListingReservedForBuyer() public {
        Terms memory t = _newListing();
        t.counterparty = client;
        escrow = _create(t);
        vm.prank(client);
        escrow.decline();
        assertStatus(escrow, Status.CancelledUnmatched);
        escrow.settle();
        assertBalance(worker, FUNDS, "worker");
        assertBalance(address(escrow), 0, "escrow");
    }
}
