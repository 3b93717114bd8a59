// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Vm} from "forge-std/Vm.sol";
import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IBackupAgentRegistry} from "../../../contracts/interfaces/IBackupAgentRegistry.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Authorization, Parameters, Status} from "../../../contracts/types/Types.sol";
import {BaseTest} from "../Base.t.sol";

contract DrawTest is BaseTest {
    WorkingContractEscrow internal escrow;
    uint256 internal drawBlock;

    function setUp() public override {
        super.setUp();
        Parameters memory p = _defaultParameters();
        p.baRecruitCount = 3;
        _setParameters(p);
    }

    function test_RevertGiven_NotDisputed() public {
        _assertOnlyIn(Status.Disputed, stranger, abi.encodeCall(IWorkingContractEscrow.draw, ()));
    }

    function test_RevertGiven_NoRecruitCount() public {
        _setParameters(_defaultParameters());
        _stakeAgents(7);
        _prepare(1);
        vm.expectRevert(IWorkingContractEscrow.NoDraw.selector);
        escrow.draw();
    }

    function test_RevertGiven_NoHashYet() public {
        _stakeAgents(7);
        escrow = _disputed(_newTerms());
        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert(IWorkingContractEscrow.NoDraw.selector);
            escrow.draw();
            vm.roll(vm.getBlockNumber() + 1);
        }
    }

    /// No one drew for more than a day's blocks: the next attempt uses a new seed, unknown when it is armed.
    function test_GivenHashOutOfReach() public {
        _stakeAgents(7);
        escrow = _disputed(_newTerms());
        uint256 late = vm.getBlockNumber() + 10_000;
        vm.roll(late);
        vm.prank(stranger);
        escrow.draw();
        assertFalse(escrow.jury().drawn, "no jury yet");
        assertEq(escrow.jury().drawBlock, late + 1, "block of the next seed");

        for (uint256 i = 0; i < 2; ++i) {
            vm.expectRevert(IWorkingContractEscrow.NoDraw.selector);
            escrow.draw();
            vm.roll(vm.getBlockNumber() + 1);
        }
        vm.setBlockhash(late + 1, keccak256("seed"));
        assertEq(_draw().length, 3, "drawn");
        assertTrue(escrow.jury().drawn, "draw made");
    }

    function test_RevertGiven_Drawn() public {
        _stakeAgents(7);
        _prepare(1);
        escrow.draw();
        vm.expectRevert(IWorkingContractEscrow.NoDraw.selector);
        escrow.draw();
    }

    /// forge-config: default.fuzz.runs = 50
    function testFuzz_GivenEnoughAgents(uint256 seed) public {
        _stakeAgents(7);
        _stake(client, ELIGIBILITY_STAKE);
        _stake(worker, ELIGIBILITY_STAKE);
        vm.warp(_now() + 1);
        _prepare(seed);
        address[] memory drawn = _draw();

        assertEq(drawn.length, 3, "drawn");
        for (uint256 i = 0; i < drawn.length; ++i) {
            assertTrue(escrow.isDrawn(drawn[i]), "marked");
            assertTrue(drawn[i] != client && drawn[i] != worker, "no party");
            for (uint256 j = 0; j < i; ++j) {
                assertNotEq(drawn[i], drawn[j], "once each");
            }
        }
        assertEq(_countDrawn(), drawn.length, "no one else");
        assertTrue(escrow.jury().drawn, "draw made");
    }

    /// forge-config: default.fuzz.runs = 50
    function testFuzz_GivenAgentsNotEligible(uint256 seed) public {
        _stakeAgents(3);
        vm.prank(agents[2]);
        registry.requestUnstake(agents[2]);
        vm.warp(_now() + 1);
        escrow = _matched(_newTerms());
        _stake(agents[3], ELIGIBILITY_STAKE);
        vm.warp(_now() + 1 days);
        _deliver(escrow, 0);
        _dispute(escrow);
        _seed(seed);
        assertEq(_draw().length, 2, "all others, although they are fewer than the seats");
        assertFalse(escrow.isDrawn(agents[2]), "unbonding");
        assertFalse(escrow.isDrawn(agents[3]), "staked after the match");
    }

    function test_GivenAsManyAgentsAsSeats() public {
        uint256 fresh = vm.snapshotState();
        uint8[3] memory sizes = [5, 15, 31];
        for (uint256 i = 0; i < sizes.length; ++i) {
            _setPanel(sizes[i], 1000);
            _stakeMembers(0, sizes[i], ELIGIBILITY_STAKE);
            _prepare(0);
            _assertAllDrawn(sizes[i]);
            vm.revertToState(fresh);
        }
    }

    /// Twenty slots for five seats: five agents that can be drawn, eight below the threshold, five that staked more
    /// after the match, and both parties.
    function test_GivenAgentsNotEligible_WhenPoolIsLookedAtWhole() public {
        _stakeMembers(5, 8, ELIGIBILITY_STAKE);
        _setPanel(5, 2000);
        _stakeMembers(13, 5, 2 * ELIGIBILITY_STAKE);
        _stakeMembers(0, 5, 2 * ELIGIBILITY_STAKE);
        _stake(client, 2 * ELIGIBILITY_STAKE);
        _stake(worker, 2 * ELIGIBILITY_STAKE);
        vm.warp(_now() + 1);
        escrow = _matched(_newTerms());
        _stakeMembers(13, 5, 1);
        _deliver(escrow, 0);
        _dispute(escrow);
        _seed(0);
        _assertAllDrawn(5);
    }

    /// Compares with a shuffle of the whole pool in memory. No one is eligible, so that no seat ends it early.
    /// forge-config: default.fuzz.runs = 50
    function testFuzz_GivenAnyPool(uint256 seed, uint256 size) public {
        size = bound(size, 1, 40);
        _stakeMembers(0, size, ELIGIBILITY_STAKE);
        _setPanel(3, 2000);
        _prepare(seed);

        vm.startStateDiffRecording();
        assertEq(_draw().length, 0, "drawn");
        Vm.AccountAccess[] memory calls = vm.stopAndReturnStateDiff();

        uint256[] memory slots = _slots(size);
        uint256 looks;
        for (uint256 i = 0; i < calls.length; ++i) {
            bytes memory data = calls[i].data;
            if (calls[i].account != address(registry) || bytes4(data) != registry.poolAt.selector) continue;
            uint256 other = looks + uint256(keccak256(abi.encode(blockhash(drawBlock), looks))) % (size - looks);
            (slots[looks], slots[other]) = (slots[other], slots[looks]);
            assertEq(data, abi.encodeCall(registry.poolAt, (slots[looks++], _now())), "slot");
        }
        assertEq(looks, size < 12 ? size : 12, "slots looked at");
    }

    function test_GivenEmptyPool() public {
        _prepare(1);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.BackupAgentsDrawn(new address[](0));
        escrow.draw();
        assertTrue(escrow.jury().drawn, "draw made");
    }

    /// Else whoever sees the seed could stake or unstake until the jury suits: a draw would then be worth nothing.
    /// Also holds within the second of the dispute, if a chain gives several blocks the same timestamp.
    /// forge-config: default.fuzz.runs = 50
    function testFuzz_WhenPoolChangesAfterTheDispute(uint256 seed, uint256 leaving) public {
        _stakeAgents(6);
        _prepare(seed);
        uint256 prepared = vm.snapshotState();
        bytes32 drawn = keccak256(abi.encode(_draw()));
        address leaver = agents[leaving % 6];
        vm.revertToState(prepared);

        _stake(agents[6], ELIGIBILITY_STAKE);
        _stake(stranger, ELIGIBILITY_STAKE);
        vm.prank(leaver);
        registry.requestUnstake(leaver);
        assertEq(keccak256(abi.encode(_draw())), drawn, "the same jury");
    }

    /// It asked for its stake after the match, so it is drawn; until it has voted, anyone can pay it out.
    function test_GivenDrawnAgentIsPaidOut() public {
        _stakeAgents(3);
        escrow = _matched(_newTerms());
        address leaver = agents[0];
        vm.prank(leaver);
        registry.requestUnstake(leaver);
        vm.warp(_now() + 40 hours);
        _deliver(escrow, 0);
        _dispute(escrow);
        _seed(0);
        assertEq(_draw().length, 3, "drawn");

        vm.warp(_now() + 8 hours);
        vm.prank(stranger);
        registry.withdrawStake(leaver);
        assertTrue(escrow.isDrawn(leaver), "its seat");
        Authorization memory bond = _authorize(leaver, address(escrow), _voteBondOf(escrow.terms()));
        bytes32 commitment = _commitment(escrow, leaver, ALL_MET);
        vm.expectRevert(abi.encodeWithSelector(IBackupAgentRegistry.NotEligible.selector, leaver, 0, ELIGIBILITY_STAKE));
        vm.prank(leaver);
        escrow.vote(leaver, commitment, bond);
    }

    function test_GivenAnotherSeed() public {
        _stakeAgents(7);
        _prepare(1);
        bytes32 first = keccak256(abi.encode(_draw()));
        _prepare(1);
        assertEq(keccak256(abi.encode(_draw())), first, "same seed");
        _prepare(2);
        assertNotEq(keccak256(abi.encode(_draw())), first, "another seed");
    }

    function _prepare(uint256 seed) private {
        escrow = _disputed(_newTerms());
        _seed(seed);
    }

    function _seed(uint256 seed) private {
        drawBlock = vm.getBlockNumber() + 1;
        vm.roll(drawBlock + 1);
        vm.setBlockhash(drawBlock, keccak256(abi.encode(seed)));
    }

    function _draw() private returns (address[] memory) {
        vm.recordLogs();
        vm.prank(stranger);
        escrow.draw();
        return abi.decode(vm.getRecordedLogs()[0].data, (address[]));
    }

    function _setPanel(uint8 seats, uint32 eligibilityStake) private {
        Parameters memory p = _defaultParameters();
        (p.baRecruitCount, p.baEligibilityStake) = (seats, eligibilityStake);
        _setParameters(p);
    }

    function _member(uint256 i) private returns (address) {
        return makeAddr(string.concat("member ", vm.toString(i)));
    }

    function _stakeMembers(uint256 first, uint256 count, uint256 amount) private {
        for (uint256 i = first; i < first + count; ++i) {
            _stake(_member(i), amount);
        }
        vm.warp(_now() + 1);
    }

    /// @dev With any of twenty seeds, exactly the first `count` members are drawn.
    function _assertAllDrawn(uint256 count) private {
        uint256 prepared = vm.snapshotState();
        for (uint256 seed = 0; seed < 20; ++seed) {
            vm.setBlockhash(drawBlock, keccak256(abi.encode(seed)));
            assertEq(_draw().length, count, "drawn");
            for (uint256 i = 0; i < count; ++i) {
                assertTrue(escrow.isDrawn(_member(i)), "member drawn");
            }
            vm.revertToState(prepared);
        }
    }

    function _slots(uint256 size) private pure returns (uint256[] memory slots) {
        slots = new uint256[](size);
        for (uint256 i = 0; i < size; ++i) {
            slots[i] = i;
        }
    }

    function _countDrawn() private view returns (uint256 count) {
        for (uint256 i = 0; i < agents.length; ++i) {
            if (escrow.isDrawn(agents[i])) ++count;
        }
    }
}
