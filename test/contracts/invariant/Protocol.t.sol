// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Status} from "../../../contracts/types/Types.sol";
import {ProtocolHandler} from "./ProtocolHandler.sol";

contract ProtocolInvariantTest is Test {
    ProtocolHandler internal handler;

    function setUp() public {
        handler = new ProtocolHandler();
        handler.setUp();

        bytes4[] memory actions = new bytes4[](6);
        actions[0] = handler.create.selector;
        actions[1] = handler.advance.selector;
        actions[2] = handler.vote.selector;
        actions[3] = handler.open.selector;
        actions[4] = handler.pass.selector;
        actions[5] = handler.disturb.selector;
        targetSelector(FuzzSelector({addr: address(handler), selectors: actions}));
        targetContract(address(handler));
    }

    /// Conservation to the unit: each escrow holds its booked money plus direct transfers, the people hold the rest,
    /// and the registry holds every stake. Status never goes back, ends are final, nothing pays twice, and no one uses
    /// another's money. One invariant, because each has a separate campaign.
    function invariant_MoneyAddsUp() public view {
        for (uint256 i = 0; i < handler.escrowCount(); ++i) {
            WorkingContractEscrow escrow = handler.escrows(i);
            assertEq(
                handler.balanceOf(escrow), escrow.booked() + handler.directlySentTo(escrow), "balance of the escrow"
            );
        }
        assertEq(handler.totalHeld(), handler.totalSupply(), "sum of all balances");
        (uint256 booked, uint256 held) = handler.stakedTokens();
        assertEq(held, booked, "tokens of the registry");
        if (handler.violationCount() != 0) assertEq(handler.violations(0), "", "violation");
    }

    /// No dead end: wherever a history stops, time and anyone's calls pay out every unit. If the service is gone for
    /// good, the parties and voters can still collect every unit without it.
    function afterInvariant() public {
        uint256 stopped = vm.snapshotState();
        _assertExit();
        vm.revertToState(stopped);
        _assertExitAlone();
    }

    function _assertExit() private {
        handler.exit();
        for (uint256 i = 0; i < handler.escrowCount(); ++i) {
            WorkingContractEscrow escrow = handler.escrows(i);
            assertEq(handler.balanceOf(escrow), handler.unpayable(escrow), "left in the escrow");
        }
        assertEq(handler.totalHeld(), handler.totalSupply(), "sum of all balances");
    }

    function _assertExitAlone() private {
        (uint256 due, uint256 got) = handler.exitAlone();
        assertEq(got, due, "people received what the escrows held");
        for (uint256 i = 0; i < handler.escrowCount(); ++i) {
            assertEq(handler.balanceOf(handler.escrows(i)), 0, "left in the escrow");
        }
    }

    /// The invariants prove something only about states that the histories reach.
    function test_HistoriesReachEveryStatusAndJury() public {
        uint256 seed;
        for (uint256 run = 0; run < 60 && bytes(_neverReached()).length != 0; ++run) {
            for (uint256 i = 0; i < 120; ++i) {
                seed = uint256(keccak256(abi.encode(seed)));
                _step(seed);
            }
            handler.forget();
        }
        assertEq(_neverReached(), "", "never reached");
    }

    function _neverReached() private view returns (string memory) {
        for (uint256 i = 1; i <= uint256(type(Status).max); ++i) {
            if (handler.reached(Status(i)) == 0) return string.concat("status ", vm.toString(i));
        }
        for (uint256 i = 0; i <= 7; ++i) {
            if (handler.talliesWith(i) == 0) return string.concat("tallies with votes: ", vm.toString(i));
        }
        return "";
    }

    function _step(uint256 seed) private {
        uint256 a = seed >> 16;
        uint256 b = seed >> 64;
        uint256 kind = seed % 8;
        if (kind == 0) handler.create(a);
        else if (kind < 4) handler.advance(a);
        else if (kind == 4) handler.vote(a);
        else if (kind == 5) handler.open(a);
        else if (kind == 6) handler.pass(a);
        else handler.disturb(a, b, seed >> 128, seed >> 192);
    }
}
