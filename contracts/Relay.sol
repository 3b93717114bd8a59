// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {AgentDelegation} from "./AgentDelegation.sol";
import {IRelay} from "./interfaces/IRelay.sol";

/// @notice The operator that the escrows know. Holds no money. Does what agents delegate to it, carries payments that
/// they signed, and says which direct transfers to credit or refund ({IWorkingContractEscrow.refundDirectTransfer} has
/// a warning). Keeps the delegations itself: an escrow that asks for one calls an address that the transaction has
/// already paid to access.
contract Relay is IRelay, AgentDelegation, Ownable2Step {
    /// @dev Gas that the loop needs on top of an operation's own: the call, the copy and the event.
    uint256 private constant OVERHEAD = 12_000;

    uint256 private constant MAX_REASON_LENGTH = 256;

    /// @dev Bytes in front of an operation's calldata.
    uint256 private constant HEADER_LENGTH = 27;

    /// @inheritdoc IRelay
    mapping(address account => bool) public isSigner;

    constructor(address owner_, address factory, string memory domain_)
        AgentDelegation(factory, domain_)
        Ownable(owner_)
    {}

    /// @inheritdoc IRelay
    function setSigner(address signer, bool allowed) external onlyOwner {
        isSigner[signer] = allowed;
        emit SignerChanged(signer, allowed);
    }

    /// @inheritdoc IRelay
    function execute(bytes calldata operations) external {
        require(isSigner[msg.sender], NotSigner(msg.sender));

        // Adds no numbers above 32 bits.
        unchecked {
            for (uint256 i = 0; operations.length != 0; ++i) {
                uint256 header = uint216(bytes27(operations));
                uint256 end = HEADER_LENGTH + uint24(header);
                bytes memory data = operations[HEADER_LENGTH:end];
                operations = operations[end:];
                // EIP-150 forwards at most 63/64 of the remaining gas. Without this check a signer could make an
                // operation fail by sending too little gas, and blame the agent. Measured after the data is copied,
                // because copying long data costs more than OVERHEAD allows for.
                uint256 gasLimit = uint32(header >> 24);
                uint256 required = gasLimit + gasLimit / 63 + OVERHEAD;
                require(gasleft() >= required, InsufficientGas(i, gasleft(), required));

                if (!_call(address(uint160(header >> 56)), gasLimit, data)) emit OperationFailed(i, _reason());
            }
        }
    }

    /// @dev A target without code counts as a failure: otherwise an escrow removed by a reorg would silently accept any
    /// call.
    function _call(address target, uint256 gasLimit, bytes memory data) private returns (bool success) {
        assembly ("memory-safe") {
            success := call(gasLimit, target, 0, add(data, 32), mload(data), 0, 0)
        }
        if (target.code.length == 0) success = false;
    }

    /// @dev What the last call returned, but at most MAX_REASON_LENGTH bytes of it, so a callee cannot make the batch
    /// pay for more.
    function _reason() private pure returns (bytes memory reason) {
        uint256 length;
        assembly ("memory-safe") {
            length := returndatasize()
        }
        reason = new bytes(Math.min(length, MAX_REASON_LENGTH));
        assembly ("memory-safe") {
            returndatacopy(add(reason, 32), 0, mload(reason))
        }
    }
}
