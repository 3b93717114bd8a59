// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice A contract wallet that attacks any contract that checks its signature.
contract MaliciousWallet {
    enum Attack {
        BurnGas,
        ReturnBomb,
        RevertBomb
    }

    Attack public attack;

    function setAttack(Attack attack_) external {
        attack = attack_;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        _attack();
    }

    /// @notice The same attack, as the direct target of an operation.
    fallback() external {
        _attack();
    }

    function _attack() private view {
        Attack chosen = attack;
        if (chosen == Attack.BurnGas) {
            while (true) {}
        }
        assembly {
            // 100 kB, paid for by the wallet; the caller must not pay for copying it.
            for { let i := 0 } lt(i, 512) { i := add(i, 32) } { mstore(i, not(0)) }
            if eq(chosen, 1) { return(0, 100000) }
            revert(0, 100000)
        }
    }
}
