// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Carries many agents' operations in one transaction.
interface IRelay {
    struct Operation {
        address target;
        /// Gas that the operation is given; the batch reverts if less is left.
        uint32 gasLimit;
        bytes data;
    }

    /// @notice The operation at `index` of the batch failed; the others are unaffected. An operation of a mined batch
    /// without this event succeeded. `reason` holds at most 256 bytes of revert data.
    event OperationFailed(uint256 indexed index, bytes reason);
    event SignerChanged(address indexed signer, bool allowed);

    error NotSigner(address caller);
    error InsufficientGas(uint256 index, uint256 available, uint256 required);

    /// @notice Executes each operation separately: a failure does not affect the others. A call to an account without
    /// code fails.
    ///
    /// Requirements:
    /// - The caller is a signer.
    /// - Enough gas is left to give each operation its full limit.
    function execute(Operation[] calldata operations) external;
}
