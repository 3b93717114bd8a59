// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";

contract RefundDirectTransferTest is BaseTest {
    Terms internal t;
    WorkingContractEscrow internal escrow;
    address internal racer;
    Authorization internal lost;

    /// Someone broadcast a racer's stake at the token, and another worker was matched.
    function setUp() public override {
        super.setUp();
        racer = agents[0];
        t = _newTerms();
        escrow = _create(t);
        lost = _directTransfer(racer, address(escrow), STAKE);
        _accept(escrow, worker);
    }

    function test_WhenOperatorRefunds() public {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.DirectTransferRefunded(racer, lost.nonce, STAKE);
        _refund(escrow, racer, STAKE, lost);
        assertBalance(racer, FUNDS, "racer");
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
        assertStatus(escrow, Status.Matched);

        _expectAuthorizationSpent(racer, lost.nonce);
        _refund(escrow, racer, STAKE, lost);
    }

    function test_RevertWhen_AnyoneCallsTooEarly() public {
        vm.warp(t.reviewDeadline + 14 days - 1);
        _expectNotRefundable(t.reviewDeadline + 14 days);
        vm.prank(racer);
        escrow.refundDirectTransfer(racer, STAKE, lost);
    }

    function test_WhenAnyoneCallsTwoWeeksAfterReviewDeadline() public {
        vm.warp(t.reviewDeadline + 14 days);
        vm.prank(stranger);
        escrow.refundDirectTransfer(racer, STAKE, lost);
        assertBalance(racer, FUNDS, "racer");
        assertBalance(stranger, FUNDS, "stranger");
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
        escrow.settle();
        assertBalance(address(escrow), 0, "escrow");
    }

    /// Initiator, counterparty and voters come before a stranger with a cancelled authorization.
    function test_GivenPayerHasMoneyBooked() public {
        _stakeAgents(2);
        escrow = _disputed(_newTerms());
        t = escrow.terms();
        _vote(escrow, agents[1], ALL_MET);
        address[3] memory booked = [client, worker, agents[1]];
        for (uint256 i = 0; i < booked.length; ++i) {
            Authorization memory own = _directTransfer(booked[i], address(escrow), STAKE);
            uint256 before = usd.balanceOf(booked[i]);
            vm.warp(t.reviewDeadline + 7 days - 1);
            _expectNotRefundable(t.reviewDeadline + 7 days);
            vm.prank(booked[i]);
            escrow.refundDirectTransfer(booked[i], STAKE, own);

            vm.warp(t.reviewDeadline + 7 days);
            vm.prank(stranger);
            escrow.refundDirectTransfer(booked[i], STAKE, own);
            assertBalance(booked[i], before + STAKE, "payer");
        }
        assertBalance(address(escrow), escrow.booked(), "escrow");
    }

    /// Otherwise a party could have its consumed payment "refunded" from a bond that is not credited yet.
    function test_GivenLongestVotingWindow() public {
        Parameters memory p = _defaultParameters();
        p.baVotingWindow = 7 days;
        _setParameters(p);
        _stakeAgents(2);
        t = _newTerms();
        escrow = _delivered(t, 0);
        vm.warp(t.reviewDeadline - 1);
        _dispute(escrow);
        vm.warp(_now() + 7 days - 1);
        _vote(escrow, agents[0], ALL_MET);

        Authorization memory bond = _authorize(agents[1], address(escrow), _voteBondOf(t));
        vm.warp(t.reviewDeadline + 7 days);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.VotingClosed.selector, _now() - 1));
        vm.prank(operator);
        escrow.vote(agents[1], _commitment(escrow, agents[1], ALL_MET), bond);
    }

    /// The reason for the delays: the owner has its refund before a stranger's turn.
    function test_GivenStrangerWithCancelledAuthorization() public {
        Authorization memory own = _directTransfer(worker, address(escrow), STAKE);
        Authorization memory cancelled = _cancelled(stranger, address(escrow), STAKE);
        _refund(escrow, racer, STAKE, lost);

        vm.warp(t.reviewDeadline + 7 days);
        _expectNotRefundable(t.reviewDeadline + 14 days);
        vm.prank(stranger);
        escrow.refundDirectTransfer(stranger, STAKE, cancelled);
        vm.prank(worker);
        escrow.refundDirectTransfer(worker, STAKE, own);

        vm.warp(t.reviewDeadline + 14 days);
        _expectInsufficientUnbookedBalance(PRICE + STAKE, PRICE + 2 * STAKE);
        vm.prank(stranger);
        escrow.refundDirectTransfer(stranger, STAKE, cancelled);
    }

    function test_GivenMoneyAfterSettlement() public {
        vm.warp(t.deliveryDeadline);
        escrow.settle();
        Authorization memory late = _directTransfer(client, address(escrow), PRICE);
        uint256 before = usd.balanceOf(client);
        _refund(escrow, client, PRICE, late);
        assertBalance(client, before + PRICE, "client");
        assertBalance(address(escrow), STAKE, "escrow, the racer's");
    }

    /// Before opening, money here counts as the initiator's. Otherwise a signed and cancelled authorization for the
    /// deposit could empty the address.
    function test_RevertGiven_NeverOpened() public {
        WorkingContractEscrow unopened = WorkingContractEscrow(factory.deploy(_packed(_newTerms())));
        Authorization memory deposit = _directTransfer(client, address(unopened), PRICE);
        Authorization memory cancelled = _cancelled(stranger, address(unopened), PRICE);
        vm.warp(unopened.terms().reviewDeadline + 14 days);
        address[2] memory callers = [operator, stranger];
        for (uint256 i = 0; i < callers.length; ++i) {
            _expectWrongStatus(Status.None, Status.Created);
            vm.prank(callers[i]);
            unopened.refundDirectTransfer(stranger, PRICE, cancelled);
        }

        unopened.open(_noAuthorization());
        unopened.settle();
        assertBalance(client, FUNDS - PRICE, "client, who paid the price of the first escrow");
    }

    /// Opening spends the authorization that paid the deposit: submitting it again pays nothing.
    function test_GivenDepositWasHereBeforeOpening() public {
        (WorkingContractEscrow other, Authorization memory deposit) = _openedFromBalance();
        Authorization memory theirs = _directTransfer(racer, address(other), PRICE);
        uint256 before = usd.balanceOf(client);

        vm.expectEmit(address(other));
        emit IWorkingContractEscrow.DirectTransferCredited(client, deposit.nonce, PRICE);
        _refund(other, client, PRICE, deposit);
        assertBalance(client, before, "client");
        assertBalance(address(other), 2 * PRICE, "escrow");

        _expectAuthorizationSpent(client, deposit.nonce);
        _refund(other, client, PRICE, deposit);
        _refund(other, racer, PRICE, theirs);
        assertBalance(racer, FUNDS - STAKE, "racer, whose stake is at the first escrow");
    }

    /// The flag absorbs one claim of exactly the deposit: a second payment of the initiator is refunded in full.
    function test_GivenInitiatorPaidTwice() public {
        (WorkingContractEscrow other, Authorization memory deposit) = _openedFromBalance();
        Authorization memory again = _directTransfer(client, address(other), PRICE);
        uint256 before = usd.balanceOf(client);
        vm.startPrank(operator);
        other.refundDirectTransfer(client, PRICE, again);
        assertBalance(client, before, "client, after the first claim");
        other.refundDirectTransfer(client, PRICE, deposit);
        assertBalance(client, before + PRICE, "client, after the second");
        assertBalance(address(other), other.booked(), "escrow");
    }

    /// Any other amount paid by the initiator is not an opening deposit.
    function test_GivenInitiatorPaidAnotherAmount() public {
        (WorkingContractEscrow other,) = _openedFromBalance();
        _assertRefundable(other, STAKE);
    }

    /// If the escrow collected the deposit itself, an equal payment beside it is refunded to the initiator.
    function test_GivenDepositWasCollectedByOpening() public {
        _assertRefundable(escrow, PRICE);
    }

    function test_WhenPayerIsContractWallet() public {
        ContractWallet wallet = new ContractWallet(racer);
        keyOf[address(wallet)] = keyOf[racer];
        usd.mint(address(wallet), STAKE);
        Authorization memory own = _directTransfer(address(wallet), address(escrow), STAKE);
        _refund(escrow, address(wallet), STAKE, own);
        assertBalance(address(wallet), STAKE, "wallet");
    }

    function test_RevertWhen_AuthorizationDidNotPayThis() public {
        Authorization memory unused = _authorize(racer, address(escrow), STAKE);
        Authorization memory elsewhere = _directTransfer(racer, address(_create(_newTerms())), STAKE);
        _assertInvalid(racer, STAKE, unused);
        _assertInvalid(racer, STAKE, elsewhere);
        _assertInvalid(racer, STAKE - 1, lost);
        // Not even the operator can assign the money to someone who did not pay it.
        _assertInvalid(stranger, STAKE, lost);
    }

    function test_RevertWhen_AuthorizationUsedByEscrowItself() public {
        WorkingContractEscrow other = _create(_newTerms());
        Authorization memory own = _authorize(worker, address(other), STAKE);
        vm.prank(operator);
        other.accept(worker, own);
        _expectInsufficientUnbookedBalance(PRICE + STAKE, PRICE + 2 * STAKE);
        _refund(other, worker, STAKE, own);
    }

    function test_RevertWhen_AuthorizationCancelled() public {
        WorkingContractEscrow other = _create(_newTerms());
        Authorization memory cancelled = _cancelled(racer, address(other), STAKE);
        _expectInsufficientUnbookedBalance(PRICE, PRICE + STAKE);
        _refund(other, racer, STAKE, cancelled);
    }

    /// @dev An escrow whose deposit arrived through `deposit` before it was opened.
    function _openedFromBalance() private returns (WorkingContractEscrow other, Authorization memory deposit) {
        Terms memory terms = _newTerms();
        deposit = _directTransfer(client, factory.predict(terms), PRICE);
        other = WorkingContractEscrow(factory.create(_packed(terms), deposit));
    }

    function _refund(WorkingContractEscrow from, address payer, uint256 amount, Authorization memory used) private {
        vm.prank(operator);
        from.refundDirectTransfer(payer, amount, used);
    }

    function _expectNotRefundable(uint40 refundableAt) private {
        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.DirectTransferNotRefundable.selector, refundableAt)
        );
    }

    function _assertInvalid(address payer, uint256 amount, Authorization memory used) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.InvalidAuthorization.selector, payer, used.nonce));
        _refund(escrow, payer, amount, used);
    }

    /// A payment that the client now sends directly is refunded whole.
    function _assertRefundable(WorkingContractEscrow to, uint256 amount) private {
        Authorization memory sent = _directTransfer(client, address(to), amount);
        uint256 before = usd.balanceOf(client);
        _refund(to, client, amount, sent);
        assertBalance(client, before + amount, "client");
    }
}
