// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The protocol's reward and stake token.
interface IProtocolToken {
    error NotEscrow(address caller);
    error DailyCapReached(uint256 mintedToday, uint256 amount, uint256 cap);
    error DailyCapTooHigh(uint256 cap, uint256 highest);
    error GrantsExhausted(uint256 granted, uint256 highest);
    error TransfersClosed(address from, address to);

    event TransfersOpened();
    event DailyCapChanged(uint256 cap);

    /// @notice Mints a Backup Agent's reward.
    ///
    /// Requirements:
    /// - The caller is a genuine escrow.
    /// - The daily cap is not exceeded.
    function mintReward(address backupAgent, uint256 amount) external;
}
