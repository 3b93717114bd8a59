// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Relay} from "../../../contracts/Relay.sol";
import {IAgentDelegation} from "../../../contracts/interfaces/IAgentDelegation.sol";
import {AgentAction, Delegation} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";
import {ContractWallet} from "../mocks/ContractWallet.sol";

contract RegisterTest is BaseTest {
    Delegation internal signed;
    bytes internal signature;

    function setUp() public override {
        super.setUp();
        signed = _delegationOf(worker);
        signature = _signDelegation(signed);
    }

    function test_WhenAgentSigned() public {
        vm.expectEmit(address(delegation));
        emit IAgentDelegation.DelegationRegistered(worker, operator, signed.issuedAt);
        delegation.register(signed, signature);
        for (uint8 i = 0; i < 8; ++i) {
            assertTrue(delegation.isAuthorized(worker, operator, AgentAction(i)), "operator authorized");
            assertFalse(delegation.isAuthorized(worker, stranger, AgentAction(i)), "another operator");
            assertFalse(delegation.isAuthorized(client, operator, AgentAction(i)), "another agent");
        }
    }

    function test_WhenAgentIsContractWallet() public {
        address wallet = address(new ContractWallet(worker));
        keyOf[wallet] = keyOf[worker];
        _register(_delegationOf(wallet));
        assertTrue(delegation.isAuthorized(wallet, operator, AgentAction.Deliver), "operator authorized");
    }

    function test_RevertWhen_AnyFieldDiffers() public {
        for (uint256 i = 0; i < 7; ++i) {
            Delegation memory other = _delegationOf(worker);
            if (i == 0) other.agent = client;
            if (i == 1) other.operator = stranger;
            if (i == 2) other.actions = 0xfe;
            if (i == 3) other.until = _now() + 1;
            if (i == 4) other.nonce = bytes32("other");
            if (i == 5) other.issuedAt += 1;
            if (i == 6) other.expiresAt += 1;
            _expectInvalid(other.agent);
            delegation.register(other, signature);
        }
    }

    function test_RevertWhen_SomeoneElseSigned() public {
        keyOf[worker] = keyOf[stranger];
        signature = _signDelegation(signed);
        _expectInvalid(worker);
        delegation.register(signed, signature);
    }

    function test_RevertWhen_AnotherChain() public {
        vm.chainId(1);
        _expectInvalid(worker);
        delegation.register(signed, signature);
    }

    function test_RevertWhen_AnotherDomainOrFactory() public {
        Relay other = new Relay(owner, address(factory), "other.example");
        _expectInvalid(worker);
        other.register(signed, signature);

        other = new Relay(owner, stranger, DOMAIN);
        _expectInvalid(worker);
        other.register(signed, signature);
    }

    function test_RevertWhen_DatedAhead() public {
        signed.issuedAt = _now() + 15 minutes + 1;
        signature = _signDelegation(signed);
        _expectInvalid(worker);
        delegation.register(signed, signature);

        vm.warp(_now() + 1);
        delegation.register(signed, signature);
        assertTrue(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "operator authorized");
    }

    function test_WhenOlderTextComesLater() public {
        delegation.register(signed, signature);
        uint40 newer = signed.issuedAt;
        signed.issuedAt -= 100;
        signed.actions = 0;
        _register(signed);
        (uint40 kept,,, uint8 actions) = delegation.grants(worker, operator);
        assertEq(kept, newer, "newer date");
        assertEq(actions, 0xff, "newer text's actions");
    }

    function test_GivenRevocation() public {
        delegation.register(signed, signature);
        vm.warp(_now() + 60);
        uint40 revokedAt = _now();
        vm.prank(worker);
        delegation.revoke(worker, operator);

        _expectOutdated(signed.issuedAt, revokedAt);
        delegation.register(signed, signature);

        signed.issuedAt = revokedAt;
        signature = _signDelegation(signed);
        _expectOutdated(revokedAt, revokedAt);
        delegation.register(signed, signature);

        signed.issuedAt = revokedAt + 1;
        _register(signed);
        assertTrue(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "operator authorized again");
    }

    function test_WhenSomeActionsAreNamed() public {
        signed.actions = uint8((1 << uint8(AgentAction.Deliver)) | (1 << uint8(AgentAction.Unstake)));
        _register(signed);
        for (uint8 i = 0; i < 8; ++i) {
            bool named = i == uint8(AgentAction.Deliver) || i == uint8(AgentAction.Unstake);
            assertEq(delegation.isAuthorized(worker, operator, AgentAction(i)), named, "only the named actions");
        }
    }

    function test_WhenEndDateIsNamed() public {
        signed.until = _now() + 1 days;
        _register(signed);
        vm.warp(signed.until - 1);
        assertTrue(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "just before its end");
        vm.warp(signed.until);
        assertFalse(delegation.isAuthorized(worker, operator, AgentAction.Deliver), "at its end");
    }

    function test_WhenNoActionIsNamed() public {
        delegation.register(signed, signature);
        signed.issuedAt += 1;
        signed.actions = 0;
        _register(signed);
        for (uint8 i = 0; i < 8; ++i) {
            assertFalse(delegation.isAuthorized(worker, operator, AgentAction(i)), "taken away");
        }
    }

    function test_WhenTextIsBuilt() public {
        vm.chainId(84_532);
        signed.nonce = bytes32(uint256(0xabc));
        signed.issuedAt = 1_767_225_599;
        signed.expiresAt = 1_767_225_899;
        _assertPermission(" carry out this address's contract actions at the escrow factory ", " until revoked.");
        signed.until = 1_767_225_899;
        signed.actions = 0x03;
        _assertPermission(
            " carry out this address's contract actions (approve, deliver) at the escrow factory ",
            " until revoked, or until 2026-01-01T00:04:59Z."
        );
        signed.actions = 0xfc;
        signed.until = 0;
        _assertPermission(
            " carry out this address's contract actions (withdraw, cancel, decline, vote, unstake, complain) at the escrow factory ",
            " until revoked."
        );
        signed.actions = 0;
        assertEq(
            delegation.challengeText(signed),
            _text(
                string.concat(
                    "The operator ",
                    _lowerCase(operator),
                    " may carry out this address's contract actions at the escrow factory ",
                    _lowerCase(address(factory)),
                    " only with its signature for each action."
                )
            ),
            "strict text"
        );
    }

    function _assertPermission(string memory actions, string memory end) private view {
        assertEq(
            delegation.challengeText(signed),
            _text(
                string.concat(
                    "The holder of the key may have the operator ",
                    _lowerCase(operator),
                    actions,
                    _lowerCase(address(factory)),
                    end
                )
            ),
            "text"
        );
    }

    function _text(string memory permission) private view returns (string memory) {
        return string.concat(
            "contracts.example asks you to sign in with your address:\n",
            _lowerCase(worker),
            "\n\nPurpose: issue or revoke an API key.\n",
            permission,
            "\nSigning moves no money and costs no gas.\n\nChain ID: 84532\n",
            "Nonce: 0x0000000000000000000000000000000000000000000000000000000000000abc\n",
            "Issued At: 2025-12-31T23:59:59Z\nExpires At: 2026-01-01T00:04:59Z"
        );
    }

    function _expectOutdated(uint40 issuedAt, uint40 revokedAt) private {
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.DelegationOutdated.selector, issuedAt, revokedAt));
    }

    function _lowerCase(address account) private pure returns (string memory) {
        return vm.toLowercase(vm.toString(account));
    }

    function _expectInvalid(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IAgentDelegation.InvalidDelegationSignature.selector, agent));
    }
}
