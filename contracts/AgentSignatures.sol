// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {IAgentSignatures} from "./interfaces/IAgentSignatures.sol";

/// @notice See {IAgentSignatures}. A used signature needs no record: each action that accepts one can happen only once,
/// or only once while the signature is valid.
abstract contract AgentSignatures is IAgentSignatures {
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant NAME_HASH = keccak256("Working Contract");
    bytes32 private constant VERSION_HASH = keccak256("1");
    bytes32 private constant ACTION_TYPEHASH =
        keccak256("Action(address agent,bytes call,uint256 nonce,uint40 deadline)");

    /// @dev Below {BackupAgentRegistry.UNBONDING_PERIOD}: no signature outlives the stake that it released.
    uint256 private constant MAX_VALIDITY = 1 days;

    /// @inheritdoc IAgentSignatures
    mapping(address agent => uint256) public signatureNonce;

    /// @dev Whose signature allows the current call. Only actions that call no foreign contract may read it.
    address private transient _signer;

    /// @inheritdoc IAgentSignatures
    function withSignature(address agent, uint40 deadline, bytes calldata signature, bytes calldata call) external {
        require(
            block.timestamp < deadline && deadline <= block.timestamp + MAX_VALIDITY, InvalidActionDeadline(deadline)
        );
        require(_isSignedBy(agent, actionDigest(agent, deadline, call), signature), InvalidActionSignature(agent));

        emit ActionSigned(agent);

        _signer = agent;
        Address.functionDelegateCall(address(this), call);
        _signer = address(0);
    }

    /// @inheritdoc IAgentSignatures
    function cancelSignatures() external {
        ++signatureNonce[msg.sender];
    }

    /// @inheritdoc IAgentSignatures
    function actionDigest(address agent, uint40 deadline, bytes calldata call) public view returns (bytes32) {
        bytes32 separator =
            keccak256(abi.encode(DOMAIN_TYPEHASH, NAME_HASH, VERSION_HASH, block.chainid, address(this)));
        bytes32 structHash =
            keccak256(abi.encode(ACTION_TYPEHASH, agent, keccak256(call), signatureNonce[agent], deadline));
        return MessageHashUtils.toTypedDataHash(separator, structHash);
    }

    function _hasSigned(address agent) internal view returns (bool) {
        return agent != address(0) && _signer == agent;
    }

    /// @dev Recovers first: an ordinary account then costs no access to its code.
    function _isSignedBy(address agent, bytes32 digest, bytes memory signature) private view returns (bool) {
        (address recovered, ECDSA.RecoverError fault,) = ECDSA.tryRecover(digest, signature);
        return (fault == ECDSA.RecoverError.NoError && recovered == agent)
            || SignatureChecker.isValidERC1271SignatureNow(agent, digest, signature);
    }
}
