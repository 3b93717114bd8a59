// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vm} from "forge-std/Vm.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {IAgentSignatures} from "../../../contracts/interfaces/IAgentSignatures.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
import {Operation} from "../Operations.sol";
import {GasBaseTest} from "./GasBase.sol";

/// @notice Whole-transaction gas of every operation, relayed alone.
/// forge-config: default.isolate = true
contract GasTest is GasBaseTest {
    function test_HappyLifecycle() public {
        address escrow = _measureUntilDelivery(3);
        _measure("approve", _operation(escrow, abi.encodeCall(IWorkingContractEscrow.approve, ())));
        _measure("settle", _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        vm.snapshotValue("lifecycle", "happy path, relayed alone, five transactions", total);
        assertEq(uint8(IWorkingContractEscrow(escrow).status()), uint8(Status.SettledAllMet), "settled");
        assertLe(total, 475_000, "happy lifecycle within its bound");
    }

    function test_HappyLifecycle_SettledBehindApproval() public {
        address escrow = _measureUntilDelivery(3);
        Operation[] memory ending = new Operation[](2);
        ending[0] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.approve, ()));
        ending[1] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ()));
        _measure("approval and settlement", ending);

        vm.snapshotValue("lifecycle", "happy path, relayed alone, settled in the approval's transaction", total);
        assertEq(uint8(IWorkingContractEscrow(escrow).status()), uint8(Status.SettledAllMet), "settled");
        assertLe(total, 440_000, "happy lifecycle within its bound");
    }

    function test_PaymentThatOnlyTheEscrowCanUse() public {
        address escrow = _created(_terms(3, 5));
        Authorization memory deposit = _authorizeReceipt(worker, escrow, SHARE);
        bytes memory accept = abi.encodeCall(IWorkingContractEscrow.accept, (worker.addr, deposit));
        _measure("accept, payment that only the escrow can use", _operation(escrow, accept));
    }

    function test_OtherEnds() public {
        address withdrawn = _matched(_terms(3, 1));
        _measure("withdraw", _operation(withdrawn, abi.encodeCall(IWorkingContractEscrow.withdraw, ())));
        _measure("settle, withdrawn", _operation(withdrawn, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        address cancelled = _created(_terms(3, 2));
        _measure("cancel", _operation(cancelled, abi.encodeCall(IWorkingContractEscrow.cancel, ())));
        _measure("settle, cancelled", _operation(cancelled, abi.encodeCall(IWorkingContractEscrow.settle, ())));

        Terms memory terms = _terms(3, 3);
        terms.counterparty = worker.addr;
        address declined = _created(terms);
        _measure("decline", _operation(declined, abi.encodeCall(IWorkingContractEscrow.decline, ())));

        address absent = _matched(_terms(3, 4));
        vm.warp(IWorkingContractEscrow(absent).terms().deliveryDeadline);
        _measure("settle, absent", _operation(absent, abi.encodeCall(IWorkingContractEscrow.settle, ())));
    }

    function test_Dispute_ThreeVotersFiveCriteria() public {
        _addJurors(3);
        address escrow = _measureUntilDelivery(5);
        uint256 beforeDispute = total;
        _measure("dispute", _dispute(escrow));
        uint24[3] memory votes = [uint24(0x155), 0x155, 0x2AA];
        for (uint256 i = 0; i < 3; ++i) {
            _measure("vote", _vote(escrow, jurors[i], votes[i]));
        }
        vm.warp(vm.getBlockTimestamp() + 24 hours);
        Operation[] memory opening = new Operation[](4);
        Operation[] memory paying = new Operation[](4);
        for (uint256 i = 0; i < 3; ++i) {
            opening[i] = _openVote(escrow, jurors[i], votes[i]);
            paying[i + 1] = _claim(escrow, jurors[i]);
        }
        opening[3] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.tally, ()));
        paying[0] = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ()));
        _measure("open three votes and tally", opening);
        _measure("settle and three claims", paying);

        uint256 disputeAlone = total - beforeDispute;
        vm.snapshotValue("lifecycle", "dispute, three voters, five criteria, from dispute to claims", disputeAlone);
        vm.snapshotValue("lifecycle", "dispute, three voters, five criteria, end to end", total);
        assertEq(usd.balanceOf(escrow), 0, "paid out");
        assertLe(disputeAlone, 890_000, "from dispute to claims within its bound");
        assertLe(total, 1_245_000, "with creation, acceptance and delivery, within its bound");
    }

    function test_JuryStepByStep() public {
        Parameters memory p = _defaultParameters();
        p.baRecruitCount = 3;
        factory.setParameters(p);
        _addJurors(4);
        address escrow = _disputed(_terms(5, 1));
        vm.roll(vm.getBlockNumber() + 2);
        _measure("draw, three seats", _operation(escrow, abi.encodeCall(IWorkingContractEscrow.draw, ())));
        vm.warp(vm.getBlockTimestamp() + 12 hours);
        for (uint256 i = 0; i < 3; ++i) {
            _relay(_one(_vote(escrow, jurors[i], 0x155)));
        }
        for (uint256 i = 0; i < 3; ++i) {
            _measure(i == 0 ? "open-vote, first" : "open-vote", _openVote(escrow, jurors[i], 0x155));
        }
        _measure("tally", _operation(escrow, abi.encodeCall(IWorkingContractEscrow.tally, ())));
        for (uint256 i = 0; i < 3; ++i) {
            _measure("claim", _claim(escrow, jurors[i]));
        }
        _measure("settle, tallied", _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ())));
    }

    /// The most that a draw costs: it looks at as many slots as it may, and almost all seats are taken.
    function test_LargestDraw() public {
        Parameters memory p = _defaultParameters();
        _addJurors(31 * 4);
        (p.baRecruitCount, p.baEligibilityStake) = (31, 1001);
        factory.setParameters(p);
        for (uint256 i = 0; i < 30; ++i) {
            vm.prank(jurors[i].addr);
            registry.stake(jurors[i].addr, 1e18, Authorization(0, 0, 0, ""));
        }
        vm.warp(vm.getBlockTimestamp() + 1);
        address escrow = _disputed(_terms(5, 1));
        vm.roll(vm.getBlockNumber() + 2);
        Operation memory draw = _operation(escrow, abi.encodeCall(IWorkingContractEscrow.draw, ()));
        draw.gasLimit = 10_000_000;
        _measure("draw, 30 of 31 seats in a pool of 124", draw);
    }

    function test_DirectTransferAndRefusedPayee() public {
        address escrow = _matched(_terms(3, 1));
        Authorization memory lost = _directTransfer(client, escrow, SHARE);
        bytes memory refunding = abi.encodeCall(IWorkingContractEscrow.refundDirectTransfer, (client.addr, SHARE, lost));
        _measure("refund-direct-transfer", _operation(escrow, refunding));

        _relay(_one(_operation(escrow, abi.encodeCall(IWorkingContractEscrow.withdraw, ()))));
        usd.setBlacklisted(worker.addr, true);
        _measure("settle, one payee refused", _operation(escrow, abi.encodeCall(IWorkingContractEscrow.settle, ())));
        usd.setBlacklisted(worker.addr, false);
        bytes memory claiming = abi.encodeCall(IWorkingContractEscrow.claimDeferred, (worker.addr));
        _measure("claim-deferred", _operation(escrow, claiming));
    }

    function test_DirectTransferPays() public {
        _addJurors(1);
        address escrow = _created(_terms(3, 1));
        Authorization memory stake = _directTransfer(worker, escrow, SHARE);
        _measureFromDirectTransfer(
            "accept", escrow, abi.encodeCall(IWorkingContractEscrow.accept, (worker.addr, stake))
        );
        _relay(_one(_operation(escrow, _deliver())));
        Authorization memory bond = _directTransfer(client, escrow, SHARE);
        _measureFromDirectTransfer("dispute", escrow, abi.encodeCall(IWorkingContractEscrow.dispute, (bond)));
        Authorization memory bonds = _directTransfer(jurors[0], escrow, 3 * SHARE);
        bytes memory voting = abi.encodeCall(IWorkingContractEscrow.vote, (jurors[0].addr, _word(9), bonds));
        _measureFromDirectTransfer("vote", escrow, voting);
    }

    function test_DelegationAndStake() public {
        _addJurors(2);
        address juror = jurors[0].addr;
        Vm.Wallet memory newcomer = vm.createWallet("newcomer");
        token.grant(newcomer.addr, 1000e18);
        bytes memory revoking = abi.encodeCall(IAgentDelegation.revoke, (juror, address(relay)));
        _measure("revoke-delegation", _operation(address(delegation), revoking));
        vm.warp(vm.getBlockTimestamp() + 1);
        _measure("delegate", _register(newcomer));
        _delegate(jurors[0]);

        _measure("stake, first", _stake(newcomer, 1000e18));
        _measure("stake, further", _stake(jurors[0], 1e18));
        bytes memory leaving = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (juror));
        _measure("request-unstake", _operation(address(registry), leaving));
        vm.warp(vm.getBlockTimestamp() + 48 hours);
        bytes memory withdrawing = abi.encodeCall(IBackupAgentRegistry.withdrawStake, (juror));
        _measure("withdraw-stake", _operation(address(registry), withdrawing));
    }

    /// @dev The same calls, once by delegation and once with the party's signature and no delegation.
    function test_SignedActions() public {
        address[2] memory delegated = [_created(_terms(3, 1)), _matched(_terms(3, 2))];
        address[2] memory signed = [_created(_terms(3, 3)), _matched(_terms(3, 4))];
        _measureSigned("cancel", delegated[0], signed[0], client, abi.encodeCall(IWorkingContractEscrow.cancel, ()));
        _measureSigned("deliver", delegated[1], signed[1], worker, _deliver());
        _measureSigned("approve", delegated[1], signed[1], client, abi.encodeCall(IWorkingContractEscrow.approve, ()));

        bytes memory withdrawing = abi.encodeCall(IWorkingContractEscrow.withdraw, ());
        _measureSigned("withdraw", _matched(_terms(3, 5)), _matched(_terms(3, 6)), worker, withdrawing);
        Terms[2] memory named = [_terms(3, 7), _terms(3, 8)];
        (named[0].counterparty, named[1].counterparty) = (worker.addr, worker.addr);
        bytes memory declining = abi.encodeCall(IWorkingContractEscrow.decline, ());
        _measureSigned("decline", _created(named[0]), _created(named[1]), worker, declining);
    }

    /// @dev Both agents free a slot in the middle of the pool, a second apart.
    function test_SignedUnstake() public {
        _addJurors(4);
        bytes memory leaving = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (jurors[0].addr));
        uint256 expected = _relay(_one(_operation(address(registry), leaving)));
        vm.warp(vm.getBlockTimestamp() + 1);
        leaving = abi.encodeCall(IBackupAgentRegistry.requestUnstake, (jurors[1].addr));
        _measureSigned("request-unstake", expected, address(registry), jurors[1], leaving);
    }

    function _measureSigned(
        string memory action,
        address delegated,
        address signed,
        Vm.Wallet memory party,
        bytes memory data
    ) private {
        _measureSigned(action, _relay(_one(_operation(delegated, data))), signed, party, data);
    }

    function _measureSigned(
        string memory action,
        uint256 expected,
        address signed,
        Vm.Wallet memory party,
        bytes memory data
    ) private {
        uint40 deadline = uint40(vm.getBlockTimestamp()) + 600;
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(party, IAgentSignatures(signed).actionDigest(party.addr, deadline, data));
        bytes memory carrying =
            abi.encodeCall(IAgentSignatures.withSignature, (party.addr, deadline, abi.encodePacked(r, s, v), data));
        uint256 before = total;
        _measure(string.concat(action, ", signed"), _operation(signed, carrying));
        assertLe(total - before, expected + 12_000, "a signature costs at most 12,000");
    }

    function _measureUntilDelivery(uint8 criteria) private returns (address escrow) {
        Terms memory terms = _terms(criteria, 1);
        escrow = factory.predict(terms);
        _measure("create", _create(terms));
        _measure("accept", _accept(escrow));
        _measure("deliver", _operation(escrow, _deliver()));
    }

    /// @dev Someone else broadcasts the payer's authorization at the token.
    function _directTransfer(Vm.Wallet memory payer, address escrow, uint256 amount)
        private
        returns (Authorization memory lost)
    {
        lost = _authorize(payer, escrow, amount);
        usd.transferWithAuthorization(
            payer.addr, escrow, amount, lost.validAfter, lost.validBefore, lost.nonce, lost.signature
        );
    }

    function _measureFromDirectTransfer(string memory action, address escrow, bytes memory data) private {
        bytes memory paying = abi.encodeCall(IWorkingContractEscrow.withDirectTransfer, (data));
        _measure(string.concat(action, ", from direct transfer"), _operation(escrow, paying));
    }
}
