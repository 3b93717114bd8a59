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

/// @notice Money in and out: deposits by authorization or allowance, payouts that cannot block each other, and direct
/// transfers, which are money that arrived outside the escrow's own calls.
abstract contract EscrowCustody is EscrowState {
    using SafeERC20 for IERC20;
    using TermsCodec for bytes;

    bytes32 private constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    /// @dev The start of validity that tells which kind of authorization to try first: of two that fail and succeed,
    /// the failed one costs 18,000 gas. Our clients sign `ReceiveWithAuthorization`, which only the escrow can use, so
    /// that no one else can bring their money here.
    uint256 internal constant RECEIVED = 1;
    uint40 private constant BOOKED_PAYER_REFUND_DELAY = 7 days;
    uint40 private constant REFUND_DELAY = 14 days;

    /// @inheritdoc IWorkingContractEscrow
    mapping(address payee => uint256) public deferred;

    /// @inheritdoc IWorkingContractEscrow
    mapping(address payer => mapping(bytes32 nonce => bool)) public directTransferSpent;

    /// @dev Whether a direct transfer can pay for the current action.
    bool private transient _acceptsDirectTransfer;

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
    function withDirectTransfer(bytes calldata action) external {
        require(msg.sender == OPERATOR, NotOperator(msg.sender));
        _acceptsDirectTransfer = true;
        Address.functionDelegateCall(address(this), action);
        _acceptsDirectTransfer = false;
    }

    /// @inheritdoc IWorkingContractEscrow
    function refundDirectTransfer(address payer, uint256 amount, Authorization calldata authorization)
        external
        nonReentrant
    {
        bytes memory t = _terms();
        Facts memory f = _facts;
        // Before opening, money here belongs to the initiator alone: `open` books it as the deposit.
        require(f.phase != Phase.None, WrongStatus({actual: Status.None, expected: Status.Created}));
        if (msg.sender != OPERATOR) {
            // Anyone can sign an authorization to this escrow and cancel it, so strangers come last.
            uint40 delay = _hasBooked(t, f, payer) ? BOOKED_PAYER_REFUND_DELAY : REFUND_DELAY;
            uint40 refundableAt = t.reviewDeadline() + delay;
            require(block.timestamp >= refundableAt, DirectTransferNotRefundable(refundableAt));
        }
        if (f.openedFromBalance && payer == t.initiator() && amount == _depositOf(t)) {
            // `open` credited the deposit that this authorization paid: mark it spent and refund nothing.
            _facts.openedFromBalance = false;
            _spendDirectTransfer(payer, amount, authorization, _bookedOf(t, f));
            emit DirectTransferCredited(payer, authorization.nonce, amount);
            return;
        }
        _spendDirectTransfer(payer, amount, authorization, _bookedOf(t, f) + amount);

        emit DirectTransferRefunded(payer, authorization.nonce, amount);

        IERC20(address(ASSET)).safeTransfer(payer, amount);
    }

    /// @dev Collects `amount` from `payer`. The caller has checked that `msg.sender` may act.
    /// @param bookedAfter Booked total including `amount`; the balance must cover it.
    function _collect(address payer, uint256 amount, uint256 bookedAfter, Authorization calldata authorization)
        internal
    {
        bytes calldata signature = authorization.signature;
        if (signature.length == 0) {
            require(msg.sender == payer, NotParty({caller: msg.sender, party: payer}));
            IERC20(address(ASSET)).safeTransferFrom(payer, address(this), amount);
            require(ASSET.balanceOf(address(this)) >= bookedAfter, PaymentFailed(payer, amount));
            return;
        }

        (bytes4 likely, bytes4 other) =
            (IEIP3009.transferWithAuthorization.selector, IEIP3009.receiveWithAuthorization.selector);
        if (authorization.validAfter == RECEIVED) (likely, other) = (other, likely);
        if (
            _take(likely, payer, amount, authorization, signature)
                || _take(other, payer, amount, authorization, signature)
        ) {
            require(ASSET.balanceOf(address(this)) >= bookedAfter, PaymentFailed(payer, amount));
            return;
        }
        // A used authorization can also be a cancelled one, from a payer after someone else's direct transfer. It is
        // credited only if the operator confirms that it saw the transfer.
        require(
            _acceptsDirectTransfer && ASSET.authorizationState(payer, authorization.nonce), PaymentFailed(payer, amount)
        );
        _spendDirectTransfer(payer, amount, authorization, bookedAfter);
        emit DirectTransferCredited(payer, authorization.nonce, amount);
    }

    /// @dev Uses the authorization at the token; false if the token refuses.
    function _take(
        bytes4 selector,
        address payer,
        uint256 amount,
        Authorization calldata authorization,
        bytes calldata signature
    ) private returns (bool taken) {
        bytes memory call = abi.encodeWithSelector(
            selector,
            payer,
            address(this),
            amount,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            signature
        );
        (taken,) = address(ASSET).call(call);
    }

    /// @dev Pays `payee`, or keeps the amount claimable if the token refuses.
    function _pay(address payee, uint256 amount) internal {
        if (amount == 0) return;
        if (!IERC20(address(ASSET)).trySafeTransfer(payee, amount)) {
            deferred[payee] += amount;
            _jury.held += uint96(amount);
            emit PayoutDeferred(payee, amount);
        }
    }

    /// @dev Marks an authorization that was used at the token as credited or refunded, once. Requires the payer's
    /// signature, so no one, not even the operator, can assign a direct transfer to an address that did not pay this
    /// escrow.
    /// @param bookedAfter Booked total that the balance must still cover.
    function _spendDirectTransfer(
        address payer,
        uint256 amount,
        Authorization calldata authorization,
        uint256 bookedAfter
    ) private {
        bytes32 nonce = authorization.nonce;
        require(!directTransferSpent[payer][nonce], AuthorizationSpent(payer, nonce));
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
        require(balance >= bookedAfter, InsufficientUnbookedBalance(balance, bookedAfter));

        directTransferSpent[payer][nonce] = true;
    }

    function _hasBooked(bytes memory t, Facts memory f, address payer) private view returns (bool) {
        return payer == t.initiator() || payer == f.counterparty || _hasVoted(payer);
    }

    /// @dev Whether `account` posted a Backup Agent bond here.
    function _hasVoted(address account) internal view virtual returns (bool);
}
