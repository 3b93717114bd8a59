// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {EIP3009Token} from "./EIP3009Token.sol";
import {IProtocolToken} from "./interfaces/IProtocolToken.sol";
import {IWorkingContractFactory} from "./interfaces/IWorkingContractFactory.sol";

/// @notice See {IProtocolToken}. ERC-20 with EIP-3009 and EIP-2612. Until the owner opens transfers, tokens only move
/// by minting and to and from the Backup Agent registry; to the registry they only ever move by its own call.
contract ProtocolToken is IProtocolToken, EIP3009Token, ERC20Permit, Ownable2Step {
    /// @notice Bounds of what the owner can do to the supply, in base units: initial grants in all, rewards a day.
    uint256 public constant MAX_GRANTS = 1_000_000e18;
    uint256 public constant MAX_DAILY_CAP = 1_000_000e18;

    IWorkingContractFactory public immutable FACTORY;
    address public immutable REGISTRY;

    bool public transfersOpen;

    /// @notice Granted so far, in base units.
    uint256 public granted;

    /// @notice Most that escrows may mint in one UTC day, in base units.
    uint128 public dailyCap;
    uint40 private _mintDay;
    uint88 private _mintedToday;

    constructor(address owner_, IWorkingContractFactory factory, address registry, uint128 dailyCap_)
        ERC20("Working Contract Token", "WCT")
        ERC20Permit("Working Contract Token")
        Ownable(owner_)
    {
        FACTORY = factory;
        REGISTRY = registry;
        _setDailyCap(dailyCap_);
    }

    /// @inheritdoc IProtocolToken
    function mintReward(address backupAgent, uint256 amount) external {
        require(FACTORY.isEscrow(msg.sender), NotEscrow(msg.sender));

        uint40 today = uint40(block.timestamp / 1 days);
        uint256 minted = (today == _mintDay ? _mintedToday : 0) + amount;
        require(minted <= dailyCap && minted <= type(uint88).max, DailyCapReached(minted - amount, amount, dailyCap));
        (_mintDay, _mintedToday) = (today, uint88(minted));

        _mint(backupAgent, amount);
    }

    /// @notice Grants initial tokens, so that first Backup Agents can stake; ends once transfers are open.
    function grant(address to, uint256 amount) external onlyOwner {
        granted += amount;
        require(!transfersOpen && granted <= MAX_GRANTS, GrantsExhausted(granted, MAX_GRANTS));
        _mint(to, amount);
    }

    /// @notice Lets everybody transfer, for good.
    function openTransfers() external onlyOwner {
        transfersOpen = true;
        emit TransfersOpened();
    }

    /// @notice Sets the daily cap of minted rewards, in base units.
    function setDailyCap(uint128 cap) external onlyOwner {
        _setDailyCap(cap);
    }

    function _setDailyCap(uint128 cap) private {
        require(cap <= MAX_DAILY_CAP, DailyCapTooHigh(cap, MAX_DAILY_CAP));
        dailyCap = cap;
        emit DailyCapChanged(cap);
    }

    function _update(address from, address to, uint256 value) internal override {
        // Tokens reach the registry by its own call alone: a stake authorization that somebody else broadcasts would
        // land there without being booked.
        require(
            to == REGISTRY ? msg.sender == REGISTRY : transfersOpen || from == address(0) || from == REGISTRY,
            TransfersClosed(from, to)
        );
        super._update(from, to, value);
    }
}
