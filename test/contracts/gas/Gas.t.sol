// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {Vm} from "forge-std/Vm.sol";
import {AgentDelegation} from "../../../contracts/AgentDelegation.sol";
import {BackupAgentRegistry} from "../../../contracts/BackupAgentRegistry.sol";
import {Dependencies} from "../../../contracts/EscrowState.sol";
import {ProtocolToken} from "../../../contracts/ProtocolToken.sol";
import {Relay} from "../../../contracts/Relay.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {WorkingContractFactory} from "../../../contracts/WorkingContractFactory.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IEIP3009} from "../../../contracts/interfaces/IEIP3009.sol";
import {IProtocolToken} from "../../../contracts/interfaces/IProtocolToken.sol";
import {IRelay} from "../../../contracts/interfaces/IRelay.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {IWorkingContractFactory} from "../../../contracts/interfaces/IWorkingContractFactory.sol";
import {Authorization, Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
import {FiatTokenLike, FiatTokenProxyLike} from "./FiatTokenLike.sol";

/// @notice Whole-transaction gas of every operation through the Relay, with a token that costs what USDC costs.
/// forge-config: default.isolate = true
contract GasTest is Test {
    uint256 private constant BATCH = 10;
    uint96 private constant PRICE = 50e6;

    FiatTokenLike private usd;
    ProtocolToken private token;
    Relay private relay;
    AgentDelegation private delegation;
    BackupAgentRegistry private registry;
    WorkingContractFactory private factory;

    Vm.Wallet private client;
    Vm.Wallet private worker;
    Vm.Wallet[3] private jurors;
    address private treasury = makeAddr("treasury");
    uint256 private nextNonce = 1;
    uint256 private total;

    function setUp() public {
        vm.warp(1_800_000_000);
        client = vm.createWallet("client");
        worker = vm.createWallet("worker");
        usd = FiatTokenLike(address(new FiatTokenProxyLike(address(new FiatTokenLike()))));

        uint64 n = vm.getNonce(address(this));
        address predictedRegistry = vm.computeCreateAddress(address(this), n + 2);
        address predictedToken = vm.computeCreateAddress(address(this), n + 3);
        IWorkingContractFactory predictedFactory =
            IWorkingContractFactory(vm.computeCreateAddress(address(this), n + 4));
        relay = new Relay(address(this));
        delegation = new AgentDelegation(address(predictedFactory), "working-contracts.example");
        registry = new BackupAgentRegistry(IEIP3009(predictedToken), predictedFactory, address(relay), delegation);
        token = new ProtocolToken(address(this), predictedFactory, predictedRegistry, 1_000_000e18);
        factory = new WorkingContractFactory(
            address(this),
            treasury,
            address(this),
            _parameters(),
            Dependencies({
                factory: predictedFactory,
                asset: IEIP3009(address(usd)),
                operator: address(relay),
                delegation: delegation,
                registry: registry,
                rewardToken: token
            })
        );
        relay.setSigner(address(this), true);

        usd.mint(client.addr, 1e15);
        usd.mint(worker.addr, 1e15);
        usd.mint(treasury, 1);
        _delegate(client);
        _delegate(worker);
        for (uint256 i = 0; i < 3; ++i) {
            jurors[i] = vm.createWallet(string.concat("juror", vm.toString(i)));
            usd.mint(jurors[i].addr, 1e12);
            _delegate(jurors[i]);
            token.grant(jurors[i].addr, 1001e18);
            vm.startPrank(jurors[i].addr);
            token.approve(address(registry), type(uint256).max);
            registry.stake(jurors[i].addr, 1000e18, Authorization(0, 0, 0, ""));
            vm.stopPrank();
        }
        vm.warp(block.timestamp + 1);
    }

    function test_HappyLifecycle_Alone() public {
        address escrow = _lifecycleUntilDelivery(3, 1, "alone");
        _measure("approve", _one(escrow, abi.encodeCall(IWorkingContractEscrow.approve, ())));
        _measure("settle", _one(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        vm.snapshotValue("lifecycle", "happy path, relayed alone, five transactions", total);
        assertEq(uint8(IWorkingContractEscrow(escrow).status()), uint8(Status.SettledAllMet), "settled");
        assertLe(total, 500_000, "happy lifecycle within its bound");
    }

    function test_OtherEnds_Alone() public {
        address withdrawn = _matched(3, 1);
        _measure("withdraw", _one(withdrawn, abi.encodeCall(IWorkingContractEscrow.withdraw, ())));
        _measure("settle, withdrawn", _one(withdrawn, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        Terms memory terms = _terms(3, 2);
        address cancelled = _created(terms);
        _measure("cancel", _one(cancelled, abi.encodeCall(IWorkingContractEscrow.cancel, ())));
        _measure("settle, cancelled", _one(cancelled, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        terms = _terms(3, 3);
        terms.counterparty = worker.addr;
        address declined = _created(terms);
        _measure("decline", _one(declined, abi.encodeCall(IWorkingContractEscrow.decline, ())));

        address absent = _matched(3, 4);
        vm.warp(IWorkingContractEscrow(absent).terms().deliveryDeadline);
        _measure("settle, absent", _one(absent, abi.encodeCall(IWorkingContractEscrow.settle, ())));
    }

    function test_HappyLifecycle_BatchOfTen() public {
        IRelay.Operation[] memory creates = new IRelay.Operation[](BATCH);
        address[] memory escrows = new address[](BATCH);
        for (uint256 i = 0; i < BATCH; ++i) {
            Terms memory terms = _terms(3, i);
            escrows[i] = factory.predict(terms);
            creates[i] = _create(terms);
        }
        _measureBatch("create", creates);
        IRelay.Operation[] memory accepts = new IRelay.Operation[](BATCH);
        for (uint256 i = 0; i < BATCH; ++i) {
            accepts[i] = _accept(escrows[i]);
        }
        _measureBatch("accept", accepts);
        _measureBatch("deliver", _all(escrows, abi.encodeCall(IWorkingContractEscrow.deliver, (_word(7), _word(8), 0))));
        _measureBatch("approve", _all(escrows, abi.encodeCall(IWorkingContractEscrow.approve, ())));
        _measureBatch("settle", _all(escrows, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        vm.snapshotValue("lifecycle", "happy path, in batches of ten, per Working Contract", total / BATCH);
        assertEq(uint8(IWorkingContractEscrow(escrows[9]).status()), uint8(Status.SettledAllMet), "settled");
    }

    function test_Dispute_ThreeVotersFiveCriteria() public {
        address escrow = _lifecycleUntilDelivery(5, 1, "dispute");
        uint256 bond = uint256(PRICE) * 5 / 100;
        bytes memory disputing = abi.encodeCall(IWorkingContractEscrow.dispute, (_authorize(client, escrow, bond)));
        _measure("dispute", _one(escrow, disputing));

        uint24[3] memory votes = [uint24(0x155), 0x155, 0x2AA];
        for (uint256 i = 0; i < 3; ++i) {
            bytes32 commitment = keccak256(abi.encode(block.chainid, escrow, jurors[i].addr, votes[i], bytes32("salt")));
            bytes memory data = abi.encodeCall(
                IWorkingContractEscrow.vote, (jurors[i].addr, commitment, _authorize(jurors[i], escrow, 5 * bond))
            );
            _measure(i == 0 ? "vote, first" : "vote, further", _one(escrow, data));
        }
        vm.warp(block.timestamp + 24 hours);
        IRelay.Operation[] memory opening = new IRelay.Operation[](4);
        for (uint256 i = 0; i < 3; ++i) {
            opening[i] = _operation(
                escrow, abi.encodeCall(IWorkingContractEscrow.openVote, (jurors[i].addr, votes[i], bytes32("salt")))
            );
        }
        opening[3] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.tally, ()));
        _measure("open three votes and tally", opening);

        IRelay.Operation[] memory paying = new IRelay.Operation[](4);
        paying[0] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ()));
        for (uint256 i = 0; i < 3; ++i) {
            paying[i + 1] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.claim, (jurors[i].addr)));
        }
        _measure("settle and three claims", paying);

        vm.snapshotValue("lifecycle", "dispute, three voters, five criteria, end to end", total);
        assertEq(usd.balanceOf(escrow), 0, "paid out");
        assertLe(total, 1_310_000, "dispute within its bound");
    }

    function _lifecycleUntilDelivery(uint8 criteria, uint256 salt, string memory) private returns (address escrow) {
        Terms memory terms = _terms(criteria, salt);
        escrow = factory.predict(terms);
        IRelay.Operation[] memory operations = new IRelay.Operation[](1);
        operations[0] = _create(terms);
        _measure("create", operations);
        operations[0] = _accept(escrow);
        _measure("accept", operations);
        _measure("deliver", _one(escrow, abi.encodeCall(IWorkingContractEscrow.deliver, (_word(7), _word(8), 0))));
    }

    function _created(Terms memory terms) private returns (address escrow) {
        escrow = factory.create(factory.pack(terms), _authorize(client, factory.predict(terms), terms.price));
    }

    function _matched(uint8 criteria, uint256 salt) private returns (address escrow) {
        escrow = _created(_terms(criteria, salt));
        IRelay.Operation[] memory operations = new IRelay.Operation[](1);
        operations[0] = _accept(escrow);
        relay.execute(operations);
    }

    function _measure(string memory name, IRelay.Operation[] memory operations) private {
        vm.recordLogs();
        relay.execute(operations);
        total += vm.snapshotGasLastCall("operations-alone", name);
        _requireSuccess();
    }

    function _measureBatch(string memory name, IRelay.Operation[] memory operations) private {
        vm.recordLogs();
        relay.execute(operations);
        uint256 gasUsed = vm.lastCallGas().gasTotalUsed;
        total += gasUsed;
        vm.snapshotValue("operations-in-batch-of-ten", name, gasUsed / BATCH);
        _requireSuccess();
    }

    function _requireSuccess() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != IRelay.OperationFailed.selector) continue;
            revert(string.concat("operation failed: ", vm.toString(abi.decode(logs[i].data, (bytes)))));
        }
    }

    function _one(address escrow, bytes memory data) private pure returns (IRelay.Operation[] memory operations) {
        operations = new IRelay.Operation[](1);
        operations[0] = _operation(escrow, data);
    }

    function _all(address[] memory escrows, bytes memory data)
        private
        pure
        returns (IRelay.Operation[] memory operations)
    {
        operations = new IRelay.Operation[](escrows.length);
        for (uint256 i = 0; i < escrows.length; ++i) {
            operations[i] = _operation(escrows[i], data);
        }
    }

    function _operation(address target, bytes memory data) private pure returns (IRelay.Operation memory) {
        return IRelay.Operation({target: target, gasLimit: 1_000_000, data: data});
    }

    function _create(Terms memory terms) private returns (IRelay.Operation memory) {
        Authorization memory deposit = _authorize(client, factory.predict(terms), terms.price);
        return
            _operation(address(factory), abi.encodeCall(IWorkingContractFactory.create, (factory.pack(terms), deposit)));
    }

    function _accept(address escrow) private returns (IRelay.Operation memory) {
        Authorization memory deposit = _authorize(worker, escrow, uint256(PRICE) * 5 / 100);
        return _operation(escrow, abi.encodeCall(IWorkingContractEscrow.accept, (worker.addr, deposit)));
    }

    function _authorize(Vm.Wallet memory payer, address to, uint256 value)
        private
        returns (Authorization memory authorization)
    {
        authorization.validBefore = block.timestamp + 60;
        authorization.nonce = keccak256(abi.encode(nextNonce++));
        bytes32 structHash = keccak256(
            abi.encode(
                keccak256(
                    "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
                ),
                payer.addr,
                to,
                value,
                authorization.validAfter,
                authorization.validBefore,
                authorization.nonce
            )
        );
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(payer, keccak256(abi.encodePacked("\x19\x01", usd.DOMAIN_SEPARATOR(), structHash)));
        authorization.signature = abi.encodePacked(r, s, v);
    }

    function _delegate(Vm.Wallet memory agent) private {
        uint40 issuedAt = uint40(block.timestamp);
        bytes memory text =
            bytes(delegation.challengeText(agent.addr, address(relay), _word(1), issuedAt, issuedAt + 300));
        bytes32 digest =
            keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n", bytes(vm.toString(text.length)), text));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(agent, digest);
        delegation.register(agent.addr, address(relay), _word(1), issuedAt, issuedAt + 300, abi.encodePacked(r, s, v));
        vm.snapshotGasLastCall("operations-alone", "register delegation, once per agent");
    }

    function _terms(uint8 criteria, uint256 salt) private view returns (Terms memory) {
        return Terms({
            initiator: client.addr,
            price: PRICE,
            counterparty: address(0),
            criteriaCount: criteria,
            workerInitiated: false,
            computedCriteria: false,
            matchDeadline: uint40(block.timestamp + 1 days),
            withdrawalDeadline: uint40(block.timestamp + 2 days),
            deliveryDeadline: uint40(block.timestamp + 3 days),
            reviewDeadline: uint40(block.timestamp + 4 days),
            termsHash: _word(salt),
            parameters: _parameters()
        });
    }

    function _word(uint256 seed) private pure returns (bytes32) {
        return keccak256(abi.encode("word", seed));
    }

    function _parameters() private pure returns (Parameters memory) {
        return Parameters({
            protocolFee: 500,
            workerStakeRatio: 500,
            disputeBondRatio: 500,
            backupAgentBondRatio: 500,
            earlyWithdrawalSlashRatio: 3000,
            absentNoneMetClientShare: 8000,
            baUnclearSlashRatio: 3000,
            tokenMintRewardFull: 10,
            tokenMintRewardReduced: 4,
            baEligibilityStake: 1000,
            baVotingWindow: 24 hours,
            baRecruitCount: 0,
            payoutHold: 0
        });
    }
}
