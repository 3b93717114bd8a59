// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Parameters, Terms} from "../types/Types.sol";

/// @notice Packs {Terms} into the 135 immutable bytes behind an escrow's proxy code, and reads them back.
/// Packed, because each byte of code costs 200 gas at deployment.
library TermsCodec {
    uint256 internal constant PACKED_LENGTH = 135;

    uint8 private constant WORKER_INITIATED = 1;
    uint8 private constant COMPUTED_CRITERIA = 2;

    function pack(Terms memory terms) internal pure returns (bytes memory) {
        uint8 flags = (terms.workerInitiated ? WORKER_INITIATED : 0) | (terms.computedCriteria ? COMPUTED_CRITERIA : 0);
        return abi.encodePacked(
            abi.encodePacked(terms.initiator, terms.price, terms.counterparty, terms.criteriaCount, flags),
            abi.encodePacked(
                terms.matchDeadline, terms.withdrawalDeadline, terms.deliveryDeadline, terms.reviewDeadline
            ),
            terms.termsHash,
            packParameters(terms.parameters)
        );
    }

    function packParameters(Parameters memory p) internal pure returns (bytes29) {
        uint256 word = p.protocolFee;
        word = (word << 16) | p.workerStakeRatio;
        word = (word << 16) | p.disputeBondRatio;
        word = (word << 16) | p.backupAgentBondRatio;
        word = (word << 16) | p.earlyWithdrawalSlashRatio;
        word = (word << 16) | p.absentNoneMetClientShare;
        word = (word << 16) | p.baUnclearSlashRatio;
        word = (word << 16) | p.tokenMintRewardFull;
        word = (word << 16) | p.tokenMintRewardReduced;
        word = (word << 32) | p.baEligibilityStake;
        word = (word << 24) | p.baVotingWindow;
        word = (word << 8) | p.baRecruitCount;
        word = (word << 24) | p.payoutHold;
        return bytes29(uint232(word));
    }

    function unpack(bytes memory packed) internal pure returns (Terms memory terms) {
        uint256 first = _word(packed, 0);
        uint256 second = _word(packed, 32);
        uint256 deadlines = _word(packed, 54);
        uint256 flags = uint8(second >> 80);

        terms.initiator = address(uint160(first >> 96));
        terms.price = uint96(first);
        terms.counterparty = address(uint160(second >> 96));
        terms.criteriaCount = uint8(second >> 88);
        terms.workerInitiated = flags & WORKER_INITIATED != 0;
        terms.computedCriteria = flags & COMPUTED_CRITERIA != 0;
        terms.matchDeadline = uint40(deadlines >> 216);
        terms.withdrawalDeadline = uint40(deadlines >> 176);
        terms.deliveryDeadline = uint40(deadlines >> 136);
        terms.reviewDeadline = uint40(deadlines >> 96);
        terms.termsHash = bytes32(_word(packed, 74));
        terms.parameters = _unpackParameters(_word(packed, 103));
    }

    function _unpackParameters(uint256 word) private pure returns (Parameters memory p) {
        p.payoutHold = uint24(word);
        p.baRecruitCount = uint8(word >> 24);
        p.baVotingWindow = uint24(word >> 32);
        p.baEligibilityStake = uint32(word >> 56);
        p.tokenMintRewardReduced = uint16(word >> 88);
        p.tokenMintRewardFull = uint16(word >> 104);
        p.baUnclearSlashRatio = uint16(word >> 120);
        p.absentNoneMetClientShare = uint16(word >> 136);
        p.earlyWithdrawalSlashRatio = uint16(word >> 152);
        p.backupAgentBondRatio = uint16(word >> 168);
        p.disputeBondRatio = uint16(word >> 184);
        p.workerStakeRatio = uint16(word >> 200);
        p.protocolFee = uint16(word >> 216);
    }

    /// @dev The 32 bytes at `offset`. Callers pass constant offsets below PACKED_LENGTH - 31.
    function _word(bytes memory packed, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := mload(add(add(packed, 32), offset))
        }
    }
}
