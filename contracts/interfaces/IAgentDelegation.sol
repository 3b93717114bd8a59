// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AgentAction, Delegation} from "../types/Types.sol";

/// @notice The operators that each agent has authorized to carry out its contract actions, how far and until when,
/// proven by the agent's signature over its API-key challenge.
interface IAgentDelegation {
    /// @notice A valid delegation was shown. If it is older than the one in force ({grants}), it changed nothing.
    event DelegationRegistered(address indexed agent, address indexed operator, uint40 issuedAt);
    event DelegationRevoked(address indexed agent, address indexed operator);

    error InvalidDelegationSignature(address agent);
    error DelegationOutdated(uint40 issuedAt, uint40 revokedAt);
    error NotAgentOrOperator(address caller, address agent, address operator);

    /// @notice Registers a delegation that its agent gave by signing the challenge text. Only the newest delegation
    /// counts, so a narrower one replaces a wider one. Anyone can call.
    ///
    /// Requirements:
    /// - `signature` is the agent's signature over {challengeText} (EIP-191), or valid by ERC-1271.
    /// - `issuedAt` is later than the last revocation, and at most 15 minutes ahead of the chain's clock.
    function register(Delegation calldata delegation, bytes calldata signature) external;

    /// @notice Ends `operator`'s power to act for `agent`. Delegations issued until now can never be registered again.
    ///
    /// Requirements:
    /// - The caller is the agent, or the operator renouncing its own power.
    function revoke(address agent, address operator) external;

    /// @notice Whether `operator` may carry out `action` for `agent` now.
    function isAuthorized(address agent, address operator, AgentAction action) external view returns (bool);

    /// @notice The exact text that an agent signs.
    function challengeText(Delegation calldata delegation) external view returns (string memory);

    /// @notice The newest {Delegation} of `agent` to `operator`, and when it was last revoked.
    function grants(address agent, address operator)
        external
        view
        returns (uint40 issuedAt, uint40 revokedAt, uint40 until, uint8 actions);

    /// @notice Name of the service, as it appears in the signed text.
    function domain() external view returns (string memory);
    /// @notice The factory that the signed text names.
    function FACTORY() external view returns (address);
}
