// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Outcome, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract DisputeTest is BaseTest {
    Terms internal t;
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        t = _newTerms();
        escrow = _delivered(t, 0);
    }

    function test_RevertGiven_NotUnderReview() public {
        _assertOnlyIn(Status.UnderReview, client, abi.encodeCall(IWorkingContractEscrow.dispute, (_noAuthorization())));
    }

    function test_RevertGiven_ReviewDeadlinePassed() public {
        Authorization memory bond = _authorize(client, address(escrow), BOND);
        vm.warp(t.reviewDeadline);
        _expectWrongStatus(Status.Resolved, Status.UnderReview);
        vm.prank(operator);
        escrow.dispute(bond);
    }

    function test_RevertWhen_CallerNeitherClientNorOperator() public {
        Authorization memory bond = _authorize(client, address(escrow), BOND);
        address[2] memory callers = [worker, stranger];
        for (uint256 i = 0; i < callers.length; ++i) {
            _expectNotPayerOrOperator(callers[i], client);
            vm.prank(callers[i]);
            escrow.dispute(bond);
        }
    }

    function test_RevertWhen_BondShort() public {
        Authorization memory bond = _authorize(client, address(escrow), BOND - 1);
        _expectPaymentFailed(client, BOND);
        vm.prank(operator);
        escrow.dispute(bond);
    }

    function test_WhenOperatorBringsSignedBond() public {
        Authorization memory bond = _authorize(client, address(escrow), BOND);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractDisputed(BOND, _now() + 24 hours);
        vm.prank(operator);
        escrow.dispute(bond);
        assertStatus(escrow, Status.Disputed);
        assertEq(escrow.jury().disputedAt, _now(), "disputed at");
        assertBalance(client, FUNDS - PRICE - BOND, "client");
        assertBalance(address(escrow), PRICE + STAKE + BOND, "escrow");
        assertEq(escrow.booked(), PRICE + STAKE + BOND, "booked");
    }

    function test_GivenTokenPaused() public {
        Authorization memory bond = _authorize(client, address(escrow), BOND);
        usd.setPaused(true);
        _expectPaymentFailed(client, BOND);
        vm.prank(operator);
        escrow.dispute(bond);
        vm.warp(t.reviewDeadline);
        assertStatus(escrow, Status.Resolved);
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.Met), "approved");
    }

    function test_GivenComputedCriteria() public {
        escrow = _delivered(_newComputedTerms(), TWO_MET);
        _dispute(escrow);
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.Met), "first criterion");
        assertEq(uint8(escrow.outcomeOf(2)), uint8(Outcome.NotMet), "third criterion");
    }

    function test_GivenListing() public {
        escrow = _delivered(_newListing(), 0);
        _dispute(escrow);
        assertStatus(escrow, Status.Disputed);
        assertBalance(address(escrow), PRICE + STAKE + BOND, "escrow");
    }
}
