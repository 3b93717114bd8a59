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

    function test_RevertWhen_BytesAreNotPackedTerms() public {
        bytes memory packed = _packed(t);
        _expectInvalid("not packed terms");
        factory.deploy(bytes.concat(packed, hex"00"));

        _expectInvalid("not packed terms");
        factory.deploy("");

        // A zero counterparty or a flag without meaning would give equal terms a second address.
        _expectInvalid("not packed terms");
        factory.deploy(bytes.concat(packed, bytes20(0)));

        packed[31] = 0x04;
        _expectInvalid("not packed terms");
        factory.deploy(packed);
    }

    function test_RevertWhen_InitiatorIsZero() public {
        t.initiator = address(0);
        t.counterparty = worker;
        _expectInvalid("initiator is zero");
        factory.deploy(_packed(t));
    }

    function test_RevertWhen_CounterpartyIsInitiator() public {
        t.counterparty = client;
        _expectInvalid("counterparty is the initiator");
        factory.deploy(_packed(t));
    }

    function test_RevertWhen_PriceIsZero() public {
        t.price = 0;
        _expectInvalid("price is zero");
        factory.deploy(_packed(t));
    }

    function test_WhenPriceIsHighest() public {
        t.price = type(uint80).max;
        assertEq(WorkingContractEscrow(factory.deploy(_packed(t))).terms().price, type(uint80).max, "price");

        uint256 deposits = 3 * uint256(t.price) + 4095 * 10 * uint256(t.price);
        assertLe(deposits, type(uint96).max, "price, stake, bond and every voter's bonds fit 96 bits");
    }

    function test_RevertWhen_CriteriaCountNotOneToTen() public {
        t.criteriaCount = 0;
        _expectInvalid("criteria count not 1 to 10");
        factory.deploy(_packed(t));
        t.criteriaCount = 11;
        _expectInvalid("criteria count not 1 to 10");
        factory.deploy(_packed(t));
        t.criteriaCount = 10;
        factory.deploy(_packed(t));
    }

    function test_RevertWhen_DeadlinesOutOfOrder() public {
        Terms memory original = t;
        t.matchDeadline = t.withdrawalDeadline + 1;
        _expectInvalid("deadlines out of order");
        factory.deploy(_packed(t));

        t = original;
        t.withdrawalDeadline = t.deliveryDeadline + 1;
        _expectInvalid("deadlines out of order");
        factory.deploy(_packed(t));

        t = original;
        t.deliveryDeadline = t.reviewDeadline;
        _expectInvalid("deadlines out of order");
        factory.deploy(_packed(t));

        t = original;
        t.matchDeadline = t.withdrawalDeadline = t.deliveryDeadline;
        factory.deploy(_packed(t));
    }

    function test_RevertWhen_ReviewDeadlineTooFarAhead() public {
        t.reviewDeadline = uint32(_now()) + 365 days + 1;
        _expectInvalid("review deadline too far ahead");
        factory.deploy(_packed(t));
        t.reviewDeadline -= 1;
        factory.deploy(_packed(t));
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

    function _expectInvalid(string memory reason) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractFactory.InvalidTerms.selector, reason));
    }
}
