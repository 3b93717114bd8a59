// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Settlement} from "../../../contracts/libraries/Settlement.sol";
import {Outcome, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract SettleTest is BaseTest {
    function test_RevertGiven_NotEnded() public {
        Status[5] memory open = [Status.None, Status.Created, Status.Matched, Status.UnderReview, Status.Disputed];
        for (uint256 i = 0; i < open.length; ++i) {
            WorkingContractEscrow escrow = _escrowIn(open[i]);
            _expectWrongStatus(open[i], Status.Resolved);
            escrow.settle();
        }
    }

    function test_RevertGiven_Settled() public {
        Status[6] memory ends = [
            Status.Resolved,
            Status.CancelledUnmatched,
            Status.CancelledByInitiator,
            Status.CancelledWithdrawn,
            Status.CancelledAbsent,
            Status.SettledPartial
        ];
        for (uint256 i = 0; i < ends.length; ++i) {
            WorkingContractEscrow escrow = _escrowIn(ends[i]);
            if (ends[i] != Status.SettledPartial) escrow.settle();
            vm.expectRevert(IWorkingContractEscrow.AlreadySettled.selector);
            escrow.settle();
            assertBalance(address(escrow), 0, "escrow");
        }
    }

    function test_GivenApproved() public {
        WorkingContractEscrow escrow = _escrowIn(Status.Resolved);
        _settleAndAssert(escrow, Status.SettledAllMet, 0, 50e6, 2.5e6);
    }

    function test_GivenReviewTimedOut() public {
        Terms memory t = _newTerms();
        WorkingContractEscrow escrow = _delivered(t, 0);
        vm.warp(t.reviewDeadline - 1);
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.None), "nothing accepted yet");
        vm.warp(t.reviewDeadline);
        assertStatus(escrow, Status.Resolved);
        assertEq(uint8(escrow.outcomeOf(0)), uint8(Outcome.Met), "accepted at the review deadline");
        _settleAndAssert(escrow, Status.SettledAllMet, 0, 50e6, 2.5e6);
    }

    function test_GivenUsageTicketTwoMet() public {
        _settleAndAssert(_computed(TWO_MET), Status.SettledPartial, 17_333_333, 33_333_334, 1_833_333);
    }

    function test_GivenUsageTicketNoneMet() public {
        _settleAndAssert(_computed(NONE_MET), Status.SettledNoneMet, 52e6, 0, 0.5e6);
    }

    /// The Client accepted a criterion that could not be computed, so it pays as met. Only a vote splits it.
    function test_GivenUsageTicketUnclear() public {
        uint24 oneOfEach = _pack(Outcome.Met, Outcome.NotMet, Outcome.Unclear);
        _settleAndAssert(_computed(ALL_UNCLEAR), Status.SettledAllMet, 0, 50e6, 2.5e6);
        _settleAndAssert(_computed(oneOfEach), Status.SettledPartial, 17_333_333, 33_333_334, 1_833_333);

        Terms memory t = _newComputedTerms();
        WorkingContractEscrow escrow = _delivered(t, oneOfEach);
        vm.warp(t.reviewDeadline);
        assertEq(uint8(escrow.outcomeOf(2)), uint8(Outcome.Unclear), "still unclear to readers");
        _settleAndAssert(escrow, Status.SettledPartial, 17_333_333, 33_333_334, 1_833_333);

        escrow = _delivered(_newComputedTerms(), oneOfEach);
        _dispute(escrow);
        vm.warp(_now() + 24 hours);
        escrow.tally();
        _settleAndAssert(escrow, Status.SettledPartial, 27.5e6, 26.25e6, 1.25e6);
    }

    function test_GivenAbsentWorker() public {
        _settleAndAssert(_escrowIn(Status.CancelledAbsent), Status.CancelledAbsent, 52e6, 0, 0.5e6);
    }

    function test_GivenWithdrawn() public {
        _settleAndAssert(_escrowIn(Status.CancelledWithdrawn), Status.CancelledWithdrawn, 50.75e6, 1.75e6, 0);
    }

    function test_GivenCancelledOrUnmatched() public {
        _settleAndAssert(_escrowIn(Status.CancelledUnmatched), Status.CancelledUnmatched, 50e6, 0, 0);
        _settleAndAssert(_escrowIn(Status.CancelledByInitiator), Status.CancelledByInitiator, 50e6, 0, 0);

        WorkingContractEscrow declined = _escrowIn(Status.Created);
        vm.prank(worker);
        declined.decline();
        _settleAndAssert(declined, Status.CancelledUnmatched, 50e6, 0, 0);
    }

    function test_GivenPayoutHold() public {
        _setPayoutHold(72 hours);
        WorkingContractEscrow escrow = _escrowIn(Status.Resolved);
        uint40 until = _now() + 72 hours;

        vm.warp(until - 1);
        address[4] memory callers = [client, worker, operator, owner];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.PayoutHeld.selector, until));
            vm.prank(callers[i]);
            escrow.settle();
        }
        assertStatus(escrow, Status.Resolved);
        vm.warp(until);
        _settleAndAssert(escrow, Status.SettledAllMet, 0, 50e6, 2.5e6);
    }

    function test_GivenPayoutHold_WhenReviewerReleases() public {
        _setPayoutHold(72 hours);
        WorkingContractEscrow escrow = _escrowIn(Status.Resolved);
        vm.prank(reviewer);
        escrow.settle();
        assertStatus(escrow, Status.SettledAllMet);
        assertBalance(treasury, 2.5e6, "treasury");
    }

    /// A time-out ends the contract at its deadline, no matter when someone notices.
    function test_GivenPayoutHold_CountedFromTheDeadline() public {
        _setPayoutHold(72 hours);
        Terms memory t = _newTerms();
        WorkingContractEscrow escrow = _matched(t);
        vm.warp(t.deliveryDeadline + 72 hours - 1);
        vm.expectRevert(
            abi.encodeWithSelector(IWorkingContractEscrow.PayoutHeld.selector, t.deliveryDeadline + 72 hours)
        );
        escrow.settle();
        vm.warp(t.deliveryDeadline + 72 hours);
        _settleAndAssert(escrow, Status.CancelledAbsent, 52e6, 0, 0.5e6);
    }

    function test_GivenBlacklistedPayee() public {
        WorkingContractEscrow escrow = _computed(TWO_MET);
        usd.setBlacklisted(worker, true);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.PayoutDeferred(worker, 33_333_334);
        escrow.settle();

        assertStatus(escrow, Status.SettledPartial);
        assertBalance(client, FUNDS - PRICE + 17_333_333, "client");
        assertBalance(worker, FUNDS - STAKE, "worker");
        assertBalance(treasury, 1_833_333, "treasury");
        assertBalance(address(escrow), 33_333_334, "escrow");
        assertEq(escrow.booked(), 33_333_334, "booked");
        assertEq(escrow.deferred(worker), 33_333_334, "claimable");
    }

    function test_GivenTokenPaused() public {
        WorkingContractEscrow escrow = _computed(TWO_MET);
        usd.setPaused(true);
        escrow.settle();
        usd.setPaused(false);
        assertEq(escrow.booked(), PRICE + STAKE, "booked");
        escrow.claimDeferred(client);
        escrow.claimDeferred(worker);
        escrow.claimDeferred(treasury);
        assertBalance(client, FUNDS - PRICE + 17_333_333, "client");
        assertBalance(worker, FUNDS - STAKE + 33_333_334, "worker");
        assertBalance(treasury, 1_833_333, "treasury");
        assertBalance(address(escrow), 0, "escrow");
    }

    function test_GivenNewTreasury() public {
        WorkingContractEscrow escrow = _escrowIn(Status.Resolved);
        vm.prank(owner);
        factory.setTreasury(stranger);
        escrow.settle();
        assertBalance(stranger, FUNDS + 2.5e6, "new treasury");
        assertBalance(client, FUNDS - PRICE, "client");
        assertBalance(worker, FUNDS + 47.5e6, "worker");
        assertBalance(treasury, 0, "former treasury");
    }

    function test_WhenOnlyThePartiesAct() public {
        Terms memory t = _newTerms();
        WorkingContractEscrow escrow = WorkingContractEscrow(factory.predict(t));
        vm.startPrank(client);
        usd.approve(address(escrow), PRICE);
        factory.deploy(_packed(t));
        escrow.open(_noAuthorization());
        vm.stopPrank();
        vm.startPrank(worker);
        usd.approve(address(escrow), STAKE);
        escrow.accept(worker, _noAuthorization());
        escrow.deliver(keccak256("delivery"), keccak256("checkpoints"), 0);
        vm.stopPrank();
        vm.startPrank(client);
        escrow.approve();
        escrow.settle();
        vm.stopPrank();

        assertStatus(escrow, Status.SettledAllMet);
        assertBalance(client, FUNDS - PRICE, "client");
        assertBalance(worker, FUNDS - STAKE + 50e6, "worker");
        assertBalance(treasury, 2.5e6, "treasury");
    }

    function _computed(uint24 outcomes) private returns (WorkingContractEscrow escrow) {
        escrow = _delivered(_newComputedTerms(), outcomes);
        _approve(escrow);
    }

    function _settleAndAssert(
        WorkingContractEscrow escrow,
        Status expected,
        uint256 toClient,
        uint256 toWorker,
        uint256 toTreasury
    ) private {
        uint256[3] memory before = [usd.balanceOf(client), usd.balanceOf(worker), usd.balanceOf(treasury)];
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.WorkingContractSettled({
            status: expected,
            client: escrow.client(),
            worker: escrow.worker(),
            treasury: toTreasury == 0 ? address(0) : treasury,
            payout: Settlement.Payout({client: toClient, worker: toWorker, treasury: toTreasury})
        });
        vm.prank(stranger);
        escrow.settle();

        assertStatus(escrow, expected);
        assertBalance(client, before[0] + toClient, "client");
        assertBalance(worker, before[1] + toWorker, "worker");
        assertBalance(treasury, before[2] + toTreasury, "treasury");
        assertBalance(address(escrow), 0, "escrow");
        assertEq(escrow.booked(), 0, "booked");
        assertEq(token.totalSupply(), 0, "no tokens without a vote");
    }
}
