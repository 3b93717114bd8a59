// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Carries many agents' operations in one transaction.
interface IRelay {
    struct Operation {
        address target;
        /// Gas that the operation is given; the batch reverts when less is left.
        uint32 gasLimit;
        bytes data;
    }

    /// @notice Result of the operation at `index`; `result` holds at most 256 bytes of revert data.
    event OperationExecuted(uint256 indexed index, bool success, bytes result);
    event SignerChanged(address indexed signer, bool allowed);

    error NotSigner(address caller);
    error InsufficientGas(uint256 index, uint256 available, uint256 required);

    /// @notice Executes each operation alone: one that fails does not touch the others.
    ///
    /// Requirements:
    /// - The caller is a signer.
    /// - There is enough gas to give each operation its full limit.
    function execute(Operation[] calldata operations) external;
}
