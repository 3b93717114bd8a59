// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TestUSD} from "../../../contracts/local/TestUSD.sol";

/// @notice A token that keeps a fee of one unit from every payment, so that the payee receives less than was paid.
contract FeeUSD is TestUSD {
    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public override {
        super.transferWithAuthorization(from, to, value, validAfter, validBefore, nonce, signature);
        _burn(to, 1);
    }

    function transferFrom(address from, address to, uint256 value) public override returns (bool moved) {
        moved = super.transferFrom(from, to, value);
        _burn(to, 1);
    }
}
