// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {AgentDelegation} from "../../../contracts/AgentDelegation.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {BaseTest} from "../Base.t.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";

contract RegisterTest is BaseTest {
    bytes32 internal constant NONCE = keccak256("nonce");
    uint40 internal issuedAt;
    uint40 internal expiresAt;
    bytes internal signature;

    function setUp() public override {
        super.setUp();
        issuedAt = _now();
        expiresAt = issuedAt + 5 minutes;
        signature = _signDelegation(worker, operator, NONCE, issuedAt, expiresAt);
    }

    function test_WhenAgentSigned() public {
        vm.expectEmit(address(delegation));
        emit IAgentDelegation.DelegationRegistered(worker, operator, issuedAt);
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
        assertTrue(delegation.isAuthorized(worker, operator), "operator authorized");
        assertFalse(delegation.isAuthorized(worker, stranger), "another operator");
        assertFalse(delegation.isAuthorized(client, operator), "another agent");
    }

    function test_WhenAgentIsContractWallet() public {
        address wallet = address(new ContractWallet(worker));
        keyOf[wallet] = keyOf[worker];
        signature = _signDelegation(wallet, operator, NONCE, issuedAt, expiresAt);
        delegation.register(wallet, operator, NONCE, issuedAt, expiresAt, signature);
        assertTrue(delegation.isAuthorized(wallet, operator), "operator authorized");
    }

    function test_RevertWhen_AnyFieldDiffers() public {
        _expectInvalid(client);
        delegation.register(client, operator, NONCE, issuedAt, expiresAt, signature);
        _expectInvalid(worker);
        delegation.register(worker, stranger, NONCE, issuedAt, expiresAt, signature);
        _expectInvalid(worker);
        delegation.register(worker, operator, bytes32(uint256(NONCE) + 1), issuedAt, expiresAt, signature);
        _expectInvalid(worker);
        delegation.register(worker, operator, NONCE, issuedAt + 1, expiresAt, signature);
        _expectInvalid(worker);
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt + 1, signature);
    }

    function test_RevertWhen_SomeoneElseSigned() public {
        keyOf[worker] = keyOf[stranger];
        signature = _signDelegation(worker, operator, NONCE, issuedAt, expiresAt);
        _expectInvalid(worker);
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
    }

    function test_RevertWhen_AnotherChain() public {
        vm.chainId(1);
        _expectInvalid(worker);
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
    }

    function test_RevertWhen_AnotherDomainOrFactory() public {
        AgentDelegation other = new AgentDelegation(address(factory), "other.example");
        _expectInvalid(worker);
        other.register(worker, operator, NONCE, issuedAt, expiresAt, signature);

        other = new AgentDelegation(stranger, DOMAIN);
        _expectInvalid(worker);
        other.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
    }

    function test_RevertWhen_DatedAhead() public {
        issuedAt = _now() + 15 minutes + 1;
        signature = _signDelegation(worker, operator, NONCE, issuedAt, expiresAt);
        _expectInvalid(worker);
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);

        vm.warp(_now() + 1);
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
        assertTrue(delegation.isAuthorized(worker, operator), "operator authorized");
    }

    function test_WhenOlderTextComesLater() public {
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
        signature = _signDelegation(worker, operator, NONCE, issuedAt - 100, expiresAt);
        delegation.register(worker, operator, NONCE, issuedAt - 100, expiresAt, signature);
        (uint40 kept,) = delegation.grants(worker, operator);
        assertEq(kept, issuedAt, "newer date");
    }

    function test_GivenRevocation() public {
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);
        vm.warp(_now() + 60);
        uint40 revokedAt = _now();
        vm.prank(worker);
        delegation.revoke(worker, operator);

        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, issuedAt, revokedAt));
        delegation.register(worker, operator, NONCE, issuedAt, expiresAt, signature);

        signature = _signDelegation(worker, operator, NONCE, revokedAt, expiresAt);
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, revokedAt, revokedAt));
        delegation.register(worker, operator, NONCE, revokedAt, expiresAt, signature);

        signature = _signDelegation(worker, operator, NONCE, revokedAt + 1, expiresAt);
        delegation.register(worker, operator, NONCE, revokedAt + 1, expiresAt, signature);
        assertTrue(delegation.isAuthorized(worker, operator), "operator authorized again");
    }

    function test_WhenTextIsBuilt() public {
        vm.chainId(84_532);
        assertEq(
            delegation.challengeText(worker, operator, bytes32(uint256(0xabc)), 1_767_225_599, 1_767_225_899),
            string.concat(
                "contracts.example asks you to sign in with your address:\n",
                _lowerCase(worker),
                "\n\nPurpose: issue or revoke an API key.\nThe holder of the key may have the operator ",
                _lowerCase(operator),
                " carry out this address's contract actions at the escrow factory ",
                _lowerCase(address(factory)),
                " until revoked.\nSigning moves no money and costs no gas.\n\nChain ID: 84532\n",
                "Nonce: 0x0000000000000000000000000000000000000000000000000000000000000abc\n",
                "Issued At: 2025-12-31T23:59:59Z\nExpires At: 2026-01-01T00:04:59Z"
            ),
            "text"
        );
    }

    function _lowerCase(address account) private pure returns (string memory) {
        return vm.toLowercase(vm.toString(account));
    }

    function _expectInvalid(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.InvalidDelegationSignature.selector, agent));
    }
}
