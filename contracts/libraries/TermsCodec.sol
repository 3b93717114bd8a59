// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Parameters, Terms} from "../types/Types.sol";

/// @notice {Terms} as the immutable bytes that follow an escrow's proxy code: 109 bytes, and 20 more if a counterparty
/// is named. Packed, because each byte of code costs 200 gas at deployment; read field by field, because a call needs
/// only some fields.
///
/// Readers expect terms with {hasKnownForm}, which the factory guarantees for every escrow.
library TermsCodec {
    uint256 private constant LENGTH_WITHOUT_COUNTERPARTY = 109;
    uint256 internal constant MAX_LENGTH = 129;

    uint8 private constant WORKER_INITIATED = 1;
    uint8 private constant COMPUTED_CRITERIA = 2;

    function pack(Terms memory terms) internal pure returns (bytes memory) {
        uint8 flags = (terms.workerInitiated ? WORKER_INITIATED : 0) | (terms.computedCriteria ? COMPUTED_CRITERIA : 0);
        return abi.encodePacked(
            abi.encodePacked(terms.initiator, terms.price, terms.criteriaCount, flags),
            abi.encodePacked(
                terms.matchDeadline, terms.withdrawalDeadline, terms.deliveryDeadline, terms.reviewDeadline
            ),
            terms.termsHash,
            packParameters(terms.parameters),
            terms.counterparty == address(0) ? bytes("") : abi.encodePacked(terms.counterparty)
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
        terms.initiator = initiator(packed);
        terms.price = uint80(price(packed));
        terms.counterparty = counterparty(packed);
        terms.criteriaCount = uint8(criteriaCount(packed));
        terms.workerInitiated = workerInitiated(packed);
        terms.computedCriteria = computedCriteria(packed);
        terms.matchDeadline = matchDeadline(packed);
        terms.withdrawalDeadline = withdrawalDeadline(packed);
        terms.deliveryDeadline = deliveryDeadline(packed);
        terms.reviewDeadline = reviewDeadline(packed);
        terms.termsHash = bytes32(_word(packed, 48));
        terms.parameters = parameters(packed);
    }

    /// @notice Whether {pack} can write these bytes. Ensures that equal terms have only one packed form.
    function hasKnownForm(bytes memory packed) internal pure returns (bool) {
        bool named = packed.length == MAX_LENGTH && counterparty(packed) != address(0);
        return (named || packed.length == LENGTH_WITHOUT_COUNTERPARTY)
            && uint8(_word(packed, 0)) <= WORKER_INITIATED | COMPUTED_CRITERIA;
    }

    function packedParameters(bytes memory packed) internal pure returns (bytes29) {
        return bytes29(uint232(_word(packed, 77)));
    }

    function parameters(bytes memory packed) internal pure returns (Parameters memory) {
        return Parameters({
            protocolFee: protocolFee(packed),
            workerStakeRatio: workerStakeRatio(packed),
            disputeBondRatio: disputeBondRatio(packed),
            backupAgentBondRatio: backupAgentBondRatio(packed),
            earlyWithdrawalSlashRatio: earlyWithdrawalSlashRatio(packed),
            absentNoneMetClientShare: absentNoneMetClientShare(packed),
            baUnclearSlashRatio: baUnclearSlashRatio(packed),
            tokenMintRewardFull: tokenMintRewardFull(packed),
            tokenMintRewardReduced: tokenMintRewardReduced(packed),
            baEligibilityStake: baEligibilityStake(packed),
            baVotingWindow: baVotingWindow(packed),
            baRecruitCount: baRecruitCount(packed),
            payoutHold: payoutHold(packed)
        });
    }

    function initiator(bytes memory packed) internal pure returns (address) {
        return address(uint160(_word(packed, 0) >> 96));
    }

    function price(bytes memory packed) internal pure returns (uint256) {
        return uint80(_word(packed, 0) >> 16);
    }

    function counterparty(bytes memory packed) internal pure returns (address) {
        if (packed.length != MAX_LENGTH) return address(0);
        return address(uint160(_word(packed, 109) >> 96));
    }

    function criteriaCount(bytes memory packed) internal pure returns (uint256) {
        return uint8(_word(packed, 0) >> 8);
    }

    function workerInitiated(bytes memory packed) internal pure returns (bool) {
        return uint8(_word(packed, 0)) & WORKER_INITIATED != 0;
    }

    function computedCriteria(bytes memory packed) internal pure returns (bool) {
        return uint8(_word(packed, 0)) & COMPUTED_CRITERIA != 0;
    }

    function matchDeadline(bytes memory packed) internal pure returns (uint32) {
        return uint32(_word(packed, 32) >> 224);
    }

    function withdrawalDeadline(bytes memory packed) internal pure returns (uint32) {
        return uint32(_word(packed, 32) >> 192);
    }

    function deliveryDeadline(bytes memory packed) internal pure returns (uint32) {
        return uint32(_word(packed, 32) >> 160);
    }

    function reviewDeadline(bytes memory packed) internal pure returns (uint32) {
        return uint32(_word(packed, 32) >> 128);
    }

    function protocolFee(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 216);
    }

    function workerStakeRatio(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 200);
    }

    function disputeBondRatio(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 184);
    }

    function backupAgentBondRatio(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 168);
    }

    function earlyWithdrawalSlashRatio(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 152);
    }

    function absentNoneMetClientShare(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 136);
    }

    function baUnclearSlashRatio(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 120);
    }

    function tokenMintRewardFull(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 104);
    }

    function tokenMintRewardReduced(bytes memory packed) internal pure returns (uint16) {
        return uint16(_word(packed, 77) >> 88);
    }

    function baEligibilityStake(bytes memory packed) internal pure returns (uint32) {
        return uint32(_word(packed, 77) >> 56);
    }

    function baVotingWindow(bytes memory packed) internal pure returns (uint24) {
        return uint24(_word(packed, 77) >> 32);
    }

    function baRecruitCount(bytes memory packed) internal pure returns (uint8) {
        return uint8(_word(packed, 77) >> 24);
    }

    function payoutHold(bytes memory packed) internal pure returns (uint24) {
        return uint24(_word(packed, 77));
    }

    /// @dev The 32 bytes at `offset`. Callers pass constant offsets and use no bit beyond the terms' length.
    function _word(bytes memory packed, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := mload(add(add(packed, 32), offset))
        }
    }
}
