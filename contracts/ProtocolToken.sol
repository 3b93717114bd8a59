// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {EIP3009Token} from "./EIP3009Token.sol";
import {IProtocolToken} from "./interfaces/IProtocolToken.sol";
import {IWorkingContractFactory} from "./interfaces/IWorkingContractFactory.sol";

/// @notice See {IProtocolToken}. ERC-20 with EIP-3009 and EIP-2612. Until the owner opens transfers, tokens move only
/// by minting and to and from the Backup Agent registry. Only the registry's own calls can ever move tokens to it.
contract ProtocolToken is IProtocolToken, EIP3009Token, ERC20Permit, Ownable2Step {
    /// @notice Limits of the owner's power over the supply, in base units: total initial grants, and rewards per day.
    uint256 public constant MAX_GRANTS = 1_000_000e18;
    uint256 public constant MAX_DAILY_CAP = 1_000_000e18;

    IWorkingContractFactory public immutable FACTORY;
    address public immutable REGISTRY;

    bool public transfersOpen;

    /// @notice Granted so far, in base units.
    uint256 public granted;

    /// @notice Maximum that escrows can mint per UTC day, in base units.
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

    /// @notice Grants initial tokens so that the first Backup Agents can stake. Not possible once transfers are open.
    function grant(address to, uint256 amount) external onlyOwner {
        granted += amount;
        require(!transfersOpen && granted <= MAX_GRANTS, GrantsExhausted(granted, MAX_GRANTS));
        _mint(to, amount);
    }

    /// @notice Lets everyone transfer, permanently.
    function openTransfers() external onlyOwner {
        transfersOpen = true;
        emit TransfersOpened();
    }

    /// @notice Sets the daily cap on minted rewards, in base units.
    function setDailyCap(uint128 cap) external onlyOwner {
        _setDailyCap(cap);
    }

    function _setDailyCap(uint128 cap) private {
        require(cap <= MAX_DAILY_CAP, DailyCapTooHigh(cap, MAX_DAILY_CAP));
        dailyCap = cap;
        emit DailyCapChanged(cap);
    }

    function _update(address from, address to, uint256 value) internal override {
        // Only the registry's own calls move tokens to it: a stake authorization broadcast by anyone else would arrive
        // without being booked.
        require(
            to == REGISTRY ? msg.sender == REGISTRY : transfersOpen || from == address(0) || from == REGISTRY,
            TransfersClosed(from, to)
        );
        super._update(from, to, value);
    }
}
