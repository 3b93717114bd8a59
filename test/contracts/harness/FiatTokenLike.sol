// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";

/// @notice A token that costs what native USDC costs: FiatTokenV2_2's storage layout (balance and blacklist in one
/// slot), checks and EIP-3009. Used behind {FiatTokenProxyLike}.
contract FiatTokenLike {
    bytes32 private constant TRANSFER_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    bytes32 private constant RECEIVE_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    bool private _paused;
    mapping(address account => uint256) private _balanceAndBlacklist;
    mapping(address account => mapping(address spender => uint256)) private _allowed;
    mapping(address account => mapping(bytes32 nonce => bool)) private _authorizationStates;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    function mint(address to, uint256 amount) external {
        _balanceAndBlacklist[to] += amount;
    }

    function setBlacklisted(address account, bool blacklisted) external {
        _balanceAndBlacklist[account] = balanceOf(account) | (blacklisted ? 1 << 255 : 0);
    }

    function balanceOf(address account) public view returns (uint256) {
        return _balanceAndBlacklist[account] & ((1 << 255) - 1);
    }

    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool) {
        return _authorizationStates[authorizer][nonce];
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        _allowed[msg.sender][spender] = amount;
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        _allowed[from][msg.sender] -= amount;
        _transfer(from, to, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        require(_balanceAndBlacklist[msg.sender] >> 255 == 0, "Blacklistable: account is blacklisted");
        _transfer(msg.sender, to, amount);
        return true;
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external {
        _transferWithAuthorization(TRANSFER_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external {
        require(to == msg.sender, "FiatTokenV2: caller must be the payee");
        _transferWithAuthorization(RECEIVE_TYPEHASH, from, to, value, validAfter, validBefore, nonce, signature);
    }

    /// forge-lint: disable-next-line(mixed-case-function)
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("USD Coin"),
                keccak256("2"),
                block.chainid,
                address(this)
            )
        );
    }

    function _transferWithAuthorization(
        bytes32 typehash,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
        require(!_authorizationStates[from][nonce], "FiatTokenV2: authorization is used or canceled");
        bytes32 structHash = keccak256(abi.encode(typehash, from, to, value, validAfter, validBefore, nonce));
        require(
            SignatureChecker.isValidSignatureNow(
                from, MessageHashUtils.toTypedDataHash(DOMAIN_SEPARATOR(), structHash), signature
            ),
            "FiatTokenV2: invalid signature"
        );
        _authorizationStates[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        _transfer(from, to, value);
    }

    function _transfer(address from, address to, uint256 value) private {
        require(!_paused, "Pausable: paused");
        uint256 fromState = _balanceAndBlacklist[from];
        uint256 toState = _balanceAndBlacklist[to];
        require(fromState >> 255 == 0 && toState >> 255 == 0, "Blacklistable: account is blacklisted");
        require(fromState >= value, "ERC20: transfer amount exceeds balance");
        _balanceAndBlacklist[from] = fromState - value;
        _balanceAndBlacklist[to] = toState + value;
        emit Transfer(from, to, value);
    }
}

/// @notice Costs what USDC's transparent proxy costs: reads admin and implementation on every call.
contract FiatTokenProxyLike {
    bytes32 private constant IMPLEMENTATION_SLOT = keccak256("org.zeppelinos.proxy.implementation");
    bytes32 private constant ADMIN_SLOT = keccak256("org.zeppelinos.proxy.admin");

    constructor(address implementation) {
        bytes32 implementationSlot = IMPLEMENTATION_SLOT;
        bytes32 adminSlot = ADMIN_SLOT;
        assembly {
            sstore(implementationSlot, implementation)
            sstore(adminSlot, 1)
        }
    }

    fallback() external {
        bytes32 implementationSlot = IMPLEMENTATION_SLOT;
        bytes32 adminSlot = ADMIN_SLOT;
        assembly {
            if eq(caller(), sload(adminSlot)) { revert(0, 0) }
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), sload(implementationSlot), 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(ok) { revert(0, returndatasize()) }
            return(0, returndatasize())
        }
    }
}
