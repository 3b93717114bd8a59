// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IRelay} from "./interfaces/IRelay.sol";

/// @notice The operator as the escrows know it. Holds no money, and has no power but what agents delegate to it.
contract Relay is IRelay, Ownable2Step {
    /// @dev What the loop itself needs beside an operation's own gas: the call, the copy and the event.
    uint256 private constant OVERHEAD = 12_000;

    uint256 private constant MAX_REASON_LENGTH = 256;

    mapping(address account => bool) public isSigner;

    constructor(address owner_) Ownable(owner_) {}

    /// @notice Allows or removes an account that may send batches.
    function setSigner(address signer, bool allowed) external onlyOwner {
        isSigner[signer] = allowed;
        emit SignerChanged(signer, allowed);
    }

    /// @inheritdoc IRelay
    function execute(Operation[] calldata operations) external {
        require(isSigner[msg.sender], NotSigner(msg.sender));

        for (uint256 i = 0; i < operations.length; ++i) {
            Operation calldata operation = operations[i];
            bytes memory data = operation.data;
            // EIP-150 gives a call at most 63/64 of what is left: without this check a signer could make an
            // operation fail by sending too little gas, and blame the agent. Measured once the data is copied, since
            // long data costs more than the overhead allows for.
            uint256 required = (uint256(operation.gasLimit) * 64) / 63 + OVERHEAD;
            require(gasleft() >= required, InsufficientGas(i, gasleft(), required));

            (bool success, bytes memory reason) = _call(operation.target, operation.gasLimit, data);
            if (!success) emit OperationFailed(i, reason);
        }
    }

    /// @dev Copies at most MAX_REASON_LENGTH bytes, and only of a failure: a callee cannot make the batch pay for more.
    /// A target without code would accept any call in silence: an escrow that a reorg took away must not.
    function _call(address target, uint256 gasLimit, bytes memory data)
        private
        returns (bool success, bytes memory reason)
    {
        uint256 maxLength = MAX_REASON_LENGTH;

        assembly ("memory-safe") {
            success := call(gasLimit, target, 0, add(data, 32), mload(data), 0, 0)
            reason := mload(0x40)
            let length := 0
            if iszero(success) {
                length := returndatasize()
                if gt(length, maxLength) { length := maxLength }
            }
            mstore(reason, length)
            returndatacopy(add(reason, 32), 0, length)
            mstore(0x40, add(add(reason, 32), and(add(length, 31), not(31))))
        }
        if (target.code.length == 0) success = false;
    }
}
