// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization} from "../types/Types.sol";

/// @notice Eligibility stakes of Backup Agents, in protocol tokens, and the pool that juries are drawn from.
interface IBackupAgentRegistry {
    event Staked(address indexed agent, uint256 amount, uint256 total);
    event UnstakeRequested(address indexed agent, uint256 amount, uint40 releasableAt);
    event Unstaked(address indexed agent, uint256 amount);

    error NotStaked(address agent);
    error Unbonding(address agent, uint40 releasableAt);
    error NotReleasable(address agent, uint40 releasableAt);
    error NotEligible(address agent, uint256 staked, uint256 required);
    error NotEscrow(address caller);
    error NotAgentOrOperator(address caller, address agent);

    /// @notice Stakes `amount` tokens of `agent`, by its signed authorization, or from its allowance when it calls
    /// itself with an empty signature. A further stake restarts the time from which the agent is eligible for new
    /// disputes.
    /// Juries are drawn from agents whose stake reached the eligibility stake of the day they staked.
    ///
    /// Requirements:
    /// - The caller is the agent or the operator's Relay.
    /// - The agent is not unbonding.
    function stake(address agent, uint256 amount, Authorization calldata authorization) external;

    /// @notice Starts unbonding the whole stake; the agent is not eligible any more from now on.
    ///
    /// Requirements:
    /// - The caller is the agent, or the Relay it delegated to.
    /// - The agent has a stake that is not unbonding yet.
    function requestUnstake(address agent) external;

    /// @notice Pays the stake back to `agent`, 48 hours after the request and not while a vote of it is open. Anybody
    /// may call.
    function withdrawStake(address agent) external;

    /// @notice Checks that `agent` may vote and keeps its stake in place until `until`.
    ///
    /// Requirements:
    /// - The caller is a genuine escrow.
    /// - The agent has had at least `required` tokens staked since before `before`.
    function lockForVote(address agent, uint256 required, uint40 before, uint40 until) external;

    function isEligible(address agent, uint256 required, uint40 before) external view returns (bool);

    /// @notice How many agents a jury could be drawn from just before the time `before`.
    function poolSize(uint40 before) external view returns (uint256);

    /// @notice Who sat in a slot of that pool; slots count from zero.
    function poolAt(uint256 slot, uint40 before) external view returns (address);
}
