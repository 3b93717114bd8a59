// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {IAgentDelegation} from "./interfaces/IAgentDelegation.sol";
import {IsoTime} from "./libraries/IsoTime.sol";
import {AgentAction, Delegation} from "./types/Types.sol";

/// @notice See {IAgentDelegation}. Rebuilds every field of the signed text from typed values, so no other text that an
/// agent signs can pass for a delegation.
abstract contract AgentDelegation is IAgentDelegation {
    struct Grant {
        uint40 issuedAt;
        uint40 revokedAt;
        uint40 until;
        uint8 actions;
    }

    uint8 private constant ALL_ACTIONS = type(uint8).max;

    /// @dev How far the service's clock is allowed to run ahead of the chain's.
    uint256 private constant CLOCK_TOLERANCE = 15 minutes;

    /// @inheritdoc IAgentDelegation
    address public immutable FACTORY;

    /// @inheritdoc IAgentDelegation
    string public domain;

    /// @inheritdoc IAgentDelegation
    mapping(address agent => mapping(address operator => Grant)) public grants;

    constructor(address factory, string memory domain_) {
        FACTORY = factory;
        domain = domain_;
    }

    /// @inheritdoc IAgentDelegation
    function register(Delegation calldata d, bytes calldata signature) external {
        Grant memory grant = grants[d.agent][d.operator];
        require(d.issuedAt > grant.revokedAt, DelegationOutdated(d.issuedAt, grant.revokedAt));
        bytes32 digest = MessageHashUtils.toEthSignedMessageHash(bytes(challengeText(d)));
        // A delegation dated far in the future would outlive any revocation.
        require(
            d.issuedAt <= block.timestamp + CLOCK_TOLERANCE
                && SignatureChecker.isValidSignatureNow(d.agent, digest, signature),
            InvalidDelegationSignature(d.agent)
        );

        if (d.issuedAt > grant.issuedAt) {
            grants[d.agent][d.operator] =
                Grant({issuedAt: d.issuedAt, revokedAt: grant.revokedAt, until: d.until, actions: d.actions});
        }

        emit DelegationRegistered(d.agent, d.operator, d.issuedAt);
    }

    /// @inheritdoc IAgentDelegation
    function revoke(address agent, address operator) external {
        require(msg.sender == agent || msg.sender == operator, NotAgentOrOperator(msg.sender, agent, operator));

        Grant storage grant = grants[agent][operator];
        // The registered delegation can be dated slightly ahead of the chain's clock; revocation must end it too.
        uint40 revokedAt = uint40(Math.max(block.timestamp, grant.issuedAt));
        if (revokedAt > grant.revokedAt) grant.revokedAt = revokedAt;

        emit DelegationRevoked(agent, operator);
    }

    /// @inheritdoc IAgentDelegation
    function isAuthorized(address agent, address operator, AgentAction action) external view returns (bool) {
        Grant storage grant = grants[agent][operator];
        return grant.issuedAt > grant.revokedAt && (grant.actions >> uint8(action)) & 1 != 0
            && (grant.until == 0 || block.timestamp < grant.until);
    }

    /// @inheritdoc IAgentDelegation
    function challengeText(Delegation calldata d) public view returns (string memory) {
        return string.concat(
            string.concat(
                domain,
                " asks you to sign in with your address:\n",
                Strings.toHexString(d.agent),
                "\n\nPurpose: issue or revoke an API key.\n",
                _permission(d),
                "\nSigning moves no money and costs no gas.\n\nChain ID: "
            ),
            string.concat(
                Strings.toString(block.chainid),
                "\nNonce: ",
                Strings.toHexString(uint256(d.nonce), 32),
                "\nIssued At: ",
                IsoTime.format(d.issuedAt),
                "\nExpires At: ",
                IsoTime.format(d.expiresAt)
            )
        );
    }

    function _permission(Delegation calldata d) private view returns (string memory) {
        string memory operator = Strings.toHexString(d.operator);
        string memory place = string.concat(" at the escrow factory ", Strings.toHexString(FACTORY));
        if (d.actions == 0) {
            return string.concat(
                "The operator ",
                operator,
                " may carry out this address's contract actions",
                place,
                " only with its signature for each action."
            );
        }
        return string.concat(
            string.concat("The holder of the key may have the operator ", operator),
            " carry out this address's contract actions",
            d.actions == ALL_ACTIONS ? "" : string.concat(" (", _names(d.actions), ")"),
            place,
            d.until == 0 ? " until revoked." : string.concat(" until revoked, or until ", IsoTime.format(d.until), ".")
        );
    }

    function _names(uint8 actions) private pure returns (string memory names) {
        string[8] memory all = ["approve", "deliver", "withdraw", "cancel", "decline", "vote", "unstake", "complain"];
        for (uint256 i = 0; i < all.length; ++i) {
            if ((actions >> i) & 1 != 0) names = string.concat(names, bytes(names).length == 0 ? "" : ", ", all[i]);
        }
    }
}
