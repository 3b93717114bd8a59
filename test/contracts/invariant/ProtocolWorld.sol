// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Authorization, Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

/// @notice The world of a random history: escrows, people and what was observed of them.
abstract contract ProtocolWorld is BaseTest {
    /// @dev Money sent to an escrow outside its own calls.
    struct DirectTransfer {
        WorkingContractEscrow escrow;
        address payer;
        uint256 amount;
        Authorization authorization;
    }

    uint256 internal constant MAX_ESCROWS = 5;

    WorkingContractEscrow[] public escrows;
    address[] public actors;
    address[] internal treasuries;
    DirectTransfer[] internal directTransfers;

    mapping(WorkingContractEscrow escrow => uint256) public directlySentTo;
    mapping(WorkingContractEscrow escrow => bool) public settled;
    mapping(WorkingContractEscrow escrow => mapping(address agent => uint24)) internal votesOf;
    mapping(WorkingContractEscrow escrow => mapping(address agent => bool)) internal claimed;
    mapping(WorkingContractEscrow escrow => Authorization) internal usedBy;
    /// The authorization that paid the deposit before the escrow was opened.
    mapping(WorkingContractEscrow escrow => Authorization) internal openedBy;
    mapping(WorkingContractEscrow escrow => Status) internal lastStatus;

    /// How often each status, and each number of opened votes at a tally, was seen.
    mapping(Status status => uint256) public reached;
    uint256[8] public talliesWith;
    /// Descriptions of everything that happened but must not.
    string[] public violations;

    function setUp() public override {
        super.setUp();
        actors = [client, worker, _actor("client 2"), _actor("worker 2"), stranger];
        for (uint256 i = 0; i < agents.length; ++i) {
            actors.push(agents[i]);
        }
        treasuries = [treasury, makeAddr("treasury 2")];
        _stakeAgents(7);
    }

    /// Starts a new history with new escrows.
    function forget() external {
        delete escrows;
        delete directTransfers;
    }

    function escrowCount() external view returns (uint256) {
        return escrows.length;
    }

    function violationCount() external view returns (uint256) {
        return violations.length;
    }

    /// Everyone's money, including that of the escrows.
    function totalHeld() external view returns (uint256 total) {
        total = _heldByPeople();
        for (uint256 i = 0; i < escrows.length; ++i) {
            total += usd.balanceOf(address(escrows[i]));
        }
    }

    function _heldByPeople() internal view returns (uint256 total) {
        for (uint256 i = 0; i < actors.length; ++i) {
            total += usd.balanceOf(actors[i]);
        }
        total += usd.balanceOf(treasuries[0]) + usd.balanceOf(treasuries[1]);
    }

    function totalSupply() external view returns (uint256) {
        return usd.totalSupply();
    }

    function balanceOf(WorkingContractEscrow escrow) external view returns (uint256) {
        return usd.balanceOf(address(escrow));
    }

    /// Money that can stay in the escrow forever, because the token refuses to pay its owner.
    function unpayable(WorkingContractEscrow escrow) external view returns (uint256 total) {
        for (uint256 i = 0; i < actors.length; ++i) {
            if (usd.isBlacklisted(actors[i])) total += escrow.deferred(actors[i]);
        }
        for (uint256 i = 0; i < treasuries.length; ++i) {
            if (usd.isBlacklisted(treasuries[i])) total += escrow.deferred(treasuries[i]);
        }
        return total + directlySentTo[escrow];
    }

    function stakedTokens() external view returns (uint256 booked, uint256 held) {
        for (uint256 i = 0; i < agents.length; ++i) {
            (uint96 amount,,,,) = registry.stakes(agents[i]);
            booked += amount;
        }
        held = token.balanceOf(address(registry));
    }

    function _closesAt(WorkingContractEscrow escrow) internal view returns (uint40) {
        return escrow.jury().disputedAt + escrow.terms().parameters.baVotingWindow;
    }

    function _votingClosed(WorkingContractEscrow escrow) internal view returns (bool) {
        uint256 seats = escrow.terms().parameters.baRecruitCount;
        return _now() >= _closesAt(escrow) || (seats != 0 && escrow.jury().sealedVotes == seats);
    }

    function _claim(WorkingContractEscrow escrow, address agent, address caller) internal {
        uint256 ballot = escrow.ballotOf(agent);
        bool opened = ballot != 0 && ballot < 1 << 27;
        if (!opened || escrow.status() == Status.Disputed || claimed[escrow][agent]) return;
        claimed[escrow][agent] = true;
        vm.prank(caller);
        escrow.claim(agent);
    }

    function _refundDirectTransfer(uint256 index, address caller) internal {
        DirectTransfer memory s = directTransfers[index];
        if (usd.isBlacklisted(s.payer)) return;
        uint256 before = usd.balanceOf(s.payer);
        vm.prank(caller);
        s.escrow.refundDirectTransfer(s.payer, s.amount, s.authorization);
        if (usd.balanceOf(s.payer) != before + s.amount) violations.push("direct transfer refunded elsewhere");
        directlySentTo[s.escrow] -= s.amount;
        directTransfers[index] = directTransfers[directTransfers.length - 1];
        directTransfers.pop();
    }

    function _liftBlacklist() internal {
        for (uint256 i = 0; i < actors.length; ++i) {
            usd.setBlacklisted(actors[i], false);
        }
        for (uint256 i = 0; i < treasuries.length; ++i) {
            usd.setBlacklisted(treasuries[i], false);
        }
    }
}
