// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IRelay} from "./interfaces/IRelay.sol";

/// @notice The operator as the escrows know it. Holds no money, and has no power but what agents delegate to it.
contract Relay is IRelay, Ownable2Step {
    /// @dev What the loop itself needs beside an operation's own gas: the call, the copy and the event.
    uint256 private constant OVERHEAD = 12_000;

    uint256 private constant MAX_RESULT_LENGTH = 256;

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
            // EIP-150 gives a call at most 63/64 of what is left: without this check a signer could make an
            // operation fail by sending too little gas, and blame the agent.
            uint256 required = (uint256(operation.gasLimit) * 64) / 63 + OVERHEAD;
            require(gasleft() >= required, InsufficientGas(i, gasleft(), required));

            (bool success, bytes memory result) = _call(operation);
            emit OperationExecuted(i, success, result);
        }
    }

    /// @dev Copies at most MAX_RESULT_LENGTH bytes, and only of a failure: a callee cannot make the batch pay for more.
    function _call(Operation calldata operation) private returns (bool success, bytes memory result) {
        address target = operation.target;
        uint256 gasLimit = operation.gasLimit;
        bytes memory data = operation.data;
        uint256 maxLength = MAX_RESULT_LENGTH;

        assembly ("memory-safe") {
            success := call(gasLimit, target, 0, add(data, 32), mload(data), 0, 0)
            result := mload(0x40)
            let length := 0
            if iszero(success) {
                length := returndatasize()
                if gt(length, maxLength) { length := maxLength }
            }
            mstore(result, length)
            returndatacopy(add(result, 32), 0, length)
            mstore(0x40, add(add(result, 32), and(add(length, 31), not(31))))
        }
    }
}
