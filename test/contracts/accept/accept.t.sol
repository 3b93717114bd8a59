// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";
import {FeeUSD} from "../mocks/FeeUSD.sol";

contract AcceptTest is BaseTest {
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        escrow = _create(_newTerms());
    }

    function test_RevertGiven_NotCreated() public {
        _assertOnlyIn(
            Status.Created, worker, abi.encodeCall(IWorkingContractEscrow.accept, (worker, _noAuthorization()))
        );
    }

    function test_RevertWhen_CallerNeitherPayerNorOperator() public {
        Authorization memory deposit = _authorize(worker, address(escrow), STAKE);
        _expectNotPayerOrOperator(stranger, worker);
        vm.prank(stranger);
        escrow.accept(worker, deposit);
    }

    function test_RevertWhen_PartyIsInitiatorOrZero() public {
        address[2] memory parties = [client, address(0)];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.InitiatorCannotAccept.selector, parties[i]));
            vm.prank(i == 0 ? client : operator);
            escrow.accept(parties[i], _noAuthorization());
        }
    }

    function test_RevertGiven_AnotherCounterpartyNamed() public {
        Terms memory named = _newTerms();
        named.counterparty = worker;
        WorkingContractEscrow direct = _create(named);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotCounterparty.selector, stranger, worker));
        vm.prank(stranger);
        direct.accept(stranger, _noAuthorization());
    }

    function test_RevertWhen_AuthorizationDoesNotPay() public {
        _assertPaymentFails(operator, _authorize(worker, address(escrow), STAKE - 1));

        Authorization memory deposit = _authorize(worker, address(escrow), STAKE);
        bytes32 digest = _transferDigest(address(usd), worker, address(escrow), STAKE, deposit);
        deposit.signature = _sign(keyOf[stranger], digest);
        _assertPaymentFails(operator, deposit);

        deposit.validBefore = _now();
        deposit.signature = _sign(keyOf[worker], _transferDigest(address(usd), worker, address(escrow), STAKE, deposit));
        _assertPaymentFails(operator, deposit);

        deal(address(usd), worker, STAKE - 1);
        _assertPaymentFails(operator, _authorize(worker, address(escrow), STAKE));
    }

    /// The token is trusted to move the whole amount; if it does not, the books must not say that it did.
    function test_RevertWhen_TokenTakesFee() public {
        vm.etch(address(usd), address(new FeeUSD()).code);
        _assertPaymentFails(operator, _authorize(worker, address(escrow), STAKE));

        vm.startPrank(worker);
        usd.approve(address(escrow), STAKE);
        _expectPaymentFailed(worker, STAKE);
        escrow.accept(worker, _noAuthorization());
    }

    /// A cancelled authorization reads as used at the token; it must not pass for a payment.
    function test_RevertWhen_AuthorizationCancelled() public {
        Authorization memory deposit = _cancelled(worker, address(escrow), STAKE);
        _assertPaymentFails(operator, deposit);

        _expectInsufficientUnbookedBalance(PRICE, PRICE + STAKE);
        vm.prank(operator);
        escrow.withDirectTransfer(abi.encodeCall(escrow.accept, (worker, deposit)));
    }

    /// An authorization cancelled after its verification must not take someone else's direct transfer.
    function test_RevertWhen_AuthorizationCancelled_GivenDirectTransferOfAnother() public {
        Authorization memory theirs = _directTransfer(stranger, address(escrow), STAKE);
        Authorization memory deposit = _cancelled(worker, address(escrow), STAKE);
        _assertPaymentFails(operator, deposit);
    }

    /// The operator's permission ends with the action that it was given for, even within the transaction.
    function test_RevertWhen_DirectTransferWasAllowedForAnotherAction() public {
        Authorization memory theirs = _directTransfer(stranger, address(escrow), STAKE);
        Authorization memory deposit = _cancelled(worker, address(escrow), STAKE);
        vm.startPrank(operator);
        escrow.withDirectTransfer(abi.encodeCall(escrow.status, ()));
        _expectPaymentFailed(worker, STAKE);
        escrow.accept(worker, deposit);
    }

    function test_RevertWhen_DirectTransferIsNotAllowedByTheOperator() public {
        Authorization memory deposit = _directTransfer(worker, address(escrow), STAKE);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotOperator.selector, worker));
        vm.prank(worker);
        escrow.withDirectTransfer(abi.encodeCall(escrow.accept, (worker, deposit)));
    }

    function test_RevertWhen_OperatorBringsNoSignature() public {
        vm.prank(worker);
        usd.approve(address(escrow), STAKE);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotParty.selector, operator, worker));
        vm.prank(operator);
        escrow.accept(worker, _noAuthorization());
    }

    function test_WhenOperatorBringsSignedStake() public {
        Authorization memory deposit = _authorize(worker, address(escrow), STAKE);
        _expectMatched(worker, STAKE);
        vm.prank(operator);
        escrow.accept(worker, deposit);
        _assertMatched();
    }

    function test_WhenWorkerPaysFromAllowance() public {
        vm.startPrank(worker);
        usd.approve(address(escrow), STAKE);
        _expectMatched(worker, STAKE);
        escrow.accept(worker, _noAuthorization());
        _assertMatched();
    }

    function test_WhenWorkerBringsItsOwnSignature() public {
        Authorization memory deposit = _authorize(worker, address(escrow), STAKE);
        vm.prank(worker);
        escrow.accept(worker, deposit);
        _assertMatched();
    }

    function test_GivenListing() public {
        escrow = _create(_newListing());
        Authorization memory deposit = _authorize(client, address(escrow), PRICE);
        uint256 before = usd.balanceOf(client);
        _expectMatched(client, PRICE);
        vm.prank(operator);
        escrow.accept(client, deposit);

        assertStatus(escrow, Status.Matched);
        assertEq(escrow.client(), client, "client");
        assertEq(escrow.worker(), worker, "worker");
        assertBalance(client, before - PRICE, "client");
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
    }

    function test_WhenPayerIsContractWallet() public {
        ContractWallet wallet = new ContractWallet(worker);
        usd.mint(address(wallet), STAKE);
        keyOf[address(wallet)] = keyOf[worker];
        Authorization memory deposit = _authorize(address(wallet), address(escrow), STAKE);
        _expectMatched(address(wallet), STAKE);
        vm.prank(operator);
        escrow.accept(address(wallet), deposit);

        assertEq(escrow.worker(), address(wallet), "worker");
        assertBalance(address(wallet), 0, "wallet");
    }

    function test_WhenTwoAgentsRace() public {
        Authorization memory loser = _authorize(stranger, address(escrow), STAKE);
        _accept(escrow, worker);
        _expectWrongStatus(Status.Matched, Status.Created);
        vm.prank(operator);
        escrow.accept(stranger, loser);
    }

    function test_WhenFrontRun_CreditedByOperatorOnce() public {
        Authorization memory deposit = _directTransfer(worker, address(escrow), STAKE);
        _assertPaymentFails(operator, deposit);

        _expectMatched(worker, STAKE);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.DirectTransferCredited(worker, deposit.nonce, STAKE);
        vm.prank(operator);
        escrow.withDirectTransfer(abi.encodeCall(escrow.accept, (worker, deposit)));
        _assertMatched();

        _expectAuthorizationSpent(worker, deposit.nonce);
        vm.prank(operator);
        escrow.refundDirectTransfer(worker, STAKE, deposit);
    }

    function test_WhenOnlyTheEscrowCanReceive() public {
        Authorization memory deposit = _authorizeReceipt(worker, address(escrow), STAKE);
        vm.expectRevert();
        _frontRun(worker, address(escrow), STAKE, deposit);
        vm.expectRevert();
        vm.prank(operator);
        usd.receiveWithAuthorization(
            worker, address(escrow), STAKE, deposit.validAfter, deposit.validBefore, deposit.nonce, deposit.signature
        );

        _expectMatched(worker, STAKE);
        vm.prank(operator);
        escrow.accept(worker, deposit);
        _assertMatched();

        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.InvalidAuthorization.selector, worker, deposit.nonce)
        );
        vm.prank(operator);
        escrow.refundDirectTransfer(worker, STAKE, deposit);
    }

    function test_RevertWhen_FrontRunAndCallerIsPayer() public {
        Authorization memory deposit = _directTransfer(worker, address(escrow), STAKE);
        _assertPaymentFails(worker, deposit);
    }

    /// Someone else's uncredited money must not pay for the worker, whatever the operator submits.
    function test_RevertWhen_DirectTransferIsAnotherPayers() public {
        Authorization memory theirs = _directTransfer(stranger, address(escrow), STAKE);
        _expectPaymentFailed(worker, STAKE);
        vm.prank(operator);
        escrow.withDirectTransfer(abi.encodeCall(escrow.accept, (worker, theirs)));
    }

    function _assertPaymentFails(address caller, Authorization memory deposit) private {
        _expectPaymentFailed(worker, STAKE);
        vm.prank(caller);
        escrow.accept(worker, deposit);
    }

    function _expectMatched(address party, uint256 amount) private {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractMatched(party, amount);
    }

    function _assertMatched() private view {
        assertStatus(escrow, Status.Matched);
        assertEq(escrow.worker(), worker, "worker");
        assertEq(escrow.client(), client, "client");
        assertBalance(worker, FUNDS - STAKE, "worker");
        assertBalance(address(escrow), PRICE + STAKE, "escrow");
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
    }
}
