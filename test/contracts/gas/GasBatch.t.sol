// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Status, Terms} from "../../../contracts/types/Types.sol";
import {Operation} from "../Operations.sol";
import {GasBaseTest} from "./GasBase.sol";

/// @notice Gas of whole lifecycles in batches of ten, each on a different escrow.
/// forge-config: default.isolate = true
contract GasBatchTest is GasBaseTest {
    uint24 private constant VOTES = 0x155;

    Operation[] private batch;

    function test_HappyLifecycle() public {
        address[] memory escrows = _measureUntilDelivery(3);
        _measureBatch("approve", _all(escrows, abi.encodeCall(IWorkingContractEscrow.approve, ())));
        _measureBatch("settle", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        vm.snapshotValue("lifecycle", "happy path, in batches of ten, per Working Contract", total / BATCH);
        assertEq(uint8(IWorkingContractEscrow(escrows[9]).status()), uint8(Status.SettledAllMet), "settled");
    }

    function test_HappyLifecycle_SettledBehindApproval() public {
        address[] memory escrows = _measureUntilDelivery(3);
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_operation(escrows[i], abi.encodeCall(IWorkingContractEscrow.approve, ())));
            batch.push(_operation(escrows[i], abi.encodeCall(IWorkingContractEscrow.settle, ())));
        }
        _relayNext();

        string memory name = "happy path, in batches of ten, settled in the approval's transaction, each";
        vm.snapshotValue("lifecycle", name, total / BATCH);
        assertEq(uint8(IWorkingContractEscrow(escrows[9]).status()), uint8(Status.SettledAllMet), "settled");
    }

    /// Ten disputes with the same three voters, batched as the service would batch them.
    function test_Dispute_ThreeVotersFiveCriteria() public {
        _addJurors(3);
        address[] memory escrows = _measureUntilDelivery(5);
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_dispute(escrows[i]));
        }
        _relayNext();
        for (uint256 i = 0; i < 3 * BATCH; ++i) {
            batch.push(_vote(escrows[i / 3], jurors[i % 3], i % 3 == 2 ? 0x2AA : VOTES));
        }
        _relayNext();
        vm.warp(vm.getBlockTimestamp() + 24 hours);
        for (uint256 i = 0; i < 3 * BATCH; ++i) {
            batch.push(_openVote(escrows[i / 3], jurors[i % 3], i % 3 == 2 ? 0x2AA : VOTES));
        }
        _relayNext();
        total += _relay(_all(escrows, abi.encodeCall(IWorkingContractEscrow.tally, ())));
        total += _relay(_all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));
        for (uint256 i = 0; i < 3 * BATCH; ++i) {
            batch.push(_claim(escrows[i / 3], jurors[i % 3]));
        }
        _relayNext();

        vm.snapshotValue("lifecycle", "dispute, three voters, five criteria, ten side by side, each", total / BATCH);
        assertEq(usd.balanceOf(escrows[9]), 0, "paid out");
    }

    function _measureUntilDelivery(uint8 criteria) private returns (address[] memory escrows) {
        escrows = new address[](BATCH);
        for (uint256 i = 0; i < BATCH; ++i) {
            Terms memory terms = _terms(criteria, i);
            escrows[i] = factory.predict(terms);
            batch.push(_create(terms));
        }
        _measureNext("create");
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_accept(escrows[i]));
        }
        _measureNext("accept");
        _measureBatch("deliver", _all(escrows, _deliver()));
    }

    function _measureNext(string memory name) private {
        _measureBatch(name, batch);
        delete batch;
    }

    function _relayNext() private {
        total += _relay(batch);
        delete batch;
    }
}
