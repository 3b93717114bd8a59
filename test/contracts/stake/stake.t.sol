// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC3009} from "@openzeppelin/contracts/token/ERC20/extensions/draft-ERC3009.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IProtocolToken} from "../../../contracts/interfaces/IProtocolToken.sol";
import {Authorization, Parameters} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract StakeTest is BaseTest {
    uint256 internal constant AMOUNT = ELIGIBILITY_STAKE;
    address internal agent;

    function setUp() public override {
        super.setUp();
        agent = agents[0];
        vm.prank(owner);
        token.grant(agent, 2 * AMOUNT);
    }

    function test_RevertWhen_CallerNeitherAgentNorOperator() public {
        Authorization memory authorization = _authorizeStake(AMOUNT);
        _expectNotAgentOrOperator(stranger);
        vm.prank(stranger);
        registry.stake(agent, AMOUNT, authorization);
    }

    function test_RevertWhen_AmountIsZero() public {
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotStaked.selector, agent));
        vm.prank(agent);
        registry.stake(agent, 0, _noAuthorization());
    }

    function test_RevertGiven_Unbonding() public {
        vm.startPrank(agent);
        token.approve(address(registry), 2 * AMOUNT);
        registry.stake(agent, AMOUNT, _noAuthorization());
        registry.requestUnstake(agent);
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.Unbonding.selector, agent, _now() + 48 hours));
        registry.stake(agent, AMOUNT, _noAuthorization());
    }

    function test_RevertWhen_OperatorBringsNoSignature() public {
        vm.prank(agent);
        token.approve(address(registry), AMOUNT);
        _expectNotAgentOrOperator(operator);
        vm.prank(operator);
        registry.stake(agent, AMOUNT, _noAuthorization());
    }

    function test_RevertWhen_AnotherAmount() public {
        Authorization memory authorization = _authorizeStake(AMOUNT - 1);
        vm.expectRevert(ERC3009.ERC3009InvalidSignature.selector);
        vm.prank(operator);
        registry.stake(agent, AMOUNT, authorization);
    }

    function test_WhenOperatorBringsSignedStake() public {
        Authorization memory authorization = _authorizeStake(AMOUNT);
        _expectStaked(AMOUNT, AMOUNT);
        vm.prank(operator);
        registry.stake(agent, AMOUNT, authorization);
        _assertStaked();
    }

    function test_WhenAgentPaysFromAllowance() public {
        vm.startPrank(agent);
        token.approve(address(registry), AMOUNT);
        _expectStaked(AMOUNT, AMOUNT);
        registry.stake(agent, AMOUNT, _noAuthorization());
        _assertStaked();
    }

    function test_WhenStakeGrows() public {
        vm.startPrank(agent);
        token.approve(address(registry), 2 * AMOUNT);
        registry.stake(agent, AMOUNT, _noAuthorization());
        vm.warp(_now() + 100);
        assertTrue(registry.isEligible(agent, AMOUNT, _now()), "eligible before");
        _expectStaked(AMOUNT, 2 * AMOUNT);
        registry.stake(agent, AMOUNT, _noAuthorization());
        assertFalse(registry.isEligible(agent, AMOUNT, _now()), "eligible for an earlier dispute");
        assertTrue(registry.isEligible(agent, 2 * AMOUNT, _now() + 1), "eligible for a later dispute");
        assertEq(registry.poolSize(_now() + 1), 1, "pool");
    }

    function test_WhenStakeTooSmallToVoteWith() public {
        vm.startPrank(agent);
        token.approve(address(registry), AMOUNT);
        registry.stake(agent, AMOUNT - 1, _noAuthorization());
        assertEq(registry.poolSize(_now() + 1), 0, "pool");
        registry.stake(agent, 1, _noAuthorization());
        assertEq(registry.poolSize(_now() + 1), 1, "pool");
        assertEq(registry.poolAt(0, _now() + 1), agent, "first of the pool");
    }

    /// The owner can keep a stake out of every draw by raising the threshold for a moment.
    function test_GivenThresholdIsLoweredLater() public {
        Parameters memory p = _defaultParameters();
        p.baEligibilityStake = 1001;
        _setParameters(p);
        vm.startPrank(agent);
        token.approve(address(registry), AMOUNT + 1);
        registry.stake(agent, AMOUNT, _noAuthorization());
        vm.stopPrank();
        _setParameters(_defaultParameters());
        vm.warp(_now() + 1);
        assertTrue(registry.isEligible(agent, AMOUNT, _now()), "eligible");
        assertEq(registry.poolSize(_now()), 0, "pool");
        (,,,, uint40 poolSlot) = registry.stakes(agent);
        assertEq(poolSlot, 0, "what the agent sees");

        vm.prank(agent);
        registry.stake(agent, 1, _noAuthorization());
        assertEq(registry.poolSize(_now() + 1), 1, "pool after one more unit");
        assertFalse(registry.isEligible(agent, AMOUNT, _now()), "eligible for an earlier match");
    }

    function test_RevertWhen_AuthorizationBroadcastAtTheToken() public {
        Authorization memory authorization = _authorizeStake(AMOUNT);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.TransfersClosed.selector, agent, address(registry)));
        vm.prank(stranger);
        token.transferWithAuthorization(
            agent,
            address(registry),
            AMOUNT,
            authorization.validAfter,
            authorization.validBefore,
            authorization.nonce,
            authorization.signature
        );

        vm.prank(operator);
        registry.stake(agent, AMOUNT, authorization);
        _assertStaked();
    }

    function _authorizeStake(uint256 amount) private returns (Authorization memory) {
        return _authorizeAt(address(token), agent, address(registry), amount);
    }

    function _expectNotAgentOrOperator(address caller) private {
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotAgentOrOperator.selector, caller, agent));
    }

    function _expectStaked(uint256 amount, uint256 total) private {
        vm.expectEmit(address(registry));
        emit IBackupAgentRegistry.Staked(agent, amount, total);
    }

    function _assertStaked() private view {
        assertEq(token.balanceOf(agent), AMOUNT, "tokens of the agent");
        assertEq(token.balanceOf(address(registry)), AMOUNT, "tokens of the registry");
        assertEq(registry.poolSize(_now() + 1), 1, "pool");
        assertFalse(registry.isEligible(agent, AMOUNT, _now()), "eligible in the same second");
        assertTrue(registry.isEligible(agent, AMOUNT, _now() + 1), "eligible later");
        assertFalse(registry.isEligible(agent, AMOUNT + 1, _now() + 1), "eligible for more");
    }
}
