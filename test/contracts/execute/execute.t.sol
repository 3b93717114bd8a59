// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Vm} from "forge-std/Vm.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IRelay} from "../../../contracts/interfaces/IRelay.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {Operation, packOperations} from "../Operations.sol";
import {MaliciousWallet} from "../mocks/MaliciousWallet.sol";

contract ExecuteTest is BaseTest {
    uint32 internal constant LIMIT = 400_000;

    Operation[] internal batch;

    function test_RevertWhen_CallerNotSigner() public {
        vm.expectRevert(abi.encodeWithSelector(IRelay.NotSigner.selector, stranger));
        vm.prank(stranger);
        relay.execute(packOperations(batch));
    }

    function test_RevertGiven_RemovedSigner() public {
        vm.expectEmit(address(relay));
        emit IRelay.SignerChanged(signer, false);
        vm.prank(owner);
        relay.setSigner(signer, false);
        vm.expectRevert(abi.encodeWithSelector(IRelay.NotSigner.selector, signer));
        vm.prank(signer);
        relay.execute(packOperations(batch));
    }

    function test_RevertWhen_CallerOfSetSignerNotOwner() public {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, stranger));
        vm.prank(stranger);
        relay.setSigner(stranger, true);
    }

    /// The owner names signers and has no power of theirs.
    function test_RevertWhen_CallerIsOwner() public {
        _delegate(client);
        _delegate(worker);
        _stakeAgents(1);
        WorkingContractEscrow escrow = _create(_newTerms());
        Authorization memory deposit = _authorize(worker, address(escrow), STAKE);
        vm.startPrank(owner);
        vm.expectRevert(abi.encodeWithSelector(IRelay.NotSigner.selector, owner));
        relay.execute(packOperations(batch));
        _expectNotParty(owner, client);
        escrow.cancel();
        _expectNotPayerOrOperator(owner, worker);
        escrow.accept(worker, deposit);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.NotOperator.selector, owner));
        escrow.withDirectTransfer(abi.encodeCall(IWorkingContractEscrow.cancel, ()));
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.NotAgentOrOperator.selector, owner, client, operator));
        delegation.revoke(client, operator);
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotAgentOrOperator.selector, owner, agents[0]));
        registry.requestUnstake(agents[0]);
    }

    function test_WhenEveryOperationSucceeds() public {
        Terms memory t = _newTerms();
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.predict(t));
        batch.push(
            _operation(
                address(factory),
                abi.encodeCall(factory.create, (_packed(t), _authorize(client, address(escrow), PRICE)))
            )
        );
        batch.push(
            _operation(
                address(escrow), abi.encodeCall(escrow.accept, (worker, _authorize(worker, address(escrow), STAKE)))
            )
        );

        _expectNoFailure();

        assertStatus(escrow, Status.Matched);
        assertBalance(client, FUNDS - PRICE, "client");
        assertBalance(worker, FUNDS - STAKE, "worker");
    }

    function test_WhenOneOperationFails() public {
        WorkingContractEscrow escrow = _create(_newTerms());
        Authorization memory first = _authorize(worker, address(escrow), STAKE);
        Authorization memory second = _authorize(stranger, address(escrow), STAKE);
        _delegate(worker);
        batch.push(_operation(address(escrow), abi.encodeCall(escrow.accept, (worker, first))));
        batch.push(_operation(address(escrow), abi.encodeCall(escrow.accept, (stranger, second))));
        batch.push(_operation(address(escrow), abi.encodeCall(escrow.withdraw, ())));

        vm.expectEmit(address(relay));
        emit IRelay.OperationFailed(
            1, abi.encodeWithSelector(IWorkingContractEscrow.WrongStatus.selector, Status.Matched, Status.Created)
        );
        vm.prank(signer);
        relay.execute(packOperations(batch));

        assertStatus(escrow, Status.CancelledWithdrawn);
        assertFalse(usd.authorizationState(stranger, second.nonce), "loser's authorization unused");
        assertBalance(stranger, FUNDS, "loser");
    }

    function test_WhenOperationReturnsData() public {
        batch.push(_operation(address(factory), abi.encodeCall(factory.parameters, ())));
        _expectNoFailure();
    }

    function test_WhenRevertDataIsLong() public {
        MaliciousWallet wallet = new MaliciousWallet();
        wallet.setAttack(MaliciousWallet.Attack.RevertBomb);
        batch.push(_operation(address(wallet), ""));
        bytes32 word = bytes32(type(uint256).max);
        _expectFailure(bytes.concat(word, word, word, word, word, word, word, word));
    }

    function test_WhenTargetHasNoCode() public {
        batch.push(_operation(factory.predict(_newTerms()), abi.encodeCall(IWorkingContractEscrow.cancel, ())));
        _expectFailure("");
    }

    function test_WhenWalletBurnsAllGas() public {
        _assertOthersSucceed(MaliciousWallet.Attack.BurnGas, 2 * uint256(LIMIT) + 200_000);
    }

    function test_WhenWalletReturnsBomb() public {
        _assertOthersSucceed(MaliciousWallet.Attack.ReturnBomb, 2 * uint256(LIMIT) + 200_000);
    }

    function test_WhenWalletRevertsBomb() public {
        _assertOthersSucceed(MaliciousWallet.Attack.RevertBomb, 2 * uint256(LIMIT) + 200_000);
    }

    function test_RevertWhen_TooLittleGas() public {
        batch.push(_operation(address(factory), abi.encodeCall(factory.parameters, ())));
        vm.prank(signer);
        try relay.execute{gas: 410_000}(packOperations(batch)) {
            assertTrue(false, "batch did not revert");
        } catch (bytes memory reason) {
            assertEq(bytes4(reason), IRelay.InsufficientGas.selector, "error");
        }
    }

    /// Copying long data costs gas, after which less than the limit could be left.
    function testFuzz_WhenGasIsTight_TargetGetsItsLimit(uint256 length, uint256 gas) public {
        GasMeter meter = new GasMeter();
        batch.push(_operation(address(meter), new bytes(bound(length, 0, 60_000))));
        bytes memory operations = packOperations(batch);
        vm.prank(signer);
        try relay.execute{gas: bound(gas, 405_000, 480_000)}(operations) {
            // Gas that the target spends before it measures.
            assertGe(meter.received() + 300, LIMIT, "gas received");
        } catch (bytes memory reason) {
            assertEq(bytes4(reason), IRelay.InsufficientGas.selector, "error");
        }
    }

    function test_WhenOperationCallsRelayItself() public {
        batch.push(_operation(address(relay), abi.encodeCall(relay.execute, (""))));
        _expectFailure(abi.encodeWithSelector(IRelay.NotSigner.selector, address(relay)));
    }

    function test_RevertWhen_OperationIsTruncated() public {
        batch.push(_operation(address(factory), abi.encodeCall(factory.parameters, ())));
        bytes memory packed = packOperations(batch);
        for (uint256 length = 1; length < packed.length; ++length) {
            bytes memory truncated = new bytes(length);
            for (uint256 i = 0; i < length; ++i) {
                truncated[i] = packed[i];
            }
            vm.expectRevert(bytes(""));
            vm.prank(signer);
            relay.execute(truncated);
        }
    }

    /// A malicious wallet's accept between two valid operations.
    function _assertOthersSucceed(MaliciousWallet.Attack attack, uint256 gas) private {
        MaliciousWallet wallet = new MaliciousWallet();
        wallet.setAttack(attack);
        usd.mint(address(wallet), STAKE);
        WorkingContractEscrow target = _create(_newTerms());
        WorkingContractEscrow good = _create(_newTerms());
        Authorization memory bad = Authorization(0, type(uint40).max, _unique(), hex"01");
        _delegate(client);
        batch.push(_operation(address(target), abi.encodeCall(target.accept, (address(wallet), bad))));
        batch.push(_operation(address(good), abi.encodeCall(good.cancel, ())));
        vm.recordLogs();
        vm.prank(signer);
        relay.execute{gas: gas}(packOperations(batch));

        Vm.Log[] memory logs = vm.getRecordedLogs();
        uint256 failures;
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter != address(relay)) continue;
            assertEq(uint256(logs[i].topics[1]), 0, "index of the failure");
            ++failures;
        }
        assertEq(failures, 1, "failures");
        assertStatus(good, Status.CancelledByInitiator);
        assertStatus(target, Status.Created);
    }

    function _expectFailure(bytes memory reason) private {
        vm.expectEmit(address(relay));
        emit IRelay.OperationFailed(0, reason);
        vm.prank(signer);
        relay.execute(packOperations(batch));
    }

    function _expectNoFailure() private {
        vm.recordLogs();
        vm.prank(signer);
        relay.execute(packOperations(batch));
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            assertNotEq(logs[i].emitter, address(relay), "failure");
        }
    }

    function _operation(address target, bytes memory data) private pure returns (Operation memory) {
        return Operation({target: target, gasLimit: LIMIT, data: data});
    }
}

/// @notice Records how much gas a call received.
contract GasMeter {
    uint256 public received;

    fallback() external {
        received = gasleft();
    }
}
