// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Outcome, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract ApproveTest is BaseTest {
    Terms internal t;
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        t = _newTerms();
        escrow = _delivered(t, 0);
    }

    function test_RevertGiven_NotUnderReview() public {
        _assertOnlyIn(Status.UnderReview, client, abi.encodeCall(IWorkingContractEscrow.approve, ()));
    }

    function test_RevertGiven_ReviewDeadlinePassed() public {
        vm.warp(t.reviewDeadline);
        _expectWrongStatus(Status.Resolved, Status.UnderReview);
        vm.prank(client);
        escrow.approve();
    }

    function test_RevertWhen_CallerDoesNotActForClient() public {
        bytes memory call = abi.encodeCall(IWorkingContractEscrow.approve, ());
        _assertNotParty(client, [worker, stranger, operator], address(escrow), call);
    }

    function test_WhenClientApproves() public {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractApproved(ALL_MET);
        vm.prank(client);
        escrow.approve();
        _assertApproved();
    }

    function test_GivenComputedCriteria() public {
        escrow = _delivered(_newComputedTerms(), TWO_MET);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractApproved(TWO_MET);
        vm.prank(client);
        escrow.approve();
        assertStatus(escrow, Status.Resolved);
        assertEq(uint8(escrow.outcomeOf(2)), uint8(Outcome.NotMet), "third criterion");
    }

    function test_GivenListing() public {
        escrow = _delivered(_newListing(), 0);
        _expectNotParty(worker, client);
        vm.prank(worker);
        escrow.approve();
        vm.prank(client);
        escrow.approve();
        _assertApproved();
    }

    function test_GivenTenCriteria() public {
        Terms memory ten = _newTerms();
        ten.criteriaCount = 10;
        escrow = _delivered(ten, 0);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractApproved(0x55555);
        vm.prank(client);
        escrow.approve();
    }

    function _assertApproved() private view {
        assertStatus(escrow, Status.Resolved);
        for (uint256 i = 0; i < 3; ++i) {
            assertEq(uint8(escrow.outcomeOf(i)), uint8(Outcome.Met), "criterion");
        }
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
    }
}
