// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Outcome, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract DeliverTest is BaseTest {
    bytes32 internal constant DELIVERY = keccak256("delivery");
    bytes32 internal constant ROOT = keccak256("checkpoints");

    Terms internal t;
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        t = _newTerms();
        escrow = _matched(t);
    }

    function test_RevertGiven_NotMatched() public {
        _assertOnlyIn(Status.Matched, worker, abi.encodeCall(IWorkingContractEscrow.deliver, (DELIVERY, ROOT, 0)));
    }

    function test_GivenLastSecond() public {
        vm.warp(t.deliveryDeadline - 1);
        _deliver(escrow, 0);
        assertStatus(escrow, Status.UnderReview);
    }

    function test_RevertWhen_CallerDoesNotActForWorker() public {
        bytes memory call = abi.encodeCall(IWorkingContractEscrow.deliver, (DELIVERY, ROOT, 0));
        _assertNotParty(worker, [client, stranger, operator], address(escrow), call);
    }

    function test_RevertWhen_OutcomesNotComputed() public {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.InvalidOutcomes.selector, ALL_MET));
        vm.prank(worker);
        escrow.deliver(DELIVERY, ROOT, ALL_MET);
    }

    function test_RevertGiven_ComputedCriteria_WhenOutcomesIncomplete() public {
        escrow = _matched(_newComputedTerms());
        uint24[4] memory wrong = [uint24(0), 0x05, 0x11, 0x55];
        for (uint256 i = 0; i < wrong.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.InvalidOutcomes.selector, wrong[i]));
            vm.prank(worker);
            escrow.deliver(DELIVERY, ROOT, wrong[i]);
        }
    }

    function test_GivenComputedCriteria() public {
        escrow = _matched(_newComputedTerms());
        uint24 outcomes = _pack(Outcome.Met, Outcome.NotMet, Outcome.Unclear);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractDelivered(DELIVERY, ROOT, outcomes);
        vm.prank(worker);
        escrow.deliver(DELIVERY, ROOT, outcomes);
        assertStatus(escrow, Status.UnderReview);
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.Met), "first criterion");
        assertEq(uint8(escrow.outcomeOf(1)), uint8(Outcome.NotMet), "second criterion");
        assertEq(uint8(escrow.outcomeOf(2)), uint8(Outcome.Unclear), "third criterion");
    }

    function test_WhenWorkerDelivers() public {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractDelivered(DELIVERY, ROOT, 0);
        vm.prank(worker);
        escrow.deliver(DELIVERY, ROOT, 0);
        _assertDelivered();
    }

    function test_GivenListing() public {
        escrow = _matched(_newListing());
        _expectNotParty(client, worker);
        vm.prank(client);
        escrow.deliver(DELIVERY, ROOT, 0);
        vm.prank(worker);
        escrow.deliver(DELIVERY, ROOT, 0);
        _assertDelivered();
    }

    function _assertDelivered() private view {
        assertStatus(escrow, Status.UnderReview);
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.None), "nothing accepted yet");
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
    }
}
