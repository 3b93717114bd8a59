// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";

contract ReturnSurplusTest is BaseTest {
    Terms internal t;
    WorkingContractEscrow internal escrow;
    address internal racer;
    Authorization internal lost;

    /// A racer's stake was broadcast at the token by somebody, and another worker was matched.
    function setUp() public override {
        super.setUp();
        racer = agents[0];
        t = _newTerms();
        escrow = _create(t);
        lost = _authorize(racer, address(escrow), STAKE);
        _frontRun(racer, address(escrow), STAKE, lost);
        _accept(escrow, worker);
    }

    function test_WhenOperatorReturns() public {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.SurplusReturned(racer, lost.nonce, STAKE);
        vm.prank(operator);
        escrow.returnSurplus(racer, STAKE, lost);
        assertBalance(racer, FUNDS, "racer");
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
        assertStatus(escrow, Status.Matched);

        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.AuthorizationSpent.selector, racer, lost.nonce));
        vm.prank(operator);
        escrow.returnSurplus(racer, STAKE, lost);
    }

    function test_RevertWhen_AnybodyCallsTooEarly() public {
        vm.warp(t.reviewDeadline + 7 days - 1);
        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.SurplusNotReturnable.selector, t.reviewDeadline + 7 days)
        );
        vm.prank(racer);
        escrow.returnSurplus(racer, STAKE, lost);
    }

    function test_WhenAnybodyCallsAWeekAfterReviewDeadline() public {
        vm.warp(t.reviewDeadline + 7 days);
        vm.prank(stranger);
        escrow.returnSurplus(racer, STAKE, lost);
        assertBalance(racer, FUNDS, "racer");
        assertBalance(stranger, FUNDS, "stranger");
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
        escrow.settle();
        assertBalance(address(escrow), 0, "escrow");
    }

    /// The worker shows the authorization that its own stake was taken by: the racer's turn comes first.
    function test_RevertGiven_PayerHasMoneyBooked() public {
        Authorization memory own = _authorize(worker, address(escrow), STAKE);
        _frontRun(worker, address(escrow), STAKE, own);
        vm.warp(t.reviewDeadline + 14 days - 1);
        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.SurplusNotReturnable.selector, t.reviewDeadline + 14 days)
        );
        vm.prank(worker);
        escrow.returnSurplus(worker, STAKE, own);

        vm.warp(t.reviewDeadline + 14 days);
        vm.prank(worker);
        escrow.returnSurplus(worker, STAKE, own);
        assertBalance(worker, FUNDS - STAKE, "worker");
    }

    function test_GivenMoneyAfterSettlement() public {
        vm.warp(t.deliveryDeadline);
        escrow.settle();
        Authorization memory late = _authorize(client, address(escrow), PRICE);
        _frontRun(client, address(escrow), PRICE, late);
        uint256 before = usd.balanceOf(client);
        vm.prank(operator);
        escrow.returnSurplus(client, PRICE, late);
        assertBalance(client, before + PRICE, "client");
        assertBalance(address(escrow), STAKE, "escrow, the racer's");
    }

    /// Money at an escrow that was never opened: also there the payer gets it back.
    function test_GivenNeverOpened() public {
        Terms memory other = _newListing();
        WorkingContractEscrow unopened = WorkingContractEscrow(factory.deploy(_packed(other)));
        Authorization memory deposit = _authorize(racer, address(unopened), 1e6);
        _frontRun(racer, address(unopened), 1e6, deposit);
        vm.warp(other.reviewDeadline + 7 days);
        unopened.returnSurplus(racer, 1e6, deposit);
        assertBalance(address(unopened), 0, "escrow");
    }

    function test_WhenPayerIsContractWallet() public {
        ContractWallet wallet = new ContractWallet(racer);
        keyOf[address(wallet)] = keyOf[racer];
        usd.mint(address(wallet), STAKE);
        Authorization memory own = _authorize(address(wallet), address(escrow), STAKE);
        _frontRun(address(wallet), address(escrow), STAKE, own);
        vm.prank(operator);
        escrow.returnSurplus(address(wallet), STAKE, own);
        assertBalance(address(wallet), STAKE, "wallet");
    }

    function test_RevertWhen_AuthorizationUnused() public {
        Authorization memory unused = _authorize(racer, address(escrow), STAKE);
        _expectInvalid(racer, unused.nonce);
        vm.prank(operator);
        escrow.returnSurplus(racer, STAKE, unused);
    }

    function test_RevertWhen_AnotherAmount() public {
        _expectInvalid(racer, lost.nonce);
        vm.prank(operator);
        escrow.returnSurplus(racer, STAKE - 1, lost);
    }

    function test_RevertWhen_AnotherPayee() public {
        WorkingContractEscrow other = _create(_newTerms());
        Authorization memory elsewhere = _authorize(racer, address(other), STAKE);
        _frontRun(racer, address(other), STAKE, elsewhere);
        _expectInvalid(racer, elsewhere.nonce);
        vm.prank(operator);
        escrow.returnSurplus(racer, STAKE, elsewhere);
    }

    /// Not even the operator can point the money at somebody who did not pay it.
    function test_RevertWhen_PayerDidNotSign() public {
        _expectInvalid(stranger, lost.nonce);
        vm.prank(operator);
        escrow.returnSurplus(stranger, STAKE, lost);
    }

    function test_RevertWhen_AuthorizationUsedByEscrowItself() public {
        WorkingContractEscrow other = _create(_newTerms());
        Authorization memory own = _authorize(worker, address(other), STAKE);
        vm.prank(operator);
        other.accept(worker, own);
        vm.expectRevert(
            abi.encodeWithSelector(
                IWorkingContractEscrow.InsufficientSurplus.selector, PRICE + STAKE, PRICE + 2 * STAKE
            )
        );
        vm.prank(operator);
        other.returnSurplus(worker, STAKE, own);
    }

    function test_RevertWhen_AuthorizationCancelled() public {
        WorkingContractEscrow other = _create(_newTerms());
        Authorization memory cancelled = _authorize(racer, address(other), STAKE);
        _cancelAuthorization(racer, cancelled.nonce);
        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.InsufficientSurplus.selector, PRICE, PRICE + STAKE)
        );
        vm.prank(operator);
        other.returnSurplus(racer, STAKE, cancelled);
    }

    function _expectInvalid(address payer, bytes32 nonce) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.InvalidAuthorization.selector, payer, nonce));
    }
}
