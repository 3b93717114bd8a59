// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EscrowJury} from "./EscrowJury.sol";
import {EscrowState} from "./EscrowState.sol";
import {Dependencies, IWorkingContractEscrow} from "./interfaces/IWorkingContractEscrow.sol";
import {Settlement} from "./libraries/Settlement.sol";
import {TermsCodec} from "./libraries/TermsCodec.sol";
import {AgentAction, Authorization, Phase, Status} from "./types/Types.sol";

/// @notice The lifecycle of one Working Contract, in order. See {IWorkingContractEscrow}.
contract WorkingContractEscrow is EscrowJury {
    using TermsCodec for bytes;

    constructor(Dependencies memory d) EscrowState(d) {}

    /// @inheritdoc IWorkingContractEscrow
    function open(Authorization calldata deposit) external nonReentrant {
        bytes memory t = _terms();
        _requireStatus(t, _facts, Status.None);
        uint256 amount = _depositOf(t);
        bool paidAlready = amount != 0 && ASSET.balanceOf(address(this)) >= amount;
        require(paidAlready || block.timestamp < t.matchDeadline(), DeadlinePassed(t.matchDeadline()));

        _facts.phase = Phase.Created;
        if (paidAlready) _facts.openedFromBalance = true;

        emit WorkingContractCreated(amount);

        // The terms fix the payer: money already here belongs to the initiator, whoever sent the authorization.
        if (!paidAlready) _collect(t.initiator(), amount, amount, deposit);
    }

    /// @inheritdoc IWorkingContractEscrow
    function accept(address party, Authorization calldata deposit) external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        _requireStatus(t, f, Status.Created);
        _requirePayerOrOperator(party);
        require(party != t.initiator() && party != address(0), InitiatorCannotAccept(party));
        address named = t.counterparty();
        require(named == address(0) || named == party, NotCounterparty({caller: party, counterparty: named}));

        uint256 price = t.price();
        uint256 stake = _stakeOf(t);
        uint256 amount = t.workerInitiated() ? price : stake;
        _facts.counterparty = party;
        _facts.phase = Phase.Matched;
        _facts.matchedOrEndedAt = uint40(block.timestamp);

        emit WorkingContractMatched(party, amount);

        _collect(party, amount, price + stake, deposit);
    }

    /// @inheritdoc IWorkingContractEscrow
    function decline() external {
        bytes memory t = _terms();
        _requireStatus(t, _facts, Status.Created);
        require(t.counterparty() != address(0), NothingToDecline());
        _requireActsFor(t.counterparty(), AgentAction.Decline);

        _end(Phase.Declined);

        emit WorkingContractDeclined();
    }

    /// @inheritdoc IWorkingContractEscrow
    function cancel() external {
        bytes memory t = _terms();
        _requireStatus(t, _facts, Status.Created);
        _requireActsFor(t.initiator(), AgentAction.Cancel);

        _end(Phase.Cancelled);

        emit WorkingContractCancelled();
    }

    /// @inheritdoc IWorkingContractEscrow
    function deliver(bytes32 deliveryHash, bytes32 checkpointsRoot, uint24 outcomes) external {
        bytes memory t = _terms();
        Facts memory f = _facts;
        _requireStatus(t, f, Status.Matched);
        _requireActsFor(_workerOf(t, f), AgentAction.Deliver);
        if (t.computedCriteria()) _requireComplete(outcomes, t.criteriaCount());
        else require(outcomes == 0, InvalidOutcomes(outcomes));

        f.phase = Phase.Delivered;
        f.outcomes = outcomes;
        _facts = f;

        emit WorkingContractDelivered(deliveryHash, checkpointsRoot, outcomes);
    }

    /// @inheritdoc IWorkingContractEscrow
    function withdraw() external {
        bytes memory t = _terms();
        Facts memory f = _facts;
        _requireStatus(t, f, Status.Matched);
        require(block.timestamp < t.withdrawalDeadline(), DeadlinePassed(t.withdrawalDeadline()));
        _requireActsFor(_workerOf(t, f), AgentAction.Withdraw);

        _end(Phase.Withdrawn);

        emit WorkingContractWithdrawn();
    }

    /// @inheritdoc IWorkingContractEscrow
    function approve() external {
        bytes memory t = _terms();
        Facts memory f = _facts;
        _requireStatus(t, f, Status.UnderReview);
        _requireActsFor(_clientOf(t, f), AgentAction.Approve);

        uint24 outcomes = _outcomesOf(t, f);
        _facts.outcomes = outcomes;
        _facts.phase = Phase.Approved;
        _facts.matchedOrEndedAt = uint40(block.timestamp);

        emit WorkingContractApproved(outcomes);
    }

    /// @inheritdoc IWorkingContractEscrow
    function settle() external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        Status ended = _statusOf(t, f);
        require(!f.settled, AlreadySettled());
        require(
            ended == Status.Resolved || uint8(ended) >= uint8(Status.CancelledUnmatched),
            WrongStatus({actual: ended, expected: Status.Resolved})
        );
        _requirePayable(t, f);

        Settlement.Tally memory tally_ = _tallyOf(t, f);
        Settlement.Payout memory payout = _payoutOf(t, f, ended, tally_);
        if (f.phase == Phase.Tallied) {
            uint256 leftover = _juryLeftover(t);
            payout.treasury += leftover;
            if (leftover != 0) _jury.held -= uint96(leftover);
        }
        _facts.settled = true;

        address client_ = _clientOf(t, f);
        address worker_ = _workerOf(t, f);
        address treasury = payout.treasury == 0 ? address(0) : FACTORY.treasury();
        emit WorkingContractSettled({
            status: ended == Status.Resolved ? _settledStatusOf(t.price(), tally_) : ended,
            client: client_,
            worker: worker_,
            treasury: treasury,
            payout: payout
        });

        _pay(client_, payout.client);
        _pay(worker_, payout.worker);
        _pay(treasury, payout.treasury);
    }

    function _end(Phase phase) private {
        _facts.phase = phase;
        _facts.matchedOrEndedAt = uint40(block.timestamp);
    }

    function _payoutOf(bytes memory t, Facts memory f, Status ended, Settlement.Tally memory tally_)
        private
        view
        returns (Settlement.Payout memory payout)
    {
        if (ended == Status.Resolved) {
            uint256 bond = f.phase == Phase.Tallied ? _disputeBondOf(t) : 0;
            return Settlement.resolve({
                price: t.price(),
                stake: _stakeOf(t),
                bond: bond,
                tally: tally_,
                protocolFee: t.protocolFee(),
                absentNoneMetClientShare: t.absentNoneMetClientShare()
            });
        }
        if (ended == Status.CancelledAbsent) {
            return Settlement.absent(t.price(), _stakeOf(t), t.absentNoneMetClientShare());
        }
        if (ended == Status.CancelledWithdrawn) {
            return Settlement.withdrawn(t.price(), _stakeOf(t), t.earlyWithdrawalSlashRatio());
        }
        if (t.workerInitiated()) payout.worker = _depositOf(t);
        else payout.client = _depositOf(t);
    }
}
