// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IWorkingContractFactory} from "./IWorkingContractFactory.sol";

/// @notice The protocol's reward and stake token.
interface IProtocolToken {
    error NotEscrow(address caller);
    error DailyCapReached(uint256 mintedToday, uint256 amount, uint256 cap);
    error DailyCapOutOfBounds(uint256 cap, uint256 lowest, uint256 highest);
    error RaiseNotApplicable(uint40 applicableAt);
    error GrantsExhausted(uint256 granted, uint256 highest);
    error WeeklyGrantsExhausted(uint256 grantedThisWeek, uint256 highest);
    error GrantNotMintable(uint256 id, uint40 mintableAt);
    error TransfersClosed(address from, address to);

    event GrantAnnounced(uint256 indexed id, address indexed to, uint256 amount, uint40 mintableAt);
    event TransfersOpened();
    event DailyCapAnnounced(uint256 cap, uint40 applicableAt);
    event DailyCapChanged(uint256 cap);

    /// @notice Mints a Backup Agent's reward.
    ///
    /// Requirements:
    /// - The caller is a genuine escrow.
    /// - The daily cap is not exceeded.
    function mintReward(address backupAgent, uint256 amount) external;

    /// @notice Announces a grant of initial tokens, so that the first Backup Agents can stake.
    ///
    /// Requirements:
    /// - The caller is the owner.
    /// - Transfers are closed, and grants stay within {MAX_GRANTS} and {MAX_WEEKLY_GRANTS}.
    function grant(address to, uint256 amount) external;

    /// @notice Mints an announced grant. Anyone can call.
    ///
    /// Requirements:
    /// - The grant was announced at least the grant delay ago, and is not minted yet.
    function mintGrant(uint256 id) external;

    /// @notice Lets everyone transfer, permanently. Only the owner can call.
    function openTransfers() external;

    /// @notice Sets the daily cap on minted rewards, in base units. A lower one applies at once, a higher one is
    /// announced. Replaces the announced one.
    ///
    /// Requirements:
    /// - The caller is the owner.
    /// - The cap is 1,000 to 100,000 tokens.
    function setDailyCap(uint128 cap) external;

    /// @notice Applies the announced higher daily cap. Anyone can call.
    ///
    /// Requirements:
    /// - It was announced at least the grant delay ago, and not replaced since.
    function applyRaise() external;

    /// @notice Whether everyone can transfer.
    function transfersOpen() external view returns (bool);

    /// @notice Granted so far, in base units, including announced grants.
    function granted() external view returns (uint256);

    /// @notice Announced grants by id, from 1; empty once minted.
    function announcedGrants(uint256 id) external view returns (address to, uint40 mintableAt, uint256 amount);

    /// @notice Announced and not minted yet, in base units.
    function tokensAnnounced() external view returns (uint256);

    /// @notice Maximum that escrows can mint per UTC day, in base units.
    function dailyCap() external view returns (uint128);

    /// @notice The announced higher daily cap; empty if there is none.
    function announcedRaise() external view returns (uint128 cap, uint40 applicableAt);

    /// @notice Maximum of all grants together, in base units.
    function MAX_GRANTS() external view returns (uint256);
    /// @notice Maximum of grants announced in one week, in base units.
    function MAX_WEEKLY_GRANTS() external view returns (uint256);
    /// @notice Seconds between the announcement of a grant or a higher daily cap and its effect. Zero, on test networks
    /// only, mints and raises at once, and without the weekly limit.
    function GRANT_DELAY() external view returns (uint40);
    /// @notice The factory whose escrows mint rewards.
    function FACTORY() external view returns (IWorkingContractFactory);
    /// @notice The registry of Backup Agents: tokens always move from it, and to it only by its own calls.
    function REGISTRY() external view returns (address);
}
