// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Authorization} from "../types/Types.sol";
import {IAgentSignatures} from "./IAgentSignatures.sol";
import {IEIP3009} from "./IEIP3009.sol";
import {IWorkingContractFactory} from "./IWorkingContractFactory.sol";

/// @notice Eligibility stakes of Backup Agents, in protocol tokens, and the pool that panels are drawn from.
interface IBackupAgentRegistry is IAgentSignatures {
    struct Stake {
        uint96 amount;
        /// When the stake last grew; the agent can vote only on contracts matched later.
        uint40 since;
        uint40 lockedUntil;
        /// Zero while not unbonding.
        uint40 releasableAt;
        /// The agent's pool slot plus one; zero if the agent is not in the pool.
        uint40 poolSlot;
    }

    event Staked(address indexed agent, uint256 amount, uint256 total);
    event UnstakeRequested(address indexed agent, uint256 amount, uint40 releasableAt);
    event Unstaked(address indexed agent, uint256 amount);

    error NotStaked(address agent);
    error Unbonding(address agent, uint40 releasableAt);
    error NotReleasable(address agent, uint40 releasableAt);
    error NotEligible(address agent, uint256 staked, uint256 required);
    error NotEscrow(address caller);
    error NotAgentOrOperator(address caller, address agent);

    /// @notice Stakes `amount` tokens of `agent`.
    ///
    /// Pays by the agent's signed authorization, or from its allowance if the agent itself calls with an empty
    /// signature. Adding to a stake makes the agent eligible only for contracts that are matched later. The agent joins
    /// the pool that panels are drawn from if its stake then reaches the factory's eligibility stake of that moment. If
    /// that is lowered later, the agent joins only when it stakes more: until then it is eligible but never drawn.
    ///
    /// Requirements:
    /// - The caller is the agent or the operator's Relay.
    /// - The agent is not unbonding.
    /// - The amount is not zero.
    /// - With an empty signature, the caller is the agent.
    function stake(address agent, uint256 amount, Authorization calldata authorization) external;

    /// @notice Starts unbonding the whole stake. The agent leaves the pool at once; until the stake is paid out it can
    /// vote on contracts that were matched before.
    ///
    /// Requirements:
    /// - The caller is the agent, or an account to which it delegated this ({IAgentDelegation}), or the agent signed
    /// the call ({withSignature}).
    /// - The agent has a stake that is not yet unbonding.
    function requestUnstake(address agent) external;

    /// @notice Refunds the whole stake to `agent`. Anyone can call. An agent that has not voted can then no longer
    /// vote, even if it was drawn.
    ///
    /// Requirements:
    /// - The agent requested it at least 48 hours ago.
    /// - 24 hours have passed since the end of each voting window in which it voted, even if the tally came earlier.
    function withdrawStake(address agent) external;

    /// @notice Checks that `agent` is eligible to vote and locks its stake until `until`.
    ///
    /// Requirements:
    /// - The caller is a genuine escrow.
    /// - The agent is eligible: see {isEligible}.
    function lockForVote(address agent, uint256 required, uint40 before, uint40 until) external;

    /// @notice Whether `agent` has a stake of at least `required` tokens that last grew before `before`, and did not
    /// start unbonding before then.
    function isEligible(address agent, uint256 required, uint40 before) external view returns (bool);

    /// @notice Number of agents in the pool just before the time `before`.
    function poolSize(uint40 before) external view returns (uint256);

    /// @notice The agent in slot `slot` of that pool; slots count from zero.
    function poolAt(uint256 slot, uint40 before) external view returns (address);

    /// @notice The members of `agent`'s {Stake}.
    function stakes(address agent)
        external
        view
        returns (uint96 amount, uint40 since, uint40 lockedUntil, uint40 releasableAt, uint40 poolSlot);

    /// @notice Minimum seconds between {requestUnstake} and {withdrawStake}.
    function UNBONDING_PERIOD() external view returns (uint40);
    /// @notice The protocol token.
    function TOKEN() external view returns (IEIP3009);
    /// @notice The factory whose escrows lock stakes.
    function FACTORY() external view returns (IWorkingContractFactory);
    /// @notice The operator's Relay.
    function OPERATOR() external view returns (address);
}
