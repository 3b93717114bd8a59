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
    /// @inheritdoc IProtocolToken
    uint256 public constant MAX_GRANTS = 1_000_000e18;
    /// @inheritdoc IProtocolToken
    uint256 public constant MAX_WEEKLY_GRANTS = 50_000e18;
    uint256 private constant MIN_DAILY_CAP = 1000e18;
    uint256 private constant MAX_DAILY_CAP = 100_000e18;

    struct AnnouncedGrant {
        address to;
        uint40 mintableAt;
        uint256 amount;
    }

    struct AnnouncedCap {
        uint128 cap;
        uint40 applicableAt;
    }

    /// @inheritdoc IProtocolToken
    IWorkingContractFactory public immutable FACTORY;
    /// @inheritdoc IProtocolToken
    address public immutable REGISTRY;
    /// @inheritdoc IProtocolToken
    uint40 public immutable GRANT_DELAY;

    /// @inheritdoc IProtocolToken
    bool public transfersOpen;

    /// @inheritdoc IProtocolToken
    uint256 public granted;
    uint256 private _grantedThisWeek;
    uint40 private _grantWeek;

    /// @inheritdoc IProtocolToken
    mapping(uint256 id => AnnouncedGrant) public announcedGrants;
    /// @inheritdoc IProtocolToken
    uint256 public tokensAnnounced;
    uint256 private _lastGrant;

    /// @inheritdoc IProtocolToken
    uint128 public dailyCap;
    uint40 private _mintDay;
    /// @dev At most the highest daily cap, which fits.
    uint88 private _mintedToday;

    /// @inheritdoc IProtocolToken
    AnnouncedCap public announcedRaise;

    constructor(address owner_, IWorkingContractFactory factory, address registry, uint128 dailyCap_, uint40 grantDelay)
        ERC20("Working Contract Token", "WCT")
        ERC20Permit("Working Contract Token")
        Ownable(owner_)
    {
        FACTORY = factory;
        REGISTRY = registry;
        GRANT_DELAY = grantDelay;
        _requireWithinBounds(dailyCap_);
        _applyDailyCap(dailyCap_);
    }

    /// @inheritdoc IProtocolToken
    function mintReward(address backupAgent, uint256 amount) external {
        require(FACTORY.isEscrow(msg.sender), NotEscrow(msg.sender));

        uint40 today = uint40(block.timestamp / 1 days);
        uint256 minted = (today == _mintDay ? _mintedToday : 0) + amount;
        require(minted <= dailyCap, DailyCapReached(minted - amount, amount, dailyCap));
        (_mintDay, _mintedToday) = (today, uint88(minted));

        _mint(backupAgent, amount);
    }

    /// @inheritdoc IProtocolToken
    function grant(address to, uint256 amount) external onlyOwner {
        granted += amount;
        require(!transfersOpen && granted <= MAX_GRANTS, GrantsExhausted(granted, MAX_GRANTS));
        if (GRANT_DELAY == 0) return _mint(to, amount);

        uint40 week = uint40(block.timestamp / 1 weeks);
        _grantedThisWeek = (week == _grantWeek ? _grantedThisWeek : 0) + amount;
        _grantWeek = week;
        require(_grantedThisWeek <= MAX_WEEKLY_GRANTS, WeeklyGrantsExhausted(_grantedThisWeek, MAX_WEEKLY_GRANTS));
        uint40 mintableAt = uint40(block.timestamp) + GRANT_DELAY;
        tokensAnnounced += amount;
        announcedGrants[++_lastGrant] = AnnouncedGrant({to: to, mintableAt: mintableAt, amount: amount});

        emit GrantAnnounced(_lastGrant, to, amount, mintableAt);
    }

    /// @inheritdoc IProtocolToken
    function mintGrant(uint256 id) external {
        AnnouncedGrant memory announced = announcedGrants[id];
        require(
            announced.mintableAt != 0 && block.timestamp >= announced.mintableAt,
            GrantNotMintable(id, announced.mintableAt)
        );

        delete announcedGrants[id];
        tokensAnnounced -= announced.amount;

        _mint(announced.to, announced.amount);
    }

    /// @inheritdoc IProtocolToken
    function openTransfers() external onlyOwner {
        transfersOpen = true;
        emit TransfersOpened();
    }

    /// @inheritdoc IProtocolToken
    function setDailyCap(uint128 cap) external onlyOwner {
        _requireWithinBounds(cap);
        delete announcedRaise;
        if (cap <= dailyCap || GRANT_DELAY == 0) return _applyDailyCap(cap);

        uint40 applicableAt = uint40(block.timestamp) + GRANT_DELAY;
        announcedRaise = AnnouncedCap({cap: cap, applicableAt: applicableAt});

        emit DailyCapAnnounced(cap, applicableAt);
    }

    /// @inheritdoc IProtocolToken
    function applyRaise() external {
        AnnouncedCap memory announced = announcedRaise;
        require(
            announced.applicableAt != 0 && block.timestamp >= announced.applicableAt,
            RaiseNotApplicable(announced.applicableAt)
        );

        delete announcedRaise;
        _applyDailyCap(announced.cap);
    }

    function _requireWithinBounds(uint128 cap) private pure {
        require(cap >= MIN_DAILY_CAP && cap <= MAX_DAILY_CAP, DailyCapOutOfBounds(cap, MIN_DAILY_CAP, MAX_DAILY_CAP));
    }

    function _applyDailyCap(uint128 cap) private {
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
