// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
import {ProtocolExits} from "./ProtocolExits.sol";

/// @notice Random histories of several Working Contracts: legal actions in every state and with every way to pay, jumps
/// in time, direct transfers, blacklists, new parameters, and attempts that must fail.
///
/// An action that should succeed but reverts fails the run.
contract ProtocolHandler is ProtocolExits {
    modifier recorded() {
        _;
        for (uint256 i = 0; i < escrows.length; ++i) {
            WorkingContractEscrow escrow = escrows[i];
            Status status = escrow.status();
            Status last = lastStatus[escrow];
            if (status == last) continue;
            ++reached[status];
            if (_rank(status) <= _rank(last)) violations.push("status went back");
            lastStatus[escrow] = status;
        }
    }

    // --- actions ---

    function create(uint256 seed) external recorded {
        if (escrows.length == MAX_ESCROWS) return;
        Terms memory t = _randomTerms(seed);
        if (usd.isBlacklisted(t.initiator)) return;
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.predict(t));
        uint256 amount = _depositOf(t);
        escrows.push(escrow);

        uint256 way = (seed >> 8) % 4;
        if (way == 0) {
            factory.deploy(_packed(t));
            vm.startPrank(t.initiator);
            usd.approve(address(escrow), amount);
            escrow.open(_noAuthorization());
            vm.stopPrank();
            return;
        }
        Authorization memory deposit = _authorize(t.initiator, address(escrow), amount);
        if (way == 1 && amount != 0) {
            _frontRun(t.initiator, address(escrow), amount, deposit);
            openedBy[escrow] = deposit;
            // Late: the money can only be refunded.
            if ((seed >> 16) % 4 == 0) vm.warp(t.matchDeadline + (seed >> 24) % 30 days);
        }
        factory.create(_packed(t), deposit);
    }

    /// Takes one step in most escrows.
    function advance(uint256 seed) external recorded {
        for (uint256 i = 0; i < escrows.length; ++i) {
            uint256 choice = uint256(keccak256(abi.encode(seed, i)));
            if (choice >> 254 != 0) _advance(escrows[i], choice);
        }
    }

    function _advance(WorkingContractEscrow escrow, uint256 choice) private {
        Status status = escrow.status();
        if (status == Status.Created) _actCreated(escrow, choice);
        else if (status == Status.Matched) _actMatched(escrow, choice);
        else if (status == Status.UnderReview) _actUnderReview(escrow, choice);
        else if (status == Status.Disputed) _actDisputed(escrow);
        else _actEnded(escrow, choice);
    }

    /// In every dispute, every agent whose bit is set votes if it is allowed to.
    function vote(uint256 seed) external recorded {
        for (uint256 i = 0; i < escrows.length; ++i) {
            if (escrows[i].status() != Status.Disputed) continue;
            uint256 who = uint256(keccak256(abi.encode(seed, i)));
            for (uint256 j = 0; j < agents.length; ++j) {
                if ((who >> j) & 1 == 0) continue;
                _voteWhereAllowed(escrows[i], agents[j], uint256(keccak256(abi.encode(who, j))), who);
            }
        }
    }

    /// In every dispute, opens the votes of every agent whose bit is set, or of all agents.
    function open(uint256 seed) external recorded {
        for (uint256 i = 0; i < escrows.length; ++i) {
            WorkingContractEscrow escrow = escrows[i];
            if (escrow.status() != Status.Disputed || !_votingClosed(escrow)) continue;
            if (_now() >= _closesAt(escrow) + 24 hours) continue;
            uint256 who = uint256(keccak256(abi.encode(seed, i)));
            if (who >> 255 == 0) who = type(uint256).max;
            for (uint256 j = 0; j < agents.length; ++j) {
                if ((who >> j) & 1 == 0 || escrow.ballotOf(agents[j]) < 1 << 27) continue;
                _openVote(escrow, agents[j], votesOf[escrow][agents[j]]);
            }
        }
    }

    /// Warps to the nearest time limit of all escrows, to a second beside it, or some hours ahead.
    function pass(uint256 choice) external recorded {
        vm.roll(vm.getBlockNumber() + 1 + choice % 50);
        uint40 now_ = _now();
        uint40 limit = now_ + 1 + uint40((choice >> 8) % 12 hours);
        if (choice % 3 != 0) {
            uint40 nearest = type(uint40).max;
            for (uint256 i = 0; i < escrows.length; ++i) {
                uint40 next = _nextLimit(escrows[i]);
                if (next < nearest) nearest = next;
            }
            if (nearest != type(uint40).max) limit = nearest;
        }
        uint40 to = limit + uint40((choice >> 40) % 3) - 1;
        vm.warp(to > now_ ? to : now_ + 1);
    }

    /// Events from outside the lifecycle.
    function disturb(uint256 kind, uint256 a, uint256 b, uint256 c) external recorded {
        kind %= 6;
        if (kind == 0) _transferDirectly(a, b, c);
        else if (kind == 1 && directTransfers.length != 0) _refundDirectTransfer(a % directTransfers.length, operator);
        else if (kind == 2) _blacklist(a);
        else if (kind == 3) _liftBlacklist();
        else if (kind == 4) _change(a);
        else _attack(a, b);
    }

    /// @dev Someone signs a transfer to an escrow, and someone else broadcasts it at the token.
    function _transferDirectly(uint256 escrowSeed, uint256 payerSeed, uint256 amount) private {
        if (escrows.length == 0 || directTransfers.length > 8) return;
        WorkingContractEscrow escrow = escrows[escrowSeed % escrows.length];
        address payer = actors[payerSeed % actors.length];
        if (usd.isBlacklisted(payer)) return;
        amount = 1 + amount % 100e6;
        // RefundDirectTransferTest covers equal payments of the initiator.
        if (amount == _depositOf(escrow.terms())) ++amount;
        Authorization memory authorization = _directTransfer(payer, address(escrow), amount);
        directTransfers.push(DirectTransfer(escrow, payer, amount, authorization));
        directlySentTo[escrow] += amount;
    }

    function _blacklist(uint256 who) private {
        address account = who % 5 == 0 ? treasuries[(who >> 8) % 2] : actors[(who >> 8) % actors.length];
        usd.setBlacklisted(account, true);
    }

    function _change(uint256 seed) private {
        vm.startPrank(owner);
        factory.setTreasury(treasuries[seed % 2]);
        factory.setParameters(_randomParameters(seed >> 8));
        vm.stopPrank();
    }

    /// @dev None of these must succeed.
    function _attack(uint256 escrowSeed, uint256 choice) private {
        if (escrows.length == 0) return;
        WorkingContractEscrow escrow = escrows[escrowSeed % escrows.length];
        address attacker = makeAddr("attacker");
        vm.startPrank(attacker);
        if (settled[escrow]) {
            try escrow.settle() {
                violations.push("settled twice");
            } catch {}
        }
        for (uint256 i = 0; i < agents.length; ++i) {
            if (!claimed[escrow][agents[i]]) continue;
            try escrow.claim(agents[i]) {
                violations.push("claimed twice");
            } catch {}
        }
        _attackWithOthersMoney(escrow, choice);
        vm.stopPrank();
        if (openedBy[escrow].nonce != 0) _attackWithOpeningDeposit(escrow);
        _attackWithCancelledAuthorization(escrow, choice);
        if (usd.balanceOf(attacker) != 0) violations.push("the attacker has money");
    }

    // --- actions by status ---

    function _actCreated(WorkingContractEscrow escrow, uint256 choice) private {
        Terms memory t = escrow.terms();
        if (choice % 8 == 0) {
            vm.prank(t.initiator);
            escrow.cancel();
        } else if (choice % 8 == 1 && t.counterparty != address(0)) {
            vm.prank(t.counterparty);
            escrow.decline();
        } else {
            address party = t.counterparty != address(0) ? t.counterparty : actors[(choice >> 8) % 5];
            if (party == t.initiator) return;
            uint256 amount = t.workerInitiated ? t.price : _stakeOf(t);
            (bool able, address caller, Authorization memory payment) = _pay(escrow, party, amount, choice >> 16);
            if (!able) return;
            _bring(escrow, caller, abi.encodeCall(escrow.accept, (party, payment)));
            if (payment.signature.length != 0) usedBy[escrow] = payment;
        }
    }

    function _actMatched(WorkingContractEscrow escrow, uint256 choice) private {
        Terms memory t = escrow.terms();
        address party = escrow.worker();
        vm.prank(party);
        if (choice % 5 == 0 && _now() < t.withdrawalDeadline) {
            escrow.withdraw();
        } else {
            uint24 outcomes = t.computedCriteria ? _randomOutcomes(t.criteriaCount, choice >> 8) : 0;
            escrow.deliver(keccak256("delivery"), keccak256("checkpoints"), outcomes);
        }
    }

    function _actUnderReview(WorkingContractEscrow escrow, uint256 choice) private {
        address party = escrow.client();
        if (choice % 4 == 0) {
            vm.prank(party);
            escrow.approve();
            return;
        }
        (bool able, address caller, Authorization memory payment) =
            _pay(escrow, party, _bondOf(escrow.terms()), choice >> 8);
        if (!able) return;
        _bring(escrow, caller, abi.encodeCall(escrow.dispute, (payment)));
    }

    function _actDisputed(WorkingContractEscrow escrow) private {
        uint256 sealedVotes = escrow.jury().sealedVotes;
        uint256 openedVotes = escrow.openedVotes();
        if ((_votingClosed(escrow) && sealedVotes == openedVotes) || _now() >= _closesAt(escrow) + 24 hours) {
            escrow.tally();
            ++talliesWith[openedVotes];
            return;
        }
        try escrow.draw() {
            // A draw records its agents, or the next block as its seed if the last one's hash is out of reach.
            if (!escrow.jury().drawn && escrow.jury().drawBlock <= block.number) violations.push("draw not recorded");
        } catch (bytes memory reason) {
            if (bytes4(reason) != IWorkingContractEscrow.NoDraw.selector) violations.push("draw failed");
        }
    }

    function _actEnded(WorkingContractEscrow escrow, uint256 choice) private {
        if (escrow.status() == Status.None) return;
        address caller = (choice >> 8) % 2 == 0 ? reviewer : stranger;
        if (caller == reviewer || _now() >= escrow.terms().reviewDeadline + 50 days) {
            if (choice % 2 == 0 && !settled[escrow]) {
                vm.prank(caller);
                escrow.settle();
                settled[escrow] = true;
            } else {
                _claim(escrow, agents[(choice >> 16) % agents.length], caller);
            }
        }
        address payee = actors[(choice >> 24) % actors.length];
        if (escrow.deferred(payee) != 0 && !usd.isBlacklisted(payee)) escrow.claimDeferred(payee);
    }

    // --- votes ---

    function _voteWhereAllowed(WorkingContractEscrow escrow, address agent, uint256 seed, uint256 common) private {
        Terms memory t = escrow.terms();
        uint256 seats = t.parameters.baRecruitCount;
        if (_now() >= _closesAt(escrow) || escrow.ballotOf(agent) != 0 || usd.isBlacklisted(agent)) return;
        if (seats != 0) {
            if (escrow.jury().sealedVotes == seats) return;
            uint40 openToAllAt = escrow.jury().disputedAt + t.parameters.baVotingWindow / 2;
            if (!escrow.isDrawn(agent) && _now() < openToAllAt) return;
        }
        votesOf[escrow][agent] = _randomOutcomes(t.criteriaCount, seed % 3 == 0 ? seed : common);
        (, address caller, Authorization memory payment) = _pay(escrow, agent, _voteBondOf(t), seed >> 128);
        bytes32 commitment = _commitment(escrow, agent, votesOf[escrow][agent]);
        _bring(escrow, caller, abi.encodeCall(escrow.vote, (agent, commitment, payment)));
    }

    // --- money ---

    /// @dev Prepares a payment in one of four ways: signed and submitted by the operator or the payer, from an
    /// allowance, or broadcast by someone else first.
    function _pay(WorkingContractEscrow escrow, address payer, uint256 amount, uint256 way)
        private
        returns (bool able, address caller, Authorization memory payment)
    {
        if (usd.isBlacklisted(payer)) return (false, payer, payment);
        if (way % 4 == 0) {
            vm.prank(payer);
            usd.approve(address(escrow), amount);
            return (true, payer, payment);
        }
        payment = _authorize(payer, address(escrow), amount);
        if (way % 4 == 1) return (true, payer, payment);
        if (way % 4 == 2) _frontRun(payer, address(escrow), amount, payment);
        return (true, operator, payment);
    }

    /// @dev The operator allows a direct transfer for every action: without one it is the same as the plain call.
    function _bring(WorkingContractEscrow escrow, address caller, bytes memory action) private {
        vm.prank(caller);
        if (caller == operator) escrow.withDirectTransfer(action);
        else Address.functionCall(address(escrow), action);
    }

    /// @dev Called as the attacker.
    function _attackWithOthersMoney(WorkingContractEscrow escrow, uint256 choice) private {
        Terms memory t = escrow.terms();
        if (usedBy[escrow].nonce != 0 && _now() < t.reviewDeadline + 7 days) {
            address matched = t.workerInitiated ? escrow.client() : escrow.worker();
            try escrow.refundDirectTransfer(matched, t.workerInitiated ? t.price : _stakeOf(t), usedBy[escrow]) {
                violations.push("a booked payment was refunded");
            } catch {}
        }
        if (directTransfers.length == 0) return;
        DirectTransfer memory s = directTransfers[choice % directTransfers.length];
        try s.escrow.refundDirectTransfer(makeAddr("attacker"), s.amount, s.authorization) {
            violations.push("direct transfer refunded to another");
        } catch {}
        try s.escrow.accept(s.payer, s.authorization) {
            violations.push("a third party credited a direct transfer");
        } catch {}
        try s.escrow.dispute(s.authorization) {
            violations.push("a third party disputed");
        } catch {}
    }

    /// @dev The operator submits an authorization that its payer cancelled after verification, with others' money in
    /// the escrow.
    function _attackWithCancelledAuthorization(WorkingContractEscrow escrow, uint256 choice) private {
        if (escrow.status() != Status.Created) return;
        Terms memory t = escrow.terms();
        address party = t.counterparty != address(0) ? t.counterparty : actors[(choice >> 8) % 5];
        if (party == t.initiator || usd.isBlacklisted(party)) return;
        uint256 amount = t.workerInitiated ? t.price : _stakeOf(t);
        Authorization memory cancelled = _cancelled(party, address(escrow), amount);
        vm.prank(operator);
        try escrow.accept(party, cancelled) {
            violations.push("a cancelled authorization paid");
        } catch {}
    }

    /// @dev The operator submits the authorization that opened the escrow, with others' money in it.
    function _attackWithOpeningDeposit(WorkingContractEscrow escrow) private {
        Terms memory t = escrow.terms();
        uint256 before = usd.balanceOf(address(escrow));
        vm.prank(operator);
        try escrow.refundDirectTransfer(t.initiator, _depositOf(t), openedBy[escrow]) {
            if (usd.balanceOf(address(escrow)) != before) violations.push("the opening deposit was refunded");
        } catch {}
    }

    // --- randomness ---

    function _randomTerms(uint256 seed) private returns (Terms memory t) {
        t = _newTerms();
        seed = uint256(keccak256(abi.encode(seed)));
        t.initiator = actors[seed % 4];
        t.workerInitiated = (seed >> 8) % 3 == 0;
        t.computedCriteria = (seed >> 16) % 3 == 0;
        t.criteriaCount = uint8(1 + (seed >> 24) % ((seed >> 144) % 2 == 0 ? 3 : 10));
        t.price = uint80((seed >> 32) % 4 == 0 ? 1 + (seed >> 40) % 1000 : 1 + (seed >> 40) % 1000e6);
        if ((seed >> 96) % 2 == 0) t.counterparty = actors[(seed % 4 + 1 + (seed >> 104) % 3) % 4];
    }

    function _randomParameters(uint256 seed) private pure returns (Parameters memory p) {
        seed = uint256(keccak256(abi.encode(seed)));
        p = _defaultParameters();
        p.protocolFee = uint16(seed % 2001);
        p.workerStakeRatio = uint16((seed >> 16) % 10_001);
        p.disputeBondRatio = uint16((seed >> 32) % 10_001);
        p.backupAgentBondRatio = uint16((seed >> 48) % 10_001);
        p.earlyWithdrawalSlashRatio = uint16((seed >> 64) % 10_001);
        p.absentNoneMetClientShare = uint16((seed >> 80) % 10_001);
        p.baUnclearSlashRatio = uint16((seed >> 96) % 10_001);
        p.baRecruitCount = uint8((seed >> 112) % 2 == 0 ? 0 : 1 + (seed >> 120) % 4);
        p.payoutHold = uint24((seed >> 128) % 2 == 0 ? 0 : (seed >> 136) % (72 hours + 1));
    }

    /// @dev Leans towards one outcome, so that majorities occur.
    function _randomOutcomes(uint256 count, uint256 seed) private pure returns (uint24 outcomes) {
        uint256 common = 1 + seed % 3;
        for (uint256 i = 0; i < count; ++i) {
            uint256 dice = uint256(keccak256(abi.encode(seed, i)));
            outcomes |= uint24(dice % 3 == 0 ? 1 + (dice >> 8) % 3 : common) << uint24(2 * i);
        }
    }

    function _nextLimit(WorkingContractEscrow escrow) private view returns (uint40) {
        Status status = escrow.status();
        Terms memory t = escrow.terms();
        if (status == Status.Created) return t.matchDeadline;
        if (status == Status.Matched) {
            return _now() < t.withdrawalDeadline ? t.withdrawalDeadline : t.deliveryDeadline;
        }
        if (status == Status.UnderReview) return t.reviewDeadline;
        if (status == Status.Disputed) {
            uint40 half = escrow.jury().disputedAt + t.parameters.baVotingWindow / 2;
            if (_now() < half) return half;
            return _now() < _closesAt(escrow) ? _closesAt(escrow) : _closesAt(escrow) + 24 hours;
        }
        return type(uint40).max;
    }

    /// @dev Ends are final: one never follows another.
    function _rank(Status status) private pure returns (uint256) {
        return status <= Status.Resolved ? uint256(status) : uint256(Status.Resolved) + 1;
    }
}
