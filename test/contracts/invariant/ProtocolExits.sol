// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Status} from "../../../contracts/types/Types.sol";
import {ProtocolWorld} from "./ProtocolWorld.sol";

/// @notice Ends a history, wherever it stopped: by anyone's calls, or by the people's own calls.
abstract contract ProtocolExits is ProtocolWorld {
    /// Only time and anyone's calls.
    function exit() external {
        uint40 end = _now();
        for (uint256 i = 0; i < escrows.length; ++i) {
            uint40 limit = escrows[i].terms().reviewDeadline + 14 days + 3 days;
            if (limit > end) end = limit;
            if (escrows[i].status() == Status.Disputed) {
                uint40 tallyAt = _closesAt(escrows[i]) + 24 hours;
                if (tallyAt + 3 days > end) end = tallyAt + 3 days;
            }
        }
        vm.warp(end);
        for (uint256 i = 0; i < escrows.length; ++i) {
            if (escrows[i].status() == Status.Disputed) escrows[i].tally();
        }
        vm.warp(end + 3 days);
        for (uint256 i = 0; i < escrows.length; ++i) {
            _collect(escrows[i], makeAddr("anyone"), false);
        }
        for (uint256 i = directTransfers.length; i > 0; --i) {
            if (!usd.isBlacklisted(directTransfers[i - 1].payer)) _refundDirectTransfer(i - 1, makeAddr("anyone"));
        }
    }

    /// The service is gone from here on: parties and voters act for themselves, each voter opens its vote if that is
    /// still possible, and no one stays blacklisted. Returns the amounts due and received.
    function exitAlone() external returns (uint256 due, uint256 got) {
        vm.prank(owner);
        relay.setSigner(signer, false);
        _liftBlacklist();
        for (uint256 i = 0; i < escrows.length; ++i) {
            due += usd.balanceOf(address(escrows[i]));
        }
        got = _heldByPeople();
        for (WorkingContractEscrow next = _nextToClose(); address(next) != address(0); next = _nextToClose()) {
            _finishDisputeAlone(next);
        }
        uint40 end = _now();
        for (uint256 i = 0; i < escrows.length; ++i) {
            uint40 limit = escrows[i].terms().reviewDeadline + 14 days;
            if (limit > end) end = limit;
        }
        vm.warp(end + 3 days);
        for (uint256 i = 0; i < escrows.length; ++i) {
            _collect(escrows[i], escrows[i].terms().initiator, true);
        }
        for (uint256 i = directTransfers.length; i > 0; --i) {
            _refundDirectTransfer(i - 1, directTransfers[i - 1].payer);
        }
        got = _heldByPeople() - got;
    }

    /// @dev Settles the escrow, and claims all that it owes to voters and to payees that the token pays.
    function _collect(WorkingContractEscrow escrow, address settler, bool claimsThemselves) private {
        if (!settled[escrow]) {
            vm.prank(settler);
            escrow.settle();
            settled[escrow] = true;
        }
        for (uint256 i = 0; i < agents.length; ++i) {
            _claim(escrow, agents[i], claimsThemselves ? agents[i] : settler);
        }
        for (uint256 i = 0; i < actors.length + treasuries.length; ++i) {
            address payee = i < actors.length ? actors[i] : treasuries[i - actors.length];
            if (escrow.deferred(payee) != 0 && !usd.isBlacklisted(payee)) escrow.claimDeferred(payee);
        }
    }

    /// @dev The open dispute whose window closes first: in that order no one misses the time to open.
    function _nextToClose() private view returns (WorkingContractEscrow next) {
        for (uint256 i = 0; i < escrows.length; ++i) {
            if (escrows[i].status() != Status.Disputed) continue;
            if (address(next) == address(0) || _closesAt(escrows[i]) < _closesAt(next)) next = escrows[i];
        }
    }

    function _finishDisputeAlone(WorkingContractEscrow escrow) private {
        if (!_votingClosed(escrow)) vm.warp(_closesAt(escrow));
        bool openable = _now() < _closesAt(escrow) + 24 hours;
        for (uint256 i = 0; i < agents.length; ++i) {
            if (!openable || escrow.ballotOf(agents[i]) < 1 << 27) continue;
            vm.prank(agents[i]);
            _openVote(escrow, agents[i], votesOf[escrow][agents[i]]);
        }
        address party = escrow.client();
        vm.prank(party);
        escrow.tally();
    }
}
