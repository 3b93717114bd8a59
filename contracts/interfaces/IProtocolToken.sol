// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

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

    /// @notice Mints an announced grant. Anyone can call.
    ///
    /// Requirements:
    /// - The grant was announced at least the grant delay ago, and is not minted yet.
    function mintGrant(uint256 id) external;

    /// @notice Applies the announced higher daily cap. Anyone can call.
    ///
    /// Requirements:
    /// - It was announced at least the grant delay ago, and not replaced since.
    function applyRaise() external;
}
