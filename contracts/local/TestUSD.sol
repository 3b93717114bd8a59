// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {EIP3009Token} from "../EIP3009Token.sol";

/// @notice Test stablecoin for local chains, shaped like FiatTokenV2_2: 6 decimals, EIP-3009 with both signature
/// forms, `cancelAuthorization`, a blacklist and a pause. Warning: anyone can mint, blacklist and pause.
contract TestUSD is EIP3009Token {
    mapping(address account => bool) public isBlacklisted;
    bool public paused;

    error Blacklisted(address account);
    error Paused();

    constructor() ERC20("Test USD", "TUSD") EIP712("Test USD", "2") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function setBlacklisted(address account, bool blacklisted) external {
        isBlacklisted[account] = blacklisted;
    }

    function setPaused(bool paused_) external {
        paused = paused_;
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }

    /// @notice EIP-712 domain version, as in FiatToken.
    function version() external pure returns (string memory) {
        return "2";
    }

    function DOMAIN_SEPARATOR() external view returns (bytes32) {
        return _domainSeparatorV4();
    }

    function _update(address from, address to, uint256 value) internal override {
        require(!paused, Paused());
        require(!isBlacklisted[from], Blacklisted(from));
        require(!isBlacklisted[to], Blacklisted(to));
        super._update(from, to, value);
    }
}
