// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Actions that an agent signs one by one (EIP-712), so that whoever carries them out needs no delegation.
interface IAgentSignatures {
    /// @notice The call that follows in this transaction was allowed by the agent's own signature.
    event ActionSigned(address indexed agent);

    error InvalidActionSignature(address agent);
    error InvalidActionDeadline(uint40 deadline);

    /// @notice Carries out an action in the name of `agent`, given as calldata and signed by it. Anyone can call.
    ///
    /// Requirements:
    /// - `signature` is the agent's over {actionDigest}, or valid by ERC-1271.
    /// - `deadline` has not passed, and is at most one day ahead.
    /// - The requirements of the action.
    function withSignature(address agent, uint40 deadline, bytes calldata signature, bytes calldata call) external;

    /// @notice Ends all signatures of the caller for this contract that were not used yet.
    function cancelSignatures() external;

    /// @notice Part of everything that `agent` signs for this contract; raised by {cancelSignatures}.
    function signatureNonce(address agent) external view returns (uint256);

    /// @notice The hash that `agent` signs: typed data whose domain names this contract and the chain.
    function actionDigest(address agent, uint40 deadline, bytes calldata call) external view returns (bytes32);
}
