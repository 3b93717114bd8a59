// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractFactory} from "../../../contracts/interfaces/IWorkingContractFactory.sol";
import {TermsCodec} from "../../../contracts/libraries/TermsCodec.sol";
import {Parameters} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract SetParametersTest is BaseTest {
    Parameters internal p;

    function setUp() public override {
        super.setUp();
        p = _defaultParameters();
        p.protocolFee = 100;
    }

    function test_RevertWhen_CallerNotOwner() public {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, stranger));
        vm.prank(stranger);
        factory.setParameters(p);
    }

    function test_WhenWithinBounds() public {
        vm.expectEmit(address(factory));
        emit IWorkingContractFactory.ParametersChanged(p);
        _setParameters(p);

        assertEq(keccak256(abi.encode(factory.parameters())), keccak256(abi.encode(p)), "current");
        assertEq(_validUntil(p), type(uint40).max, "current without end");
        assertEq(_validUntil(_defaultParameters()), _now() + 1 days, "former for a day");
    }

    function test_GivenPreviousParametersSetAgain() public {
        _setParameters(p);
        _setParameters(_defaultParameters());
        assertEq(_validUntil(_defaultParameters()), type(uint40).max, "current without end");
        assertEq(_validUntil(p), _now() + 1 days, "replaced");
        _setParameters(_defaultParameters());
        assertEq(_validUntil(_defaultParameters()), type(uint40).max, "set to what they were");
    }

    function test_GivenLiveContract() public {
        WorkingContractEscrow escrow = _create(_newTerms());
        _setParameters(p);
        assertEq(escrow.terms().parameters.protocolFee, 500, "fee of the snapshot");
    }

    function test_RevertWhen_OutOfBounds() public {
        p.protocolFee = 2001;
        _expectInvalid("protocolFee");
        p.protocolFee = 2000;
        p.workerStakeRatio = 10_001;
        _expectInvalid("workerStakeRatio");
        p.workerStakeRatio = 10_000;
        p.disputeBondRatio = 10_001;
        _expectInvalid("disputeBondRatio");
        p.disputeBondRatio = 10_000;
        p.backupAgentBondRatio = 10_001;
        _expectInvalid("backupAgentBondRatio");
        p.backupAgentBondRatio = 10_000;
        p.earlyWithdrawalSlashRatio = 10_001;
        _expectInvalid("earlyWithdrawalSlashRatio");
        p.earlyWithdrawalSlashRatio = 10_000;
        p.absentNoneMetClientShare = 10_001;
        _expectInvalid("absentNoneMetClientShare");
        p.absentNoneMetClientShare = 10_000;
        p.baUnclearSlashRatio = 10_001;
        _expectInvalid("baUnclearSlashRatio");
        p.baUnclearSlashRatio = 10_000;
        p.baVotingWindow = 1 hours - 1;
        _expectInvalid("baVotingWindow");
        p.baVotingWindow = 7 days + 1;
        _expectInvalid("baVotingWindow");
        p.baVotingWindow = 7 days;
        p.baRecruitCount = 32;
        _expectInvalid("baRecruitCount");
        p.baRecruitCount = 31;
        p.baEligibilityStake = 999;
        _expectInvalid("baEligibilityStake");
        p.baEligibilityStake = 1000;
        p.payoutHold = 72 hours + 1;
        _expectInvalid("payoutHold");
        p.payoutHold = 72 hours;
        _setParameters(p);
    }

    function test_WhenTreasuryIsSet() public {
        vm.expectEmit(address(factory));
        emit IWorkingContractFactory.TreasuryChanged(stranger);
        _assertOwnerSets(factory.setTreasury, factory.treasury);
    }

    function test_WhenReviewerIsSet() public {
        vm.expectEmit(address(factory));
        emit IWorkingContractFactory.ReviewerChanged(stranger);
        _assertOwnerSets(factory.setReviewer, factory.reviewer);
    }

    function _assertOwnerSets(function(address) external set, function() external view returns (address) get) private {
        vm.prank(owner);
        set(stranger);
        assertEq(get(), stranger, "account");

        vm.expectRevert(IWorkingContractFactory.ZeroAddress.selector);
        vm.prank(owner);
        set(address(0));

        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, stranger));
        vm.prank(stranger);
        set(stranger);
    }

    function _expectInvalid(string memory reason) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractFactory.InvalidParameters.selector, reason));
        _setParameters(p);
    }

    function _validUntil(Parameters memory parameters) private view returns (uint40) {
        return factory.parametersValidUntil(TermsCodec.packParameters(parameters));
    }
}
