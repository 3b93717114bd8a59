// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {ProtocolToken} from "../../../contracts/ProtocolToken.sol";
import {IProtocolToken} from "../../../contracts/interfaces/IProtocolToken.sol";
import {Authorization, Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract MintRewardTest is BaseTest {
    address internal escrow;

    function setUp() public override {
        super.setUp();
        escrow = address(_escrowIn(Status.Created));
    }

    function test_RevertWhen_CallerNotEscrow() public {
        address[4] memory callers = [stranger, owner, address(factory), factory.IMPLEMENTATION()];
        for (uint256 i = 0; i < callers.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IProtocolToken.NotEscrow.selector, callers[i]));
            vm.prank(callers[i]);
            token.mintReward(stranger, 1);
        }
    }

    function test_RevertGiven_DailyCapReached() public {
        vm.startPrank(escrow);
        token.mintReward(stranger, DAILY_CAP - 1);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.DailyCapReached.selector, DAILY_CAP - 1, 2, DAILY_CAP));
        token.mintReward(stranger, 2);
        token.mintReward(stranger, 1);

        vm.warp(_now() + 1 days - 1);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.DailyCapReached.selector, DAILY_CAP, 1, DAILY_CAP));
        token.mintReward(stranger, 1);
        vm.warp(_now() + 1);
        token.mintReward(stranger, DAILY_CAP);
        assertEq(token.balanceOf(stranger), 2 * uint256(DAILY_CAP), "tokens");
    }

    function test_WhenEscrowMints() public {
        vm.prank(escrow);
        token.mintReward(stranger, 30e18);
        assertEq(token.balanceOf(stranger), 30e18, "tokens");
        assertEq(token.totalSupply(), 30e18, "supply");
    }

    function test_RevertGiven_TransfersClosed() public {
        vm.prank(owner);
        token.grant(client, 100);
        Authorization memory authorization = _authorizeAt(address(token), client, worker, 1);

        _expectClosed(client, worker);
        vm.prank(client);
        token.transfer(worker, 1);

        vm.prank(client);
        token.approve(stranger, 1);
        _expectClosed(client, worker);
        vm.prank(stranger);
        token.transferFrom(client, worker, 1);

        _expectClosed(client, worker);
        token.transferWithAuthorization(
            client, worker, 1, 0, type(uint40).max, authorization.nonce, authorization.signature
        );

        _expectClosed(client, address(registry));
        vm.prank(client);
        token.transfer(address(registry), 1);

        _expectClosed(address(0), address(registry));
        vm.prank(owner);
        token.grant(address(registry), 1);
    }

    function test_GivenTransfersOpen() public {
        vm.startPrank(owner);
        token.grant(client, 100);
        vm.expectEmit(address(token));
        emit IProtocolToken.TransfersOpened();
        token.openTransfers();
        vm.stopPrank();
        vm.startPrank(client);
        token.transfer(worker, 40);
        assertEq(token.balanceOf(worker), 40, "tokens");
        _expectClosed(client, address(registry));
        token.transfer(address(registry), 1);
    }

    function test_RevertWhen_DailyCapOutOfBounds() public {
        (uint128 lowest, uint128 highest) = (1000e18, 100_000e18);
        vm.startPrank(owner);
        _expectOutOfBounds(highest + 1);
        token.setDailyCap(highest + 1);
        _expectOutOfBounds(lowest - 1);
        token.setDailyCap(lowest - 1);
        vm.stopPrank();

        _expectOutOfBounds(highest + 1);
        _newToken(highest + 1, 0);
    }

    /// No delay, as on test networks.
    function test_WhenDailyCapIsRaised_AppliesAtOnceWithoutDelay() public {
        vm.startPrank(owner);
        token.setDailyCap(1000e18);
        token.setDailyCap(DAILY_CAP);
        assertEq(token.dailyCap(), DAILY_CAP, "raised");
    }

    function test_WhenDailyCapIsLowered_AppliesAtOnce() public {
        ProtocolToken delayed = _newToken(2000e18, 7 days);
        vm.expectEmit(address(delayed));
        emit IProtocolToken.DailyCapChanged(1000e18);
        vm.prank(owner);
        delayed.setDailyCap(1000e18);
        assertEq(delayed.dailyCap(), 1000e18, "lowered");
    }

    /// An owner that is also the Treasury gets the fees of disputes with itself back: without the delay it could mint
    /// seats for a contract that is already offered.
    function test_WhenDailyCapIsRaised_AppliesAfterTheDelay() public {
        ProtocolToken delayed = _newToken(1000e18, 7 days);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.RaiseNotApplicable.selector, 0));
        delayed.applyRaise();
        vm.expectEmit(address(delayed));
        emit IProtocolToken.DailyCapAnnounced(2000e18, START + 7 days);
        vm.prank(owner);
        delayed.setDailyCap(2000e18);
        assertEq(delayed.dailyCap(), 1000e18, "announced only");

        vm.warp(START + 7 days - 1);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.RaiseNotApplicable.selector, START + 7 days));
        delayed.applyRaise();
        vm.warp(START + 7 days);
        vm.expectEmit(address(delayed));
        emit IProtocolToken.DailyCapChanged(2000e18);
        vm.prank(stranger);
        delayed.applyRaise();
        assertEq(delayed.dailyCap(), 2000e18, "raised");
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.RaiseNotApplicable.selector, 0));
        delayed.applyRaise();
    }

    function test_WhenDailyCapIsSetAgain_ReplacesTheAnnouncedOne() public {
        ProtocolToken delayed = _newToken(1000e18, 7 days);
        vm.startPrank(owner);
        delayed.setDailyCap(50_000e18);
        vm.warp(START + 7 days);
        delayed.setDailyCap(2000e18);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.RaiseNotApplicable.selector, START + 14 days));
        delayed.applyRaise();
        vm.warp(START + 14 days);
        delayed.setDailyCap(1000e18);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.RaiseNotApplicable.selector, 0));
        delayed.applyRaise();
    }

    /// The owner can dilute stakers by at most this in total.
    function test_RevertWhen_GrantsExhausted() public {
        uint256 highest = token.MAX_GRANTS();
        assertEq(highest, 1_000_000e18, "highest grants");
        vm.startPrank(owner);
        token.grant(client, highest - 1);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.GrantsExhausted.selector, highest + 1, highest));
        token.grant(client, 2);
        token.grant(client, 1);
        assertEq(token.totalSupply(), highest, "supply");
        assertEq(token.granted(), highest, "granted");
    }

    /// A grant becomes a stake only after the parties to later contracts could see it for a week.
    function test_WhenGrantIsAnnounced_MintsAfterTheDelay() public {
        ProtocolToken delayed = _newToken(DAILY_CAP, 7 days);
        vm.prank(owner);
        vm.expectEmit(address(delayed));
        emit IProtocolToken.GrantAnnounced(1, client, 100, START + 7 days);
        delayed.grant(client, 100);
        assertEq(delayed.totalSupply(), 0, "announced only");
        assertEq(delayed.tokensAnnounced(), 100, "announced");

        vm.warp(START + 7 days - 1);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.GrantNotMintable.selector, 1, START + 7 days));
        delayed.mintGrant(1);
        vm.warp(START + 7 days);
        vm.prank(stranger);
        delayed.mintGrant(1);
        assertEq(delayed.balanceOf(client), 100, "minted");
        assertEq(delayed.tokensAnnounced(), 0, "no longer announced");
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.GrantNotMintable.selector, 1, 0));
        delayed.mintGrant(1);
    }

    function test_RevertWhen_WeeklyGrantsExhausted() public {
        ProtocolToken delayed = _newToken(DAILY_CAP, 7 days);
        uint256 highest = delayed.MAX_WEEKLY_GRANTS();
        assertEq(highest, 50_000e18, "highest weekly grants");
        // Weeks begin on Thursday at 00:00 UTC, as the epoch did.
        vm.warp(START + 1 weeks - 1);
        vm.startPrank(owner);
        delayed.grant(client, highest);
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.WeeklyGrantsExhausted.selector, highest + 1, highest));
        delayed.grant(client, 1);
        vm.warp(START + 1 weeks);
        delayed.grant(client, highest);
    }

    function _newToken(uint128 dailyCap, uint40 delay) private returns (ProtocolToken) {
        bytes memory arguments = abi.encode(owner, factory, registry, dailyCap, delay);
        return ProtocolToken(deployCode("out/ProtocolToken.sol/ProtocolToken.json", arguments));
    }

    function test_RevertGiven_GrantAfterTransfersOpened() public {
        vm.startPrank(owner);
        token.openTransfers();
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.GrantsExhausted.selector, 1, token.MAX_GRANTS()));
        token.grant(client, 1);
    }

    function test_RevertWhen_CallerNotOwner() public {
        vm.startPrank(stranger);
        _expectNotOwner();
        token.grant(stranger, 1);
        _expectNotOwner();
        token.openTransfers();
        _expectNotOwner();
        token.setDailyCap(1);
    }

    function _expectClosed(address from, address to) private {
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.TransfersClosed.selector, from, to));
    }

    function _expectOutOfBounds(uint128 cap) private {
        vm.expectRevert(abi.encodeWithSelector(IProtocolToken.DailyCapOutOfBounds.selector, cap, 1000e18, 100_000e18));
    }

    function _expectNotOwner() private {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, stranger));
    }
}
