// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Settlement} from "../../../contracts/libraries/Settlement.sol";
import {TermsCodec} from "../../../contracts/libraries/TermsCodec.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {Parameters, Status, Terms} from "../../../contracts/types/Types.sol";

/// @notice Exposes the internal libraries, and many escrows in one call, to the differential test against TypeScript.
contract SettlementHarness {
    struct Observation {
        Status status;
        address client;
        address worker;
        uint256 booked;
        uint24 outcomes;
    }

    function released(uint256 price, Settlement.Tally calldata tally) external pure returns (uint256) {
        return Settlement.released(price, tally);
    }

    function resolve(
        uint256 price,
        uint256 stake,
        uint256 bond,
        Settlement.Tally calldata tally,
        Parameters calldata parameters
    ) external pure returns (Settlement.Payout memory) {
        return Settlement.resolve({
            price: price,
            stake: stake,
            bond: bond,
            tally: tally,
            protocolFee: parameters.protocolFee,
            absentNoneMetClientShare: parameters.absentNoneMetClientShare
        });
    }

    function absent(uint256 price, uint256 stake, Parameters calldata parameters)
        external
        pure
        returns (Settlement.Payout memory)
    {
        return Settlement.absent(price, stake, parameters.absentNoneMetClientShare);
    }

    function withdrawn(uint256 price, uint256 stake, Parameters calldata parameters)
        external
        pure
        returns (Settlement.Payout memory)
    {
        return Settlement.withdrawn(price, stake, parameters.earlyWithdrawalSlashRatio);
    }

    function majority(Settlement.CriterionVotes calldata votes) external pure returns (bool decisive, bool isMet) {
        return Settlement.majority(votes);
    }

    function pot(Settlement.CriterionVotes calldata votes, uint256 bond, uint256 unclearSlash)
        external
        pure
        returns (uint256 slashed, uint256 winners)
    {
        return Settlement.pot(votes, bond, unclearSlash);
    }

    function pack(Terms calldata terms) external pure returns (bytes memory) {
        return TermsCodec.pack(terms);
    }

    function unpack(bytes calldata packed) external pure returns (Terms memory) {
        return TermsCodec.unpack(packed);
    }

    /// @notice The escrows' views of their state, and the time of the reading.
    function observe(WorkingContractEscrow[] calldata escrows)
        external
        view
        returns (uint256 timestamp, Observation[] memory observations)
    {
        timestamp = block.timestamp;
        observations = new Observation[](escrows.length);
        for (uint256 i = 0; i < escrows.length; ++i) {
            WorkingContractEscrow escrow = escrows[i];
            uint24 outcomes;
            for (uint256 j = 0; j < 10; ++j) {
                outcomes |= uint24(uint256(escrow.outcomeOf(j))) << uint24(2 * j);
            }
            observations[i] = Observation({
                status: escrow.status(),
                client: escrow.client(),
                worker: escrow.worker(),
                booked: escrow.booked(),
                outcomes: outcomes
            });
        }
    }
}
