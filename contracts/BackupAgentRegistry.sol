// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {Checkpoints} from "@openzeppelin/contracts/utils/structs/Checkpoints.sol";
import {AgentSignatures} from "./AgentSignatures.sol";
import {IAgentDelegation} from "./interfaces/IAgentDelegation.sol";
import {IBackupAgentRegistry} from "./interfaces/IBackupAgentRegistry.sol";
import {IEIP3009} from "./interfaces/IEIP3009.sol";
import {IWorkingContractFactory} from "./interfaces/IWorkingContractFactory.sol";
import {AgentAction, Authorization} from "./types/Types.sol";

/// @notice See {IBackupAgentRegistry}.
contract BackupAgentRegistry is IBackupAgentRegistry, AgentSignatures, ReentrancyGuardTransient {
    using Checkpoints for Checkpoints.Trace160;
    using SafeERC20 for IERC20;

    /// @inheritdoc IBackupAgentRegistry
    uint40 public constant UNBONDING_PERIOD = 48 hours;
    uint256 private constant TOKEN_UNIT = 1e18;

    /// @inheritdoc IBackupAgentRegistry
    IEIP3009 public immutable TOKEN;
    /// @inheritdoc IBackupAgentRegistry
    IWorkingContractFactory public immutable FACTORY;
    /// @inheritdoc IBackupAgentRegistry
    address public immutable OPERATOR;

    /// @inheritdoc IBackupAgentRegistry
    mapping(address agent => Stake) public stakes;

    /// @dev Which agent holds each pool slot, and how many slots are in use, over time. A draw uses the pool as it was
    /// before the parties were matched, so no one can pack it afterwards.
    mapping(uint256 slot => Checkpoints.Trace160) private _pool;
    Checkpoints.Trace160 private _poolSize;

    constructor(IEIP3009 token, IWorkingContractFactory factory, address operator) {
        TOKEN = token;
        FACTORY = factory;
        OPERATOR = operator;
    }

    /// @inheritdoc IBackupAgentRegistry
    function stake(address agent, uint256 amount, Authorization calldata authorization) external nonReentrant {
        Stake memory s = stakes[agent];
        require(msg.sender == agent || msg.sender == OPERATOR, NotAgentOrOperator(msg.sender, agent));
        require(s.releasableAt == 0, Unbonding(agent, s.releasableAt));
        require(amount != 0, NotStaked(agent));

        s.amount += uint96(amount);
        s.since = uint40(block.timestamp);
        // Stakes too small to vote with would crowd everyone else out of the draws. The factory's minimum keeps them
        // from costing almost nothing.
        bool joins = s.poolSlot == 0 && s.amount >= FACTORY.parameters().baEligibilityStake * TOKEN_UNIT;
        if (joins) s.poolSlot = _joinPool(agent);
        stakes[agent] = s;

        emit Staked(agent, amount, s.amount);

        if (authorization.signature.length == 0) {
            require(msg.sender == agent, NotAgentOrOperator(msg.sender, agent));
            IERC20(address(TOKEN)).safeTransferFrom(agent, address(this), amount);
        } else {
            TOKEN.transferWithAuthorization(
                agent,
                address(this),
                amount,
                authorization.validAfter,
                authorization.validBefore,
                authorization.nonce,
                authorization.signature
            );
        }
    }

    /// @inheritdoc IBackupAgentRegistry
    function requestUnstake(address agent) external {
        Stake memory s = stakes[agent];
        require(
            _hasSigned(agent) || msg.sender == agent
                || IAgentDelegation(OPERATOR).isAuthorized(agent, msg.sender, AgentAction.Unstake),
            NotAgentOrOperator(msg.sender, agent)
        );
        require(s.amount != 0, NotStaked(agent));
        require(s.releasableAt == 0, Unbonding(agent, s.releasableAt));

        if (s.poolSlot != 0) _leavePool(s.poolSlot - 1);
        s.releasableAt = uint40(block.timestamp) + UNBONDING_PERIOD;
        s.poolSlot = 0;
        stakes[agent] = s;

        emit UnstakeRequested(agent, s.amount, s.releasableAt);
    }

    /// @inheritdoc IBackupAgentRegistry
    function withdrawStake(address agent) external nonReentrant {
        Stake memory s = stakes[agent];
        require(s.releasableAt != 0, NotStaked(agent));
        uint40 releasableAt = s.lockedUntil > s.releasableAt ? s.lockedUntil : s.releasableAt;
        require(block.timestamp >= releasableAt, NotReleasable(agent, releasableAt));

        delete stakes[agent];

        emit Unstaked(agent, s.amount);

        IERC20(address(TOKEN)).safeTransfer(agent, s.amount);
    }

    /// @inheritdoc IBackupAgentRegistry
    function lockForVote(address agent, uint256 required, uint40 before, uint40 until) external {
        require(FACTORY.isEscrow(msg.sender), NotEscrow(msg.sender));
        require(isEligible(agent, required, before), NotEligible(agent, stakes[agent].amount, required));

        if (until > stakes[agent].lockedUntil) stakes[agent].lockedUntil = until;
    }

    /// @inheritdoc IBackupAgentRegistry
    function isEligible(address agent, uint256 required, uint40 before) public view returns (bool) {
        Stake memory s = stakes[agent];
        // Whoever can unstake in an agent's name must not empty the pool of a contract that is already matched.
        bool stayed = s.releasableAt == 0 || before <= s.releasableAt - UNBONDING_PERIOD;
        return s.amount >= required && s.amount != 0 && s.since < before && stayed;
    }

    /// @inheritdoc IBackupAgentRegistry
    function poolSize(uint40 before) external view returns (uint256) {
        return _poolSize.upperLookup(before - 1);
    }

    /// @inheritdoc IBackupAgentRegistry
    function poolAt(uint256 slot, uint40 before) external view returns (address) {
        return address(_pool[slot].upperLookup(before - 1));
    }

    function _joinPool(address agent) private returns (uint40 poolSlot) {
        uint160 size = _poolSize.latest();
        _pool[size].push(uint96(block.timestamp), uint160(agent));
        _poolSize.push(uint96(block.timestamp), size + 1);
        return uint40(size) + 1;
    }

    /// @dev Moves the last agent of the pool into the freed slot.
    function _leavePool(uint256 slot) private {
        uint160 last = _poolSize.latest() - 1;
        if (slot != last) {
            uint160 moved = _pool[last].latest();
            _pool[slot].push(uint96(block.timestamp), moved);
            stakes[address(moved)].poolSlot = uint40(slot) + 1;
        }
        _poolSize.push(uint96(block.timestamp), last);
    }
}
