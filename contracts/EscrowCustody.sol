// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {EscrowState} from "./EscrowState.sol";
import {IEIP3009} from "./interfaces/IEIP3009.sol";
import {IWorkingContractEscrow} from "./interfaces/IWorkingContractEscrow.sol";
import {TermsCodec} from "./libraries/TermsCodec.sol";
import {Authorization, Phase, Status} from "./types/Types.sol";

/// @notice Money in and out: deposits by authorization or allowance, payouts that cannot block each other, and money
/// that arrived outside of the escrow's own calls.
abstract contract EscrowCustody is EscrowState {
    using SafeERC20 for IERC20;
    using TermsCodec for bytes;

    bytes32 private constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    uint40 private constant SURPLUS_DELAY_OF_BOOKED_PAYER = 7 days;
    uint40 private constant SURPLUS_DELAY = 14 days;

    /// @notice Amount that a payee could not receive at settlement.
    mapping(address payee => uint256) public deferred;

    /// @notice Authorizations credited or returned after somebody else had used them at the token.
    mapping(address payer => mapping(bytes32 nonce => bool)) public surplusSpent;

    /// @dev Whether the act that is being carried out may take surplus for its payment.
    bool private transient _takesSurplus;

    /// @inheritdoc IWorkingContractEscrow
    function claimDeferred(address payee) external nonReentrant {
        uint256 amount = deferred[payee];
        require(amount != 0, NothingToClaim(payee));

        deferred[payee] = 0;
        _jury.held -= uint96(amount);

        emit PayoutClaimed(payee, amount);

        IERC20(address(ASSET)).safeTransfer(payee, amount);
    }

    /// @inheritdoc IWorkingContractEscrow
    function withSurplus(bytes calldata act) external {
        require(msg.sender == OPERATOR, NotOperator(msg.sender));
        _takesSurplus = true;
        Address.functionDelegateCall(address(this), act);
        _takesSurplus = false;
    }

    /// @inheritdoc IWorkingContractEscrow
    function returnSurplus(address payer, uint256 amount, Authorization calldata authorization) external nonReentrant {
        bytes memory t = _terms();
        Facts memory f = _facts;
        // Before it is opened, money here is the initiator's alone: `open` credits or refunds it.
        require(f.phase != Phase.None, WrongStatus({actual: Status.None, expected: Status.Created}));
        if (msg.sender != OPERATOR) {
            // Anybody can sign an authorization to this escrow and cancel it: strangers come last.
            uint40 delay = _hasBooked(t, f, payer) ? SURPLUS_DELAY_OF_BOOKED_PAYER : SURPLUS_DELAY;
            uint40 returnableAt = t.reviewDeadline() + delay;
            require(block.timestamp >= returnableAt, SurplusNotReturnable(returnableAt));
        }
        if (f.openedFromBalance && payer == t.initiator() && amount == _depositOf(t)) {
            // This authorization brought the deposit that `open` credited: it is used up, and nothing is due for it.
            _facts.openedFromBalance = false;
            _spendSurplus(payer, amount, authorization, _bookedOf(t, f));
            emit SurplusCredited(payer, authorization.nonce, amount);
            return;
        }
        _spendSurplus(payer, amount, authorization, _bookedOf(t, f) + amount);

        emit SurplusReturned(payer, authorization.nonce, amount);

        IERC20(address(ASSET)).safeTransfer(payer, amount);
    }

    /// @dev Takes `amount` from `payer`; the caller has decided that `msg.sender` may act.
    /// @param bookedAfter What the books hold with `amount` in them; the balance must cover it.
    function _collect(address payer, uint256 amount, uint256 bookedAfter, Authorization calldata authorization)
        internal
    {
        if (authorization.signature.length == 0) {
            require(msg.sender == payer, NotParty({caller: msg.sender, party: payer}));
            IERC20(address(ASSET)).safeTransferFrom(payer, address(this), amount);
            require(ASSET.balanceOf(address(this)) >= bookedAfter, PaymentFailed(payer, amount));
            return;
        }

        try ASSET.transferWithAuthorization(
            payer,
            address(this),
            amount,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            authorization.signature
        ) {
            require(ASSET.balanceOf(address(this)) >= bookedAfter, PaymentFailed(payer, amount));
        } catch {
            // Used may also mean cancelled, by a payer with an eye on somebody else's surplus: it is credited only
            // where the operator says that it saw the transfer.
            require(_takesSurplus && ASSET.authorizationState(payer, authorization.nonce), PaymentFailed(payer, amount));
            _spendSurplus(payer, amount, authorization, bookedAfter);
            emit SurplusCredited(payer, authorization.nonce, amount);
        }
    }

    /// @dev Pays `payee`, or keeps the amount claimable where the token refuses.
    function _pay(address payee, uint256 amount) internal {
        if (amount == 0) return;
        if (!IERC20(address(ASSET)).trySafeTransfer(payee, amount)) {
            deferred[payee] += amount;
            _jury.held += uint96(amount);
            emit PayoutDeferred(payee, amount);
        }
    }

    /// @dev Marks an authorization that was used at the token as credited or returned, once. The payer's signature is
    /// required, so that nobody, the operator included, can point surplus at an address that did not pay this escrow.
    /// @param bookedAfter What the balance must still cover.
    function _spendSurplus(address payer, uint256 amount, Authorization calldata authorization, uint256 bookedAfter)
        private
    {
        bytes32 nonce = authorization.nonce;
        require(!surplusSpent[payer][nonce], AuthorizationSpent(payer, nonce));
        bytes32 structHash = keccak256(
            abi.encode(
                TRANSFER_WITH_AUTHORIZATION_TYPEHASH,
                payer,
                address(this),
                amount,
                authorization.validAfter,
                authorization.validBefore,
                nonce
            )
        );
        bytes32 digest = MessageHashUtils.toTypedDataHash(ASSET.DOMAIN_SEPARATOR(), structHash);
        require(
            ASSET.authorizationState(payer, nonce)
                && SignatureChecker.isValidSignatureNow(payer, digest, authorization.signature),
            InvalidAuthorization(payer, nonce)
        );
        uint256 balance = ASSET.balanceOf(address(this));
        require(balance >= bookedAfter, InsufficientSurplus(balance, bookedAfter));

        surplusSpent[payer][nonce] = true;
    }

    function _hasBooked(bytes memory t, Facts memory f, address payer) private view returns (bool) {
        return payer == t.initiator() || payer == f.counterparty || _hasVoted(payer);
    }

    /// @dev Whether `account` posted a Backup Agent bond here.
    function _hasVoted(address account) internal view virtual returns (bool);
}
