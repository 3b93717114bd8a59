// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Parameters, Status, Terms} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {Ledger} from "./Ledger.sol";

/// @notice One whole random history per run, from creation to the last claim, checked against a separate ledger: every
/// account ends with exactly what the published formulas give it, and no unit is left over.
contract ConservationTest is BaseTest {
    uint256 internal constant DEEP_POCKETS = 1e18;

    /// A history's random choices other than parameters.
    struct History {
        uint256 price;
        uint256 criteriaCount;
        uint256 voters;
        uint256 seed;
    }

    Terms internal t;
    WorkingContractEscrow internal escrow;
    Ledger.Ballot[] internal ballots;
    /// Client, worker, treasury, then the seven agents, as in {Ledger.Due}.
    address[] internal accounts;
    mapping(address account => uint256) internal balanceAtStart;
    uint256 internal total;

    function setUp() public override {
        super.setUp();
        accounts = [client, worker, treasury];
        for (uint256 i = 0; i < agents.length; ++i) {
            accounts.push(agents[i]);
            _stake(agents[i], ELIGIBILITY_STAKE);
        }
        for (uint256 i = 0; i < accounts.length; ++i) {
            if (accounts[i] != treasury) usd.mint(accounts[i], DEEP_POCKETS);
            balanceAtStart[accounts[i]] = usd.balanceOf(accounts[i]);
            total += usd.balanceOf(accounts[i]);
        }
        _stakeAgents(7);
    }

    function testFuzz_DisputeWithVoters(History memory h, Parameters memory p) public {
        _prepare(h, p);
        _deliver(escrow, t.computedCriteria ? _outcomes(h.seed, "computed") : 0);
        _dispute(escrow);
        _assertBooks();
        _voteAll(h);
        _openAndTally(h);
        _payEveryone(h.seed);
        _assertPaid(Ledger.disputed(t, ballots));
    }

    function testFuzz_AcceptedDelivery(History memory h, Parameters memory p) public {
        _prepare(h, p);
        uint24 outcomes = t.computedCriteria ? _outcomes(h.seed, "computed") : 0;
        _deliver(escrow, outcomes);
        if (_dice(h.seed, "approve") % 2 == 0) _approve(escrow);
        else vm.warp(t.reviewDeadline);
        _payEveryone(h.seed);
        _assertPaid(Ledger.accepted(t, outcomes));
    }

    function testFuzz_EndWithoutDelivery(History memory h, Parameters memory p) public {
        uint256 way = _dice(h.seed, "end") % 5;
        if (way < 2) {
            _prepare(h, p);
            if (way == 0) {
                vm.prank(escrow.worker());
                escrow.withdraw();
            } else {
                vm.warp(t.deliveryDeadline);
            }
            _payEveryone(h.seed);
            _assertPaid(way == 0 ? Ledger.withdrawn(t) : Ledger.absent(t));
            return;
        }
        _prepareTerms(h, p);
        t.counterparty = t.workerInitiated ? client : worker;
        escrow = _create(t);
        if (way == 2) {
            vm.prank(t.initiator);
            escrow.cancel();
        } else if (way == 3) {
            vm.prank(t.counterparty);
            escrow.decline();
        } else {
            vm.warp(t.matchDeadline);
        }
        _payEveryone(h.seed);
        _assertPaid(Ledger.unmatched(way == 2 ? Status.CancelledByInitiator : Status.CancelledUnmatched));
    }

    // --- the history ---

    function _prepareTerms(History memory h, Parameters memory p) private {
        h.price = bound(h.price, 0.01e6, 10_000_000e6);
        h.criteriaCount = bound(h.criteriaCount, 1, 10);
        h.voters = bound(h.voters, 0, 7);
        p.protocolFee = uint16(bound(p.protocolFee, 0, 2000));
        p.workerStakeRatio = uint16(bound(p.workerStakeRatio, 0, 10_000));
        p.disputeBondRatio = uint16(bound(p.disputeBondRatio, 0, 10_000));
        p.backupAgentBondRatio = uint16(bound(p.backupAgentBondRatio, 0, 10_000));
        p.earlyWithdrawalSlashRatio = uint16(bound(p.earlyWithdrawalSlashRatio, 0, 10_000));
        p.absentNoneMetClientShare = uint16(bound(p.absentNoneMetClientShare, 0, 10_000));
        p.baUnclearSlashRatio = uint16(bound(p.baUnclearSlashRatio, 0, 10_000));
        // Seven voters on ten criteria stay below the token's daily cap.
        p.tokenMintRewardFull = uint16(bound(p.tokenMintRewardFull, 0, 1000));
        p.tokenMintRewardReduced = uint16(bound(p.tokenMintRewardReduced, 0, 1000));
        p.baEligibilityStake = uint32(bound(p.baEligibilityStake, 1000, 2000));
        p.baVotingWindow = uint24(bound(p.baVotingWindow, 1 hours, 7 days));
        // One seat per voter: they vote in the open half of the window, which then closes.
        p.baRecruitCount = _dice(h.seed, "recruit") % 3 == 0 ? uint8(h.voters) : 0;
        p.payoutHold = uint24(bound(p.payoutHold, 0, 72 hours));
        _setParameters(p);

        t = _newTerms();
        t.price = uint80(h.price);
        t.criteriaCount = uint8(h.criteriaCount);
        t.computedCriteria = _dice(h.seed, "computed") % 3 == 0;
        t.workerInitiated = _dice(h.seed, "listing") % 3 == 0;
        t.initiator = t.workerInitiated ? worker : client;
    }

    function _prepare(History memory h, Parameters memory p) private {
        _prepareTerms(h, p);
        escrow = _matched(t);
        _assertBooks();
    }

    function _voteAll(History memory h) private {
        if (t.parameters.baRecruitCount != 0) vm.warp(_now() + t.parameters.baVotingWindow / 2);
        uint256 lean = _dice(h.seed, "lean") % 4;
        for (uint256 i = 0; i < h.voters; ++i) {
            uint256 seed = uint256(keccak256(abi.encode(h.seed, i)));
            uint24 votes = lean == 0 || seed % 3 == 0 ? _outcomes(seed, "votes") : _outcomes(h.seed, "votes");
            ballots.push(Ledger.Ballot({votes: votes, opened: _dice(seed, "open") % 4 != 0}));
            _vote(escrow, agents[i], votes);
        }
        _assertBooks();
    }

    function _openAndTally(History memory h) private {
        bool full = t.parameters.baRecruitCount != 0 && h.voters == t.parameters.baRecruitCount;
        if (!full) vm.warp(_now() + t.parameters.baVotingWindow);
        uint256 opened;
        for (uint256 i = 0; i < h.voters; ++i) {
            if (!ballots[i].opened) continue;
            _openVote(escrow, agents[i], ballots[i].votes);
            ++opened;
        }
        if (opened != h.voters) vm.warp(_now() + t.parameters.baVotingWindow + 24 hours);
        escrow.tally();
        _assertBooks();
    }

    /// In random order: claims can come before or after the settlement.
    function _payEveryone(uint256 seed) private {
        vm.warp(_now() + t.parameters.payoutHold);
        uint256 turn = _dice(seed, "turn") % (ballots.length + 1);
        for (uint256 i = 0; i <= ballots.length; ++i) {
            uint256 who = (i + turn) % (ballots.length + 1);
            if (who == ballots.length) escrow.settle();
            else if (ballots[who].opened) escrow.claim(agents[who]);
            _assertBooks();
        }
    }

    // --- assertions ---

    function _assertBooks() private view {
        assertEq(usd.balanceOf(address(escrow)), escrow.booked(), "balance = books");
    }

    function _assertPaid(Ledger.Due memory due) private view {
        assertEq(uint8(escrow.status()), uint8(due.status), "status");
        assertEq(usd.balanceOf(address(escrow)), 0, "left in the escrow");
        uint256 sum;
        for (uint256 i = 0; i < accounts.length; ++i) {
            uint256 balance = usd.balanceOf(accounts[i]);
            assertEq(int256(balance) - int256(balanceAtStart[accounts[i]]), due.money[i], vm.toString(i));
            sum += balance;
        }
        assertEq(sum, total, "in = out");
        for (uint256 i = 0; i < agents.length; ++i) {
            assertEq(token.balanceOf(agents[i]), due.tokens[i] * 1e18, "tokens");
        }
    }

    // --- randomness ---

    function _dice(uint256 seed, string memory what) private pure returns (uint256) {
        return uint256(keccak256(abi.encode(seed, what)));
    }

    function _outcomes(uint256 seed, string memory what) private view returns (uint24 outcomes) {
        for (uint256 i = 0; i < t.criteriaCount; ++i) {
            outcomes |= uint24(1 + uint256(keccak256(abi.encode(seed, what, i))) % 3) << uint24(2 * i);
        }
    }
}
