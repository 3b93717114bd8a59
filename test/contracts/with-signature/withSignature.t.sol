// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IAgentSignatures} from "../../../contracts/interfaces/IAgentSignatures.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IRelay} from "../../../contracts/interfaces/IRelay.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {AgentAction, Authorization, Delegation, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {Operation, packOperations} from "../Operations.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";

contract WithSignatureTest is BaseTest {
    bytes internal constant APPROVE = abi.encodeCall(IWorkingContractEscrow.approve, ());
    bytes internal constant WITHDRAW = abi.encodeCall(IWorkingContractEscrow.withdraw, ());
    bytes internal constant CANCEL = abi.encodeCall(IWorkingContractEscrow.cancel, ());
    bytes internal constant DECLINE = abi.encodeCall(IWorkingContractEscrow.decline, ());

    WorkingContractEscrow internal escrow;

    function setUp() public override {
        super.setUp();
        escrow = _escrowIn(Status.UnderReview);
    }

    function test_WhenPartySigned() public {
        bytes memory carried = _signed(escrow, client, APPROVE);
        vm.expectEmit(address(escrow));
        emit IAgentSignatures.ActionSigned(client);
        _send(address(escrow), carried);
        assertStatus(escrow, Status.Resolved);

        escrow = _escrowIn(Status.Matched);
        bytes memory deliver = abi.encodeCall(IWorkingContractEscrow.deliver, (keccak256("a"), keccak256("b"), 0));
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractDelivered(keccak256("a"), keccak256("b"), 0);
        _send(address(escrow), _signed(escrow, worker, deliver));

        escrow = _escrowIn(Status.Matched);
        _send(address(escrow), _signed(escrow, worker, WITHDRAW));
        assertStatus(escrow, Status.CancelledWithdrawn);

        escrow = _escrowIn(Status.Created);
        _send(address(escrow), _signed(escrow, client, CANCEL));
        assertStatus(escrow, Status.CancelledByInitiator);

        escrow = _escrowIn(Status.Created);
        _send(address(escrow), _signed(escrow, worker, DECLINE));
        assertStatus(escrow, Status.CancelledUnmatched);
    }

    function test_WhenStakeholderSigned() public {
        _stake(agents[0], ELIGIBILITY_STAKE);
        bytes memory unstake = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (agents[0]));
        _send(address(registry), _signed(registry, agents[0], unstake));
        (,,, uint40 releasableAt,) = registry.stakes(agents[0]);
        assertEq(releasableAt, _now() + 48 hours, "unbonding");
    }

    function test_WhenPartyIsContractWallet() public {
        address wallet = address(new ContractWallet(stranger));
        keyOf[wallet] = keyOf[stranger];
        Terms memory t = _newTerms();
        t.counterparty = wallet;
        escrow = _create(t);
        bytes memory carried = _signed(escrow, wallet, DECLINE);
        keyOf[wallet] = keyOf[worker];
        bytes memory forged = _signed(escrow, wallet, DECLINE);

        _expectInvalid(wallet);
        _send(address(escrow), forged);
        _send(address(escrow), carried);
        assertStatus(escrow, Status.CancelledUnmatched);
    }

    function test_GivenNothingIsLeftToOperator() public {
        _delegate(client);
        Delegation memory strict = _delegationOf(client);
        strict.issuedAt += 1;
        strict.actions = 0;
        _register(strict);

        _expectNotParty(operator, client);
        vm.prank(operator);
        escrow.approve();

        bytes memory carried = _signed(escrow, client, APPROVE);
        _callAs(operator, address(escrow), carried);
        assertStatus(escrow, Status.Resolved);
    }

    /// A delegation of other actions is none of this one.
    function test_GivenSomeActionsAreLeftToOperator() public {
        _assertNeeds(AgentAction.Approve, client, address(escrow), APPROVE);
        address created = address(_escrowIn(Status.Created));
        _assertNeeds(AgentAction.Cancel, client, created, CANCEL);
        _assertNeeds(AgentAction.Decline, worker, created, DECLINE);
        address matched = address(_escrowIn(Status.Matched));
        _assertNeeds(AgentAction.Withdraw, worker, matched, WITHDRAW);
        bytes memory deliver = abi.encodeCall(IWorkingContractEscrow.deliver, (keccak256("a"), keccak256("b"), 0));
        _assertNeeds(AgentAction.Deliver, worker, matched, deliver);

        address agent = agents[0];
        _stake(agent, ELIGIBILITY_STAKE);
        vm.warp(_now() + 1);
        bytes memory unstake = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (agent));
        _assertNeeds(AgentAction.Unstake, agent, address(registry), unstake);
        escrow = _disputed(_newTerms());
        Authorization memory bond = _authorize(agent, address(escrow), _voteBondOf(escrow.terms()));
        bytes memory vote = abi.encodeCall(IWorkingContractEscrow.vote, (agent, keccak256("votes"), bond));
        _assertNeeds(AgentAction.Vote, agent, address(escrow), vote);
    }

    function test_RevertWhen_SomeoneElseSigned() public {
        address[2] memory others = [worker, stranger];
        for (uint256 i = 0; i < others.length; ++i) {
            keyOf[client] = keyOf[others[i]];
            bytes memory forged = _signed(escrow, client, APPROVE);
            _expectInvalid(client);
            _send(address(escrow), forged);
        }
        bytes memory empty = abi.encodeCall(escrow.withSignature, (address(0), _now() + 60, "", APPROVE));
        _expectInvalid(address(0));
        _send(address(escrow), empty);
    }

    function test_RevertWhen_SignerIsNotTheParty() public {
        bytes memory carried = _signed(escrow, worker, APPROVE);
        _expectNotParty(stranger, client);
        _send(address(escrow), carried);
    }

    function test_RevertWhen_CarriedElsewhere() public {
        bytes memory carried = _signed(escrow, client, APPROVE);
        WorkingContractEscrow other = _escrowIn(Status.UnderReview);
        _expectInvalid(client);
        _send(address(other), carried);

        uint256 chainId = block.chainid;
        vm.chainId(chainId + 1);
        _expectInvalid(client);
        _send(address(escrow), carried);
        vm.chainId(chainId);

        bytes memory unstake = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (client));
        bytes memory forEscrow = _signed(escrow, client, unstake);
        _expectInvalid(client);
        _send(address(registry), forEscrow);

        address first = address(escrow);
        _deployProtocol(_defaultParameters());
        usd.mint(client, FUNDS);
        usd.mint(worker, FUNDS);
        other = _escrowIn(Status.UnderReview);
        assertTrue(address(other) != first, "another deployment's escrow");
        _expectInvalid(client);
        _send(address(other), carried);
    }

    function test_RevertWhen_AnyFieldDiffers() public {
        uint40 deadline = _now() + 60;
        bytes memory signature = _sign(keyOf[client], escrow.actionDigest(client, deadline, APPROVE));
        bytes[3] memory altered = [
            abi.encodeCall(escrow.withSignature, (worker, deadline, signature, APPROVE)),
            abi.encodeCall(escrow.withSignature, (client, deadline + 1, signature, APPROVE)),
            abi.encodeCall(escrow.withSignature, (client, deadline, signature, CANCEL))
        ];
        for (uint256 i = 0; i < altered.length; ++i) {
            _expectInvalid(i == 0 ? worker : client);
            _send(address(escrow), altered[i]);
        }
    }

    function test_RevertGiven_SignatureWasUsed() public {
        bytes memory carried = _signed(escrow, client, APPROVE);
        _send(address(escrow), carried);
        _expectWrongStatus(Status.Resolved, Status.UnderReview);
        _send(address(escrow), carried);
    }

    function test_RevertGiven_StakeWasMadeAgain() public {
        address agent = agents[0];
        _stake(agent, ELIGIBILITY_STAKE);
        bytes memory unstake = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (agent));
        uint40 deadline = _now() + 1 days;
        bytes memory signature = _sign(keyOf[agent], registry.actionDigest(agent, deadline, unstake));
        bytes memory carried = abi.encodeCall(registry.withSignature, (agent, deadline, signature, unstake));
        _send(address(registry), carried);

        vm.warp(_now() + 48 hours);
        registry.withdrawStake(agent);
        _stake(agent, ELIGIBILITY_STAKE);
        _expectInvalidDeadline(deadline);
        _send(address(registry), carried);
    }

    function test_RevertGiven_AgentCancelled() public {
        bytes memory carried = _signed(escrow, client, APPROVE);
        vm.prank(client);
        escrow.cancelSignatures();
        assertEq(escrow.signatureNonce(client), 1, "nonce");
        _expectInvalid(client);
        _send(address(escrow), carried);

        _send(address(escrow), _signed(escrow, client, APPROVE));
        assertStatus(escrow, Status.Resolved);
    }

    function test_RevertWhen_DeadlineIsNotWithinADay() public {
        bytes memory carried = _signed(escrow, client, APPROVE);
        uint40 deadline = _now() + 10 minutes;
        vm.warp(deadline);
        _expectInvalidDeadline(deadline);
        _send(address(escrow), carried);

        deadline = _now() + 1 days + 1;
        bytes memory signature = _sign(keyOf[client], escrow.actionDigest(client, deadline, APPROVE));
        carried = abi.encodeCall(escrow.withSignature, (client, deadline, signature, APPROVE));
        _expectInvalidDeadline(deadline);
        _send(address(escrow), carried);
    }

    /// A signed call that takes no signature must not leave its signer's power behind.
    function test_RevertGiven_SignedCallInTheSameTransaction() public {
        bytes memory harmless = _signed(escrow, client, abi.encodeCall(IWorkingContractEscrow.status, ()));
        Carrier carrier = new Carrier();
        _expectNotParty(address(carrier), client);
        carrier.carry(address(escrow), harmless, APPROVE);
    }

    function test_WhenRelayCarriesBatch() public {
        WorkingContractEscrow other = _escrowIn(Status.UnderReview);
        Operation[] memory batch = new Operation[](2);
        batch[0] = Operation(address(escrow), 200_000, _signed(other, client, APPROVE));
        batch[1] = Operation(address(other), 200_000, _signed(other, client, APPROVE));
        vm.expectEmit(address(relay));
        emit IRelay.OperationFailed(0, abi.encodeWithSelector(IAgentSignatures.InvalidActionSignature.selector, client));
        vm.prank(signer);
        relay.execute(packOperations(batch));
        assertStatus(escrow, Status.UnderReview);
        assertStatus(other, Status.Resolved);
    }

    /// @dev The operator can make `call` for `agent` with this action alone, and not with all the others.
    function _assertNeeds(AgentAction action, address agent, address target, bytes memory call) private {
        Delegation memory d = _delegationOf(agent);
        d.actions = ~uint8(1 << uint8(action));
        uint256 before = vm.snapshotState();
        _register(d);
        vm.prank(operator);
        (bool success,) = target.call(call);
        assertFalse(success, "with the other actions");
        vm.revertToState(before);
        d.actions = ~d.actions;
        _register(d);
        _callAs(operator, target, call);
        vm.revertToState(before);
    }

    function _send(address target, bytes memory data) private {
        _callAs(stranger, target, data);
    }

    function _expectInvalid(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IAgentSignatures.InvalidActionSignature.selector, agent));
    }

    function _expectInvalidDeadline(uint40 deadline) private {
        vm.expectRevert(abi.encodeWithSelector(IAgentSignatures.InvalidActionDeadline.selector, deadline));
    }
}

/// @notice Sends two calls in one transaction and bubbles up the second's failure.
contract Carrier {
    function carry(address target, bytes calldata first, bytes calldata second) external {
        (bool success,) = target.call(first);
        require(success, "first call failed");
        bytes memory reason;
        (success, reason) = target.call(second);
        if (success) return;
        assembly ("memory-safe") {
            revert(add(reason, 32), mload(reason))
        }
    }
}
