// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract OpenTest is BaseTest {
    Terms internal t;
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        t = _newTerms();
        escrow = WorkingContractEscrow(factory.deploy(_packed(t)));
    }

    function test_RevertGiven_NotNone() public {
        _assertOnlyIn(Status.None, client, abi.encodeCall(IWorkingContractEscrow.open, (_noAuthorization())));
    }

    function test_WhenInitiatorPaysFromAllowance() public {
        vm.startPrank(client);
        usd.approve(address(escrow), PRICE);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractCreated(PRICE);
        escrow.open(_noAuthorization());
        assertStatus(escrow, Status.Created);
        assertBalance(client, FUNDS - PRICE, "client");
        assertBalance(address(escrow), PRICE, "escrow");
    }

    function test_RevertWhen_SomeoneElseOffersTheAllowance() public {
        vm.prank(client);
        usd.approve(address(escrow), PRICE);
        _expectNotParty(stranger, client);
        vm.prank(stranger);
        escrow.open(_noAuthorization());
    }

    function test_WhenThirdPartyFunds() public {
        usd.mint(address(escrow), PRICE);
        vm.prank(stranger);
        escrow.open(_noAuthorization());
        assertStatus(escrow, Status.Created);

        vm.prank(client);
        escrow.cancel();
        escrow.settle();
        assertBalance(client, FUNDS + PRICE, "client");
        assertBalance(stranger, FUNDS, "stranger");
    }

    function test_GivenMoneyArrivedLate() public {
        Authorization memory deposit = _authorize(client, address(escrow), PRICE);
        vm.warp(t.matchDeadline + 30 days);
        _frontRun(client, address(escrow), PRICE, deposit);

        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractCreated(PRICE);
        vm.prank(stranger);
        factory.create(_packed(t), deposit);
        assertStatus(escrow, Status.CancelledUnmatched);

        vm.prank(stranger);
        escrow.settle();
        assertBalance(client, FUNDS, "client");
        assertBalance(address(escrow), 0, "escrow");
    }

    /// Late money at an address that was never deployed, under parameters that are no longer valid.
    function test_GivenMoneyArrivedLateUnderPreviousParameters() public {
        t = _newTerms();
        address predicted = factory.predict(t);
        Authorization memory deposit = _authorize(client, predicted, PRICE);
        _replaceParameters();
        vm.warp(t.reviewDeadline + 400 days);
        _frontRun(client, predicted, PRICE, deposit);

        factory.create(_packed(t), deposit);
        WorkingContractEscrow(predicted).settle();
        assertBalance(client, FUNDS, "client");
        assertBalance(predicted, 0, "escrow");
    }

    function test_RevertGiven_NoMoneyAndMatchDeadlinePassed() public {
        vm.warp(t.matchDeadline);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.DeadlinePassed.selector, t.matchDeadline));
        vm.prank(client);
        escrow.open(_noAuthorization());
    }

    function test_GivenStakeRoundsToZero() public {
        Terms memory listing = _newListing();
        listing.price = 19;
        escrow = WorkingContractEscrow(factory.deploy(_packed(listing)));
        _expectNotParty(stranger, worker);
        vm.prank(stranger);
        escrow.open(_noAuthorization());

        vm.prank(worker);
        escrow.open(_noAuthorization());
        assertStatus(escrow, Status.Created);
        assertBalance(worker, FUNDS, "worker");
    }
}
