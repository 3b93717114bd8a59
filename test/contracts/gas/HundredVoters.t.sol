// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Status} from "../../../contracts/types/Types.sol";
import {Operation} from "../Operations.sol";
import {GasBaseTest} from "./GasBase.sol";

/// @notice A hundred voters on ten criteria: each step costs the same as with three voters. All votes can be opened in
/// one transaction, and all claims paid in one.
/// forge-config: default.isolate = true
contract HundredVotersTest is GasBaseTest {
    uint256 private constant VOTERS = 100;
    uint256 private constant FEW = 3;
    uint8 private constant CRITERIA = 10;
    uint256 private constant TRANSACTION_GAS_LIMIT = 2 ** 24;
    /// The remainder of a division among winners costs settlement a storage write; calldata differs by some zeros.
    uint256 private constant TOLERANCE = 5000;

    /// Gas of each step's last repetition.
    mapping(string step => uint256) private manyVoters;
    mapping(string step => uint256) private fewVoters;

    function test_EveryStepCostsTheSameAsWithThreeVoters() public {
        _addJurors(VOTERS);
        _runAlone(_disputed(_terms(CRITERIA, 1)), VOTERS, manyVoters);
        _runAlone(_disputed(_terms(CRITERIA, 2)), FEW, fewVoters);

        string[5] memory steps = ["vote", "openVote", "tally", "settle", "claim"];
        for (uint256 i = 0; i < steps.length; ++i) {
            uint256 gasUsed = manyVoters[steps[i]];
            vm.snapshotValue("hundred-voters", string.concat(steps[i], ", the hundredth"), gasUsed);
            assertLe(gasUsed, TRANSACTION_GAS_LIMIT, steps[i]);
            assertLe(gasUsed, fewVoters[steps[i]] + TOLERANCE, string.concat(steps[i], ": as with three voters"));
        }
    }

    function test_AllOpenedAndAllPaidInOneTransactionEach() public {
        _addJurors(VOTERS);
        address escrow = _disputed(_terms(CRITERIA, 1));
        Operation[] memory opening = new Operation[](VOTERS + 1);
        Operation[] memory paying = new Operation[](VOTERS + 1);
        for (uint256 i = 0; i < VOTERS; ++i) {
            _relay(_one(_vote(escrow, jurors[i], _votesOf(i))));
            opening[i] = _openVote(escrow, jurors[i], _votesOf(i));
            paying[i + 1] = _claim(escrow, jurors[i]);
        }
        opening[VOTERS] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.tally, ()));
        paying[0] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ()));
        vm.warp(vm.getBlockTimestamp() + 24 hours);

        uint256 openingGas = _relay(opening);
        uint256 payingGas = _relay(paying);
        vm.snapshotValue("hundred-voters", "all votes opened and tallied in one transaction", openingGas);
        vm.snapshotValue("hundred-voters", "settled and all claims paid in one transaction", payingGas);
        assertLe(openingGas, TRANSACTION_GAS_LIMIT, "opening");
        assertLe(payingGas, TRANSACTION_GAS_LIMIT, "paying");
        assertEq(usd.balanceOf(escrow), 0, "paid out");
        assertEq(uint8(WorkingContractEscrow(escrow).status()), uint8(Status.SettledPartial), "status");
    }

    /// @dev Each step in a separate transaction; settled before the claims, so that both start from the same books.
    function _runAlone(address escrow, uint256 voters, mapping(string => uint256) storage gasOf) private {
        for (uint256 i = 0; i < voters; ++i) {
            gasOf["vote"] = _relay(_one(_vote(escrow, jurors[i], _votesOf(i))));
        }
        vm.warp(vm.getBlockTimestamp() + 24 hours);
        for (uint256 i = 0; i < voters; ++i) {
            gasOf["openVote"] = _relay(_one(_openVote(escrow, jurors[i], _votesOf(i))));
        }
        gasOf["tally"] = _relay(_one(_operation(escrow, abi.encodeCall(IWorkingContractEscrow.tally, ()))));
        gasOf["settle"] = _relay(_one(_operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ()))));
        for (uint256 i = 0; i < voters; ++i) {
            gasOf["claim"] = _relay(_one(_claim(escrow, jurors[i])));
        }
        assertEq(usd.balanceOf(escrow), 0, "paid out");
    }

    /// @dev Two of three voters find the even criteria met and the odd ones not met; every third is unclear on all.
    function _votesOf(uint256 voter) private pure returns (uint24) {
        return voter % 3 == 1 ? 0xFFFFF : 0x99999;
    }
}
