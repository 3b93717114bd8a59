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
        assertStatus(escrow, Status.CancelledByInitiator);
        assertBalance(address(escrow), PRICE, "escrow");
    }
}
