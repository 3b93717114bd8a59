// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {IWorkingContractFactory} from "../../../contracts/interfaces/IWorkingContractFactory.sol";
import {Authorization, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract CreateTest is BaseTest {
    function test_WhenClientSignsPrice() public {
        Terms memory t = _newTerms();
        address predicted = factory.predict(t);
        Authorization memory deposit = _authorize(client, predicted, PRICE);

        vm.expectEmit(address(factory));
        emit IWorkingContractFactory.WorkingContractDeployed(predicted, _packed(t));
        vm.expectEmit(predicted);
        emit IWorkingContractEscrow.WorkingContractCreated(PRICE);
        vm.prank(operator);
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.create(_packed(t), deposit));

        assertEq(address(escrow), predicted, "address");
        assertStatus(escrow, Status.Created);
        assertEq(escrow.client(), client, "client");
        assertEq(escrow.worker(), address(0), "worker");
        assertEq(keccak256(abi.encode(escrow.terms())), keccak256(abi.encode(t)), "terms");
        assertBalance(client, FUNDS - PRICE, "client");
        assertBalance(predicted, PRICE, "escrow");
        assertEq(escrow.booked(), PRICE, "booked");
        assertTrue(factory.isEscrow(predicted), "genuine");
    }

    function test_WhenWorkerSignsStakeOfListing() public {
        Terms memory t = _newListing();
        address predicted = factory.predict(t);
        Authorization memory deposit = _authorize(worker, predicted, STAKE);
        vm.expectEmit(predicted);
        emit IWorkingContractEscrow.WorkingContractCreated(STAKE);
        vm.prank(stranger);
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.create(_packed(t), deposit));

        assertStatus(escrow, Status.Created);
        assertEq(escrow.client(), address(0), "client");
        assertEq(escrow.worker(), worker, "worker");
        assertBalance(worker, FUNDS - STAKE, "worker");
        assertBalance(predicted, STAKE, "escrow");
    }

    function test_GivenAuthorizationFrontRun() public {
        Terms memory t = _newTerms();
        address predicted = factory.predict(t);
        Authorization memory deposit = _directTransfer(client, predicted, PRICE);

        vm.expectEmit(predicted);
        emit IWorkingContractEscrow.WorkingContractCreated(PRICE);
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.create(_packed(t), deposit));

        assertStatus(escrow, Status.Created);
        assertBalance(client, FUNDS - PRICE, "client");
        assertBalance(predicted, PRICE, "escrow");
        assertEq(escrow.booked(), PRICE, "booked");
    }

    function test_GivenDust() public {
        Terms memory t = _newTerms();
        usd.mint(factory.predict(t), PRICE - 1);
        WorkingContractEscrow escrow = _create(t);
        assertStatus(escrow, Status.Created);
        assertBalance(address(escrow), 2 * uint256(PRICE) - 1, "escrow");
        assertEq(escrow.booked(), PRICE, "booked");
    }

    function test_RevertGiven_ContractExists() public {
        Terms memory t = _newTerms();
        _create(t);
        Authorization memory deposit = _authorize(client, factory.predict(t), PRICE);
        _expectWrongStatus(Status.Created, Status.None);
        factory.create(_packed(t), deposit);
    }

    /// The signature names the address, and the address commits to the terms.
    function test_RevertWhen_TermsDifferFromSigned() public {
        Terms memory signed = _newTerms();
        Authorization memory deposit = _authorize(client, factory.predict(signed), PRICE);
        Terms memory altered = _copy(signed);
        altered.termsHash = keccak256("other words");
        _expectPaymentFailed(client, PRICE);
        vm.prank(operator);
        factory.create(_packed(altered), deposit);
    }

    function test_RevertWhen_DepositShort() public {
        Terms memory t = _newTerms();
        Authorization memory deposit = _authorize(client, factory.predict(t), PRICE - 1);
        _expectPaymentFailed(client, PRICE);
        factory.create(_packed(t), deposit);
    }

    function test_RevertWhen_NoSignature() public {
        Terms memory t = _newTerms();
        vm.startPrank(client);
        usd.approve(factory.predict(t), PRICE);
        _expectNotParty(address(factory), client);
        factory.create(_packed(t), _noAuthorization());
    }

    function test_RevertGiven_MatchDeadlinePassed() public {
        Terms memory t = _newTerms();
        Authorization memory deposit = _authorize(client, factory.predict(t), PRICE);
        vm.warp(t.matchDeadline);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.DeadlinePassed.selector, t.matchDeadline));
        factory.create(_packed(t), deposit);
    }

    function _copy(Terms memory t) private pure returns (Terms memory) {
        return abi.decode(abi.encode(t), (Terms));
    }
}
