// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractFactory} from "../../../contracts/interfaces/IWorkingContractFactory.sol";
import {Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract DeployTest is BaseTest {
    Terms internal t;

    function setUp() public override {
        super.setUp();
        t = _newTerms();
    }

    function test_WhenTermsComplete() public {
        address predicted = factory.predict(t);
        vm.expectEmit(address(factory));
        emit IWorkingContractFactory.WorkingContractDeployed(predicted, _packed(t));
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.deploy(_packed(t)));
        assertEq(address(escrow), predicted, "address");
        assertStatus(escrow, Status.None);
        assertTrue(factory.isEscrow(predicted), "genuine");
    }

    function test_GivenDeployed() public {
        address escrow = factory.deploy(_packed(t));
        _replaceParameters();
        vm.warp(_now() + 1 days);
        vm.recordLogs();
        assertEq(factory.deploy(_packed(t)), escrow, "same escrow");
        assertEq(vm.getRecordedLogs().length, 0, "no event");
    }

    /// A zero counterparty or a flag without meaning would give equal terms a second address.
    function test_RevertWhen_BytesAreNotPackedTerms() public {
        bytes memory packed = _packed(t);
        _expectInvalid("not packed terms");
        factory.deploy(bytes.concat(packed, bytes20(0)));

        packed[31] = 0x04;
        _expectInvalid("not packed terms");
        factory.deploy(packed);
    }

    function test_RevertWhen_TermsAreInvalid() public {
        Terms memory valid = t;
        (t.initiator, t.counterparty) = (address(0), worker);
        _assertInvalid("initiator is zero", valid);
        t.counterparty = client;
        _assertInvalid("counterparty is the initiator", valid);
        t.price = 0;
        _assertInvalid("price is zero", valid);
        t.criteriaCount = 0;
        _assertInvalid("criteria count not 1 to 10", valid);
        t.criteriaCount = 11;
        _assertInvalid("criteria count not 1 to 10", valid);
        t.matchDeadline = t.withdrawalDeadline + 1;
        _assertInvalid("deadlines out of order", valid);
        t.withdrawalDeadline = t.deliveryDeadline + 1;
        _assertInvalid("deadlines out of order", valid);
        t.deliveryDeadline = t.reviewDeadline;
        _assertInvalid("deadlines out of order", valid);
        t.reviewDeadline = uint32(_now()) + 365 days + 1;
        _assertInvalid("review deadline too far ahead", valid);
    }

    function test_WhenTermsAreAtTheLimits() public {
        t.criteriaCount = 10;
        t.matchDeadline = t.withdrawalDeadline = t.deliveryDeadline;
        t.reviewDeadline = uint32(_now()) + 365 days;
        factory.deploy(_packed(t));
    }

    function test_WhenPriceIsHighest() public {
        t.price = type(uint80).max;
        assertEq(WorkingContractEscrow(factory.deploy(_packed(t))).terms().price, type(uint80).max, "price");

        uint256 deposits = 3 * uint256(t.price) + 4095 * 10 * uint256(t.price);
        assertLe(deposits, type(uint96).max, "price, stake, bond and every voter's bonds fit 96 bits");
    }

    function test_RevertWhen_ParametersNeverSet() public {
        t.parameters.protocolFee = 0;
        vm.expectRevert(IWorkingContractFactory.UnknownParameters.selector);
        factory.deploy(_packed(t));
    }

    function test_GivenParametersReplacedLessThanADayAgo() public {
        _replaceParameters();
        vm.warp(_now() + 1 days - 1);
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.deploy(_packed(t)));
        assertEq(escrow.terms().parameters.protocolFee, 500, "fee of the snapshot");
    }

    function test_RevertGiven_ParametersReplacedADayAgo() public {
        t.matchDeadline += 1;
        _replaceParameters();
        vm.warp(_now() + 1 days);
        vm.expectRevert(IWorkingContractFactory.UnknownParameters.selector);
        factory.deploy(_packed(t));

        vm.warp(t.matchDeadline);
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.deploy(_packed(t)));
        assertStatus(escrow, Status.None);
    }

    function test_WhenAccountIsNotEscrow() public {
        assertFalse(factory.isEscrow(stranger), "account without code");
        assertFalse(factory.isEscrow(address(usd)), "token");
        assertFalse(factory.isEscrow(factory.IMPLEMENTATION()), "implementation");
        // The same code at another address.
        address copy = makeAddr("copy");
        vm.etch(copy, factory.deploy(_packed(t)).code);
        assertFalse(factory.isEscrow(copy), "copied code");
        assertTrue(factory.isEscrow(factory.predict(t)), "escrow");
    }

    /// @dev Asserts that the factory refuses `t`, which is `valid` again afterwards.
    function _assertInvalid(string memory reason, Terms memory valid) private {
        _expectInvalid(reason);
        factory.deploy(_packed(t));
        t = valid;
    }

    function _expectInvalid(string memory reason) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractFactory.InvalidTerms.selector, reason));
    }
}
