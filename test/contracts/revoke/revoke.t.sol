// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {AgentAction, Delegation} from "../../../contracts/types/Types.sol";
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
        assertFalse(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "operator's power");
    }

    function test_WhenOperatorRenounces() public {
        _delegate(worker);
        vm.prank(operator);
        delegation.revoke(worker, operator);
        assertFalse(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "operator's power");
    }

    function test_GivenTextDatedAhead() public {
        Delegation memory d = _delegationOf(worker);
        d.issuedAt += 10 minutes;
        bytes memory signature = _signDelegation(d);
        delegation.register(d, signature);
        vm.prank(worker);
        delegation.revoke(worker, operator);
        assertFalse(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "operator's power");
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, d.issuedAt, d.issuedAt));
        delegation.register(d, signature);

        // A second revocation does not move the date back.
        vm.prank(worker);
        delegation.revoke(worker, operator);
        (, uint40 revokedAt,,) = delegation.grants(worker, operator);
        assertEq(revokedAt, d.issuedAt, "revoked at");
    }

    function test_GivenNoDelegationYet() public {
        vm.prank(worker);
        delegation.revoke(worker, operator);
        Delegation memory d = _delegationOf(worker);
        bytes memory signature = _signDelegation(d);
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, d.issuedAt, d.issuedAt));
        delegation.register(d, signature);
    }
}
