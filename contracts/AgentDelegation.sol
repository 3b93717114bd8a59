// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {IAgentDelegation} from "./interfaces/IAgentDelegation.sol";
import {IsoTime} from "./libraries/IsoTime.sol";

/// @notice See {IAgentDelegation}. Rebuilds every field of the signed text from typed values, so no other text that an
/// agent signs can pass for a delegation.
contract AgentDelegation is IAgentDelegation {
    struct Grant {
        uint40 issuedAt;
        uint40 revokedAt;
    }

    /// @dev How far the service's clock is allowed to run ahead of the chain's.
    uint256 private constant CLOCK_TOLERANCE = 15 minutes;

    address public immutable FACTORY;

    /// @notice Name of the service, as it appears in the signed text.
    string public domain;

    mapping(address agent => mapping(address operator => Grant)) public grants;

    constructor(address factory, string memory domain_) {
        FACTORY = factory;
        domain = domain_;
    }

    /// @inheritdoc IAgentDelegation
    function register(
        address agent,
        address operator,
        bytes32 nonce,
        uint40 issuedAt,
        uint40 expiresAt,
        bytes calldata signature
    ) external {
        Grant storage grant = grants[agent][operator];
        require(issuedAt > grant.revokedAt, DelegationOutdated(issuedAt, grant.revokedAt));
        bytes32 digest =
            MessageHashUtils.toEthSignedMessageHash(bytes(challengeText(agent, operator, nonce, issuedAt, expiresAt)));
        // A text dated far in the future would outlive any revocation.
        require(
            issuedAt <= block.timestamp + CLOCK_TOLERANCE
                && SignatureChecker.isValidSignatureNow(agent, digest, signature),
            InvalidDelegationSignature(agent)
        );

        if (issuedAt > grant.issuedAt) grant.issuedAt = issuedAt;

        emit DelegationRegistered(agent, operator, issuedAt);
    }

    /// @inheritdoc IAgentDelegation
    function revoke(address agent, address operator) external {
        require(msg.sender == agent || msg.sender == operator, NotAgentOrOperator(msg.sender, agent, operator));

        Grant storage grant = grants[agent][operator];
        // The registered text can be dated slightly ahead of the chain's clock; revocation must end it too.
        uint40 revokedAt = uint40(Math.max(block.timestamp, grant.issuedAt));
        if (revokedAt > grant.revokedAt) grant.revokedAt = revokedAt;

        emit DelegationRevoked(agent, operator);
    }

    /// @inheritdoc IAgentDelegation
    function isAuthorized(address agent, address operator) external view returns (bool) {
        Grant memory grant = grants[agent][operator];
        return grant.issuedAt > grant.revokedAt;
    }

    /// @inheritdoc IAgentDelegation
    function challengeText(address agent, address operator, bytes32 nonce, uint40 issuedAt, uint40 expiresAt)
        public
        view
        returns (string memory)
    {
        return string.concat(
            string.concat(
                domain,
                " asks you to sign in with your address:\n",
                Strings.toHexString(agent),
                "\n\nPurpose: issue or revoke an API key.\n",
                "The holder of the key may have the operator ",
                Strings.toHexString(operator),
                " carry out this address's contract actions at the escrow factory ",
                Strings.toHexString(FACTORY)
            ),
            string.concat(
                " until revoked.\nSigning moves no money and costs no gas.\n\nChain ID: ",
                Strings.toString(block.chainid),
                "\nNonce: ",
                Strings.toHexString(uint256(nonce), 32),
                "\nIssued At: ",
                IsoTime.format(issuedAt),
                "\nExpires At: ",
                IsoTime.format(expiresAt)
            )
        );
    }
}
