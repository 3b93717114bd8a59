// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vm} from "forge-std/Vm.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IRelay} from "../../../contracts/interfaces/IRelay.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {IWorkingContractFactory} from "../../../contracts/interfaces/IWorkingContractFactory.sol";
import {Authorization, Delegation, Terms} from "../../../contracts/types/Types.sol";
import {DeploymentTest} from "../Deployment.sol";
import {Operation, packOperations} from "../Operations.sol";
import {FiatTokenLike} from "../harness/FiatTokenLike.sol";

/// @notice The protocol behind its Relay, with a token that costs what USDC costs, and the operations that the Relay
/// carries. Measures whole transactions of the production code: run with `isolate`.
abstract contract GasBaseTest is DeploymentTest {
    uint256 internal constant BATCH = 10;
    uint80 internal constant PRICE = 50e6;
    uint256 internal constant SHARE = PRICE * 5 / 100;
    bytes32 internal constant SALT = "salt";

    FiatTokenLike internal usd;

    Vm.Wallet internal client;
    Vm.Wallet internal worker;
    Vm.Wallet[] internal jurors;
    address internal treasury = makeAddr("treasury");
    /// Total gas measured so far.
    uint256 internal total;
    uint256 private _nextNonce = 1;

    function setUp() public virtual {
        vm.warp(1_800_000_000);
        client = vm.createWallet("client");
        worker = vm.createWallet("worker");
        address implementation = deployCode("out/FiatTokenLike.sol/FiatTokenLike.json");
        usd = FiatTokenLike(deployCode("out/FiatTokenLike.sol/FiatTokenProxyLike.json", abi.encode(implementation)));
        _deployAround(
            address(usd), address(this), treasury, address(this), "working-contracts.example", _defaultParameters()
        );
        relay.setSigner(address(this), true);
        usd.mint(client.addr, 1e15);
        usd.mint(worker.addr, 1e15);
        usd.mint(treasury, 1);
        _delegate(client);
        _delegate(worker);
    }

    /// @dev Adds staked Backup Agents that already hold tokens and money and are eligible from the next second on.
    function _addJurors(uint256 count) internal {
        for (uint256 i = 0; i < count; ++i) {
            Vm.Wallet memory juror = vm.createWallet(string.concat("juror", vm.toString(jurors.length)));
            jurors.push(juror);
            usd.mint(juror.addr, 1e12);
            _delegate(juror);
            token.grant(juror.addr, 1001e18);
            vm.startPrank(juror.addr);
            token.approve(address(registry), type(uint256).max);
            registry.stake(juror.addr, 1000e18, Authorization(0, 0, 0, ""));
            vm.stopPrank();
        }
        vm.warp(vm.getBlockTimestamp() + 1);
    }

    // --- measuring ---

    /// @dev Relays the operations in one transaction; reverts if one fails.
    function _relay(Operation[] memory operations) internal returns (uint256 gasUsed) {
        vm.recordLogs();
        relay.execute(packOperations(operations));
        gasUsed = vm.lastCallGas().gasTotalUsed;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != IRelay.OperationFailed.selector) continue;
            revert(string.concat("operation failed: ", vm.toString(abi.decode(logs[i].data, (bytes)))));
        }
    }

    function _measure(string memory name, Operation memory operation) internal {
        _measure(name, _one(operation));
    }

    function _measure(string memory name, Operation[] memory operations) internal {
        uint256 gasUsed = _relay(operations);
        total += gasUsed;
        vm.snapshotValue("operations-alone", name, gasUsed);
    }

    function _measureBatch(string memory name, Operation[] memory operations) internal {
        uint256 gasUsed = _relay(operations);
        total += gasUsed;
        vm.snapshotValue("operations-in-batch-of-ten", name, gasUsed / operations.length);
    }

    // --- operations ---

    function _operation(address target, bytes memory data) internal pure returns (Operation memory) {
        return Operation({target: target, gasLimit: 1_000_000, data: data});
    }

    function _one(Operation memory operation) internal pure returns (Operation[] memory operations) {
        operations = new Operation[](1);
        operations[0] = operation;
    }

    /// @dev The same call on every escrow.
    function _all(address[] memory escrows, bytes memory data) internal pure returns (Operation[] memory operations) {
        operations = new Operation[](escrows.length);
        for (uint256 i = 0; i < escrows.length; ++i) {
            operations[i] = _operation(escrows[i], data);
        }
    }

    function _create(Terms memory terms) internal returns (Operation memory) {
        Authorization memory deposit = _authorize(client, factory.predict(terms), terms.price);
        return
            _operation(address(factory), abi.encodeCall(IWorkingContractFactory.create, (factory.pack(terms), deposit)));
    }

    function _accept(address escrow) internal returns (Operation memory) {
        Authorization memory deposit = _authorize(worker, escrow, SHARE);
        return _operation(escrow, abi.encodeCall(IWorkingContractEscrow.accept, (worker.addr, deposit)));
    }

    function _deliver() internal pure returns (bytes memory) {
        return abi.encodeCall(IWorkingContractEscrow.deliver, (_word(7), _word(8), 0));
    }

    function _dispute(address escrow) internal returns (Operation memory) {
        return _operation(escrow, abi.encodeCall(IWorkingContractEscrow.dispute, (_authorize(client, escrow, SHARE))));
    }

    function _vote(address escrow, Vm.Wallet memory juror, uint24 votes) internal returns (Operation memory) {
        uint256 criteria = WorkingContractEscrow(escrow).terms().criteriaCount;
        bytes32 commitment = keccak256(abi.encode(block.chainid, escrow, juror.addr, votes, SALT));
        Authorization memory bond = _authorize(juror, escrow, criteria * SHARE);
        return _operation(escrow, abi.encodeCall(IWorkingContractEscrow.vote, (juror.addr, commitment, bond)));
    }

    function _openVote(address escrow, Vm.Wallet memory juror, uint24 votes) internal pure returns (Operation memory) {
        return _operation(escrow, abi.encodeCall(IWorkingContractEscrow.openVote, (juror.addr, votes, SALT)));
    }

    function _claim(address escrow, Vm.Wallet memory juror) internal pure returns (Operation memory) {
        return _operation(escrow, abi.encodeCall(IWorkingContractEscrow.claim, (juror.addr)));
    }

    function _register(Vm.Wallet memory agent) internal returns (Operation memory) {
        uint40 issuedAt = uint40(vm.getBlockTimestamp());
        Delegation memory signed = Delegation({
            agent: agent.addr,
            operator: address(relay),
            actions: 0xff,
            until: 0,
            nonce: _word(1),
            issuedAt: issuedAt,
            expiresAt: issuedAt + 300
        });
        bytes memory signature = _signDelegation(agent.privateKey, signed);
        return _operation(address(delegation), abi.encodeCall(IAgentDelegation.register, (signed, signature)));
    }

    function _stake(Vm.Wallet memory agent, uint256 amount) internal returns (Operation memory) {
        Authorization memory payment = _authorizeAt(address(token), agent, address(registry), amount);
        return _operation(address(registry), abi.encodeCall(IBackupAgentRegistry.stake, (agent.addr, amount, payment)));
    }

    function _delegate(Vm.Wallet memory agent) internal {
        _relay(_one(_register(agent)));
    }

    // --- states ---

    function _created(Terms memory terms) internal returns (address escrow) {
        escrow = factory.predict(terms);
        _relay(_one(_create(terms)));
    }

    function _matched(Terms memory terms) internal returns (address escrow) {
        escrow = _created(terms);
        _relay(_one(_accept(escrow)));
    }

    function _disputed(Terms memory terms) internal returns (address escrow) {
        escrow = _matched(terms);
        _relay(_one(_operation(escrow, _deliver())));
        _relay(_one(_dispute(escrow)));
    }

    // --- values ---

    function _authorize(Vm.Wallet memory payer, address to, uint256 value) internal returns (Authorization memory) {
        return _authorizeAt(address(usd), payer, to, value);
    }

    function _authorizeAt(address asset, Vm.Wallet memory payer, address to, uint256 value)
        internal
        returns (Authorization memory)
    {
        return _authorizeWith(TRANSFER_TYPEHASH, asset, payer, to, value);
    }

    /// @dev An authorization that only `to` itself can use.
    function _authorizeReceipt(Vm.Wallet memory payer, address to, uint256 value)
        internal
        returns (Authorization memory)
    {
        return _authorizeWith(RECEIVE_TYPEHASH, address(usd), payer, to, value);
    }

    function _authorizeWith(bytes32 typehash, address asset, Vm.Wallet memory payer, address to, uint256 value)
        private
        returns (Authorization memory authorization)
    {
        if (typehash == RECEIVE_TYPEHASH) authorization.validAfter = 1;
        authorization.validBefore = vm.getBlockTimestamp() + 60;
        authorization.nonce = keccak256(abi.encode(_nextNonce++));
        authorization.signature =
            _sign(payer.privateKey, _digest(typehash, asset, payer.addr, to, value, authorization));
    }

    function _terms(uint8 criteria, uint256 salt) internal view returns (Terms memory) {
        uint32 now_ = uint32(vm.getBlockTimestamp());
        return Terms({
            initiator: client.addr,
            price: PRICE,
            counterparty: address(0),
            criteriaCount: criteria,
            workerInitiated: false,
            computedCriteria: false,
            matchDeadline: now_ + 1 days,
            withdrawalDeadline: now_ + 2 days,
            deliveryDeadline: now_ + 3 days,
            reviewDeadline: now_ + 4 days,
            termsHash: _word(salt),
            parameters: factory.parameters()
        });
    }

    function _word(uint256 seed) internal pure returns (bytes32) {
        return keccak256(abi.encode("word", seed));
    }
}
