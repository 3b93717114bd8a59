// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {BaseTest} from "../Base.t.sol";

contract RevokeTest is BaseTest {
    function test_RevertWhen_CallerNeitherAgentNorOperator() public {
        vm.expectRevert(
            abi.encodeWithSelector(IAgentDelegation.NotAgentOrOperator.selector, stranger, worker, operator)
        );
        vm.prank(stranger);
        delegation.revoke(worker, operator);
    }

    function test_WhenAgentRevokes() public {
        _delegate(worker);
        vm.expectEmit(address(delegation));
        emit IAgentDelegation.DelegationRevoked(worker, operator);
        vm.prank(worker);
        delegation.revoke(worker, operator);
        assertFalse(delegation.isAuthorized(worker, operator), "operator's power");
    }

    function test_WhenOperatorRenounces() public {
        _delegate(worker);
        vm.prank(operator);
        delegation.revoke(worker, operator);
        assertFalse(delegation.isAuthorized(worker, operator), "operator's power");
    }

    function test_GivenTextDatedAhead() public {
        uint40 issuedAt = _now() + 10 minutes;
        bytes memory signature = _signDelegation(worker, operator, bytes32("n"), issuedAt, issuedAt);
        delegation.register(worker, operator, bytes32("n"), issuedAt, issuedAt, signature);
        vm.prank(worker);
        delegation.revoke(worker, operator);
        assertFalse(delegation.isAuthorized(worker, operator), "operator's power");
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, issuedAt, issuedAt));
        delegation.register(worker, operator, bytes32("n"), issuedAt, issuedAt, signature);

        // A second revocation does not move the date back.
        vm.prank(worker);
        delegation.revoke(worker, operator);
        (, uint40 revokedAt) = delegation.grants(worker, operator);
        assertEq(revokedAt, issuedAt, "revoked at");
    }

    function test_GivenNoDelegationYet() public {
        vm.prank(worker);
        delegation.revoke(worker, operator);
        uint40 issuedAt = _now();
        bytes memory signature = _signDelegation(worker, operator, bytes32("n"), issuedAt, issuedAt);
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, issuedAt, issuedAt));
        delegation.register(worker, operator, bytes32("n"), issuedAt, issuedAt, signature);
    }
}
