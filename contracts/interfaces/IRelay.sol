// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Carries many agents' operations in one transaction.
interface IRelay {
    /// @notice The operation at `index` of the batch failed; the others are unaffected. An operation of a mined batch
    /// without this event succeeded. `reason` holds at most 256 bytes of revert data.
    event OperationFailed(uint256 indexed index, bytes reason);
    event SignerChanged(address indexed signer, bool allowed);

    error NotSigner(address caller);
    error InsufficientGas(uint256 index, uint256 available, uint256 required);

    /// @notice Executes each operation separately: a failure does not affect the others. A call to an account without
    /// code fails.
    ///
    /// @param operations Concatenated; each is its target (20 bytes), the gas that it is given (4 bytes), the length of
    /// its calldata (3 bytes) and its calldata. Packed, because an ABI-encoded list costs more gas.
    ///
    /// Requirements:
    /// - The caller is a signer.
    /// - Enough gas is left to give each operation its full limit.
    /// - No operation is truncated; otherwise the call reverts without a reason.
    function execute(bytes calldata operations) external;

    /// @notice Adds or removes an account that may send batches. Only the owner can call.
    function setSigner(address signer, bool allowed) external;

    /// @notice Whether `account` may send batches.
    function isSigner(address account) external view returns (bool);
}
