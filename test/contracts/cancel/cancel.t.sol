// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract CancelTest is BaseTest {
    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        escrow = _create(_newTerms());
    }

    function test_RevertGiven_NotCreated() public {
        _assertOnlyIn(Status.Created, client, abi.encodeCall(IWorkingContractEscrow.cancel, ()));
    }

    function test_RevertWhen_CallerDoesNotActForInitiator() public {
        bytes memory call = abi.encodeCall(IWorkingContractEscrow.cancel, ());
        _assertNotParty(client, [worker, stranger, operator], address(escrow), call);
    }

    function test_WhenClientCancels() public {
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractCancelled();
        vm.prank(client);
        escrow.cancel();
        _assertRefundsClient();
    }

    function test_WhenOperatorCancelsWithDelegation() public {
        _delegate(client);
        vm.prank(operator);
        escrow.cancel();
        _assertRefundsClient();
    }

    function test_RevertWhen_DelegationRevoked() public {
        _delegate(client);
        vm.prank(client);
        delegation.revoke(client, operator);
        _expectNotParty(operator, client);
        vm.prank(operator);
        escrow.cancel();
    }

    function test_GivenListing() public {
        escrow = _create(_newListing());
        vm.prank(worker);
        escrow.cancel();
        assertStatus(escrow, Status.CancelledByInitiator);
        escrow.settle();
        assertBalance(worker, FUNDS, "worker");
        assertBalance(address(escrow), 0, "escrow");
    }

    function _assertRefundsClient() private {
        assertStatus(escrow, Status.CancelledByInitiator);
        assertBalance(address(escrow), PRICE, "escrow before settlement");
        escrow.settle();
        assertStatus(escrow, Status.CancelledByInitiator);
        assertBalance(client, FUNDS, "client");
        assertBalance(treasury, 0, "treasury");
    }
}
