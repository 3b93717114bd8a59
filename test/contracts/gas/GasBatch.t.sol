// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vm} from "forge-std/Vm.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
import {Operation} from "../Operations.sol";
import {GasBaseTest} from "./GasBase.sol";

/// @notice Gas per operation in batches of ten, each on a different escrow (or of a different agent).
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

    function test_OtherEnds() public {
        address[] memory escrows = new address[](BATCH);
        for (uint256 i = 0; i < BATCH; ++i) {
            escrows[i] = _matched(_terms(3, i));
        }
        _measureBatch("withdraw", _all(escrows, abi.encodeCall(IWorkingContractEscrow.withdraw, ())));
        _measureBatch("settle, withdrawn", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        for (uint256 i = 0; i < BATCH; ++i) {
            escrows[i] = _created(_terms(3, 100 + i));
        }
        _measureBatch("cancel", _all(escrows, abi.encodeCall(IWorkingContractEscrow.cancel, ())));
        _measureBatch("settle, cancelled", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        for (uint256 i = 0; i < BATCH; ++i) {
            Terms memory terms = _terms(3, 200 + i);
            terms.counterparty = worker.addr;
            escrows[i] = _created(terms);
        }
        _measureBatch("decline", _all(escrows, abi.encodeCall(IWorkingContractEscrow.decline, ())));

        for (uint256 i = 0; i < BATCH; ++i) {
            escrows[i] = _matched(_terms(3, 300 + i));
        }
        vm.warp(IWorkingContractEscrow(escrows[0]).terms().deliveryDeadline);
        _measureBatch("settle, absent", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));
    }

    /// One voter each: a larger jury costs the same per vote, see HundredVotersTest.
    function test_Dispute() public {
        _addJurors(BATCH);
        address[] memory escrows = _measureUntilDelivery(5);
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_dispute(escrows[i]));
        }
        _measureNext("dispute");
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_vote(escrows[i], jurors[i], VOTES));
        }
        _measureNext("vote");
        vm.warp(vm.getBlockTimestamp() + 24 hours);
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_openVote(escrows[i], jurors[i], VOTES));
        }
        _measureNext("open-vote");
        _measureBatch("tally", _all(escrows, abi.encodeCall(IWorkingContractEscrow.tally, ())));
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_claim(escrows[i], jurors[i]));
        }
        _measureNext("claim");
        _measureBatch("settle, tallied", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));
        assertEq(usd.balanceOf(escrows[9]), 0, "paid out");
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

    function test_Draw() public {
        Parameters memory p = _parameters();
        p.baRecruitCount = 3;
        factory.setParameters(p);
        _addJurors(BATCH);
        address[] memory escrows = new address[](BATCH);
        for (uint256 i = 0; i < BATCH; ++i) {
            escrows[i] = _disputed(_terms(5, i));
        }
        vm.roll(vm.getBlockNumber() + 2);
        _measureBatch("draw, three seats", _all(escrows, abi.encodeCall(IWorkingContractEscrow.draw, ())));
    }

    function test_DirectTransferAndRefusedPayee() public {
        address[] memory escrows = new address[](BATCH);
        for (uint256 i = 0; i < BATCH; ++i) {
            escrows[i] = _matched(_terms(3, i));
            Authorization memory lost = _authorize(client, escrows[i], SHARE);
            usd.transferWithAuthorization(
                client.addr, escrows[i], SHARE, lost.validAfter, lost.validBefore, lost.nonce, lost.signature
            );
            batch.push(
                _operation(escrows[i], abi.encodeCall(IWorkingContractEscrow.returnSurplus, (client.addr, SHARE, lost)))
            );
        }
        _measureNext("return-surplus");

        _relay(_all(escrows, abi.encodeCall(IWorkingContractEscrow.withdraw, ())));
        usd.setBlacklisted(worker.addr, true);
        _measureBatch("settle, one payee refused", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));
        usd.setBlacklisted(worker.addr, false);
        bytes memory claiming = abi.encodeCall(IWorkingContractEscrow.claimDeferred, (worker.addr));
        _measureBatch("claim-deferred", _all(escrows, claiming));
    }

    function test_DelegationAndStake() public {
        _addJurors(BATCH);
        vm.warp(vm.getBlockTimestamp() + 1);
        for (uint256 i = 0; i < BATCH; ++i) {
            bytes memory revoking = abi.encodeCall(IAgentDelegation.revoke, (jurors[i].addr, address(relay)));
            batch.push(_operation(address(delegation), revoking));
        }
        _measureNext("revoke-delegation");
        vm.warp(vm.getBlockTimestamp() + 1);
        for (uint256 i = 0; i < BATCH; ++i) {
            _delegate(jurors[i]);
            batch.push(_register(vm.createWallet(string.concat("newcomer", vm.toString(i)))));
        }
        _measureNext("delegate");

        for (uint256 i = 0; i < BATCH; ++i) {
            Vm.Wallet memory newcomer = vm.createWallet(string.concat("newcomer", vm.toString(i)));
            token.grant(newcomer.addr, 1000e18);
            batch.push(_stake(newcomer, 1000e18));
        }
        _measureNext("stake, first");
        for (uint256 i = 0; i < BATCH; ++i) {
            batch.push(_stake(jurors[i], 1e18));
        }
        _measureNext("stake, further");
        for (uint256 i = 0; i < BATCH; ++i) {
            bytes memory leaving = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (jurors[i].addr));
            batch.push(_operation(address(registry), leaving));
        }
        _measureNext("request-unstake");
        vm.warp(vm.getBlockTimestamp() + 48 hours);
        for (uint256 i = 0; i < BATCH; ++i) {
            bytes memory withdrawing = abi.encodeCall(IBackupAgentRegistry.withdrawStake, (jurors[i].addr));
            batch.push(_operation(address(registry), withdrawing));
        }
        _measureNext("withdraw-stake");
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
