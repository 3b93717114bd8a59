// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Parameters, Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract OpenVoteTest is BaseTest {
    WorkingContractEscrow internal escrow;
    uint40 internal closesAt;

    function setUp() public override {
        super.setUp();
        _stakeAgents(3);
        escrow = _disputed(_newTerms());
        closesAt = _now() + 24 hours;
        _vote(escrow, agents[0], ALL_MET);
    }

    function test_RevertGiven_NotDisputed() public {
        _assertOnlyIn(
            Status.Disputed,
            stranger,
            abi.encodeCall(IWorkingContractEscrow.openVote, (agents[0], ALL_MET, _saltOf(agents[0])))
        );
    }

    function test_RevertGiven_WindowOpen() public {
        vm.warp(closesAt - 1);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.VotingOpen.selector, closesAt));
        vm.prank(operator);
        escrow.openVote(agents[0], ALL_MET, _saltOf(agents[0]));
    }

    function test_RevertGiven_OpeningClosed() public {
        vm.warp(closesAt + 24 hours);
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.OpeningClosed.selector, closesAt + 24 hours));
        escrow.openVote(agents[0], ALL_MET, _saltOf(agents[0]));
    }

    function test_RevertGiven_NoSealedVote() public {
        vm.warp(closesAt);
        _expectNotSealed(agents[1]);
        escrow.openVote(agents[1], ALL_MET, _saltOf(agents[1]));

        _openVote(escrow, agents[0], ALL_MET);
        _expectNotSealed(agents[0]);
        escrow.openVote(agents[0], ALL_MET, _saltOf(agents[0]));
    }

    function test_RevertWhen_VotesOrSaltDiffer() public {
        vm.warp(closesAt);
        _expectMismatch(agents[0]);
        escrow.openVote(agents[0], NONE_MET, _saltOf(agents[0]));
        _expectMismatch(agents[0]);
        escrow.openVote(agents[0], ALL_MET, _saltOf(agents[1]));
    }

    function test_RevertGiven_CommitmentCopied() public {
        bytes32 copied = bytes32(escrow.ballotOf(agents[0]));
        vm.startPrank(agents[1]);
        usd.approve(address(escrow), 7.5e6);
        escrow.vote(agents[1], copied, _noAuthorization());
        vm.warp(closesAt);
        _openVote(escrow, agents[0], ALL_MET);
        _expectMismatch(agents[1]);
        escrow.openVote(agents[1], ALL_MET, _saltOf(agents[0]));
    }

    function test_RevertGiven_SealedForAnotherEscrowOrChain() public {
        WorkingContractEscrow other = _disputed(_newTerms());
        bytes32 elsewhere = _commitment(other, agents[1], ALL_MET);
        vm.startPrank(agents[1]);
        usd.approve(address(escrow), 7.5e6);
        escrow.vote(agents[1], elsewhere, _noAuthorization());
        vm.stopPrank();
        vm.warp(closesAt);
        _expectMismatch(agents[1]);
        escrow.openVote(agents[1], ALL_MET, _saltOf(agents[1]));

        vm.chainId(1);
        _expectMismatch(agents[0]);
        escrow.openVote(agents[0], ALL_MET, _saltOf(agents[0]));
    }

    function test_RevertGiven_VotesIncomplete() public {
        uint24[2] memory wrong = [uint24(0x05), 0x55];
        for (uint256 i = 0; i < wrong.length; ++i) {
            _vote(escrow, agents[1 + i], wrong[i]);
        }
        vm.warp(closesAt);
        for (uint256 i = 0; i < wrong.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.InvalidOutcomes.selector, wrong[i]));
            escrow.openVote(agents[1 + i], wrong[i], _saltOf(agents[1 + i]));
        }
    }

    function test_WhenAnyoneOpens() public {
        vm.warp(closesAt + 24 hours - 1);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.VoteOpened(agents[0], ALL_MET);
        vm.prank(stranger);
        escrow.openVote(agents[0], ALL_MET, _saltOf(agents[0]));
        assertEq(escrow.openedVotes(), 1, "opened votes");
        assertEq(escrow.ballotOf(agents[0]), (1 << 24) | uint256(ALL_MET), "ballot");
        assertStatus(escrow, Status.Disputed);
        assertBalance(address(escrow), PRICE + STAKE + BOND + 7.5e6, "escrow");
    }

    function test_GivenPanelFull() public {
        Parameters memory p = _defaultParameters();
        p.baRecruitCount = 1;
        _setParameters(p);
        escrow = _disputed(_newTerms());
        closesAt = _now() + 24 hours;
        vm.warp(closesAt - 12 hours);
        _vote(escrow, agents[0], ALL_MET);
        _openVote(escrow, agents[0], ALL_MET);
        escrow.tally();
        assertStatus(escrow, Status.Resolved);
    }

    function _expectNotSealed(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.VoteNotSealed.selector, agent));
    }

    function _expectMismatch(address agent) private {
        vm.expectRevert(abi.encodeWithSelector(IWorkingContractEscrow.CommitmentMismatch.selector, agent));
    }
}
