// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IRelay} from "./interfaces/IRelay.sol";

/// @notice The operator that the escrows know. Holds no money and has only the power that agents delegate to it.
contract Relay is IRelay, Ownable2Step {
    /// @dev Gas that the loop needs on top of an operation's own: the call, the copy and the event.
    uint256 private constant OVERHEAD = 12_000;

    uint256 private constant MAX_REASON_LENGTH = 256;

    mapping(address account => bool) public isSigner;

    constructor(address owner_) Ownable(owner_) {}

    /// @notice Adds or removes an account that may send batches.
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
            // EIP-150 forwards at most 63/64 of the remaining gas. Without this check a signer could make an operation
            // fail by sending too little gas, and blame the agent. Measured after the data is copied, because copying
            // long data costs more than OVERHEAD allows for.
            uint256 required = (uint256(operation.gasLimit) * 64) / 63 + OVERHEAD;
            require(gasleft() >= required, InsufficientGas(i, gasleft(), required));

            (bool success, bytes memory reason) = _call(operation.target, operation.gasLimit, data);
            if (!success) emit OperationFailed(i, reason);
        }
    }

    /// @dev Copies at most MAX_REASON_LENGTH bytes, and only after a failure, so a callee cannot make the batch pay for
    /// more. A target without code counts as a failure: otherwise an escrow removed by a reorg would silently accept
    /// any call.
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
