// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WorkingContractEscrow} from "../../../contracts/WorkingContractEscrow.sol";
import {IWorkingContractEscrow} from "../../../contracts/interfaces/IWorkingContractEscrow.sol";
import {Parameters, Status} from "../../../contracts/types/Types.sol";
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

    /// forge-config: default.fuzz.runs = 250
    function testFuzz_GivenEnoughAgents(uint256 seed) public {
        _stakeAgents(7);
        _stake(client, ELIGIBILITY_STAKE);
        _stake(worker, ELIGIBILITY_STAKE);
        vm.warp(_now() + 1);
        _prepare(seed);
        address[] memory drawn = _draw();

        // Twelve tries for three seats: a pool of nine with two parties can leave a seat empty, hardly ever.
        assertGe(drawn.length, 1, "drawn");
        assertLe(drawn.length, 3, "drawn");
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

    /// forge-config: default.fuzz.runs = 250
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
        _draw();
        assertFalse(escrow.isDrawn(agents[2]), "unbonding");
        assertFalse(escrow.isDrawn(agents[3]), "staked after the match");
    }

    function test_GivenFewerAgentsThanSeats() public {
        _stakeAgents(2);
        _prepare(7);
        address[] memory drawn = _draw();
        assertEq(drawn.length, 2, "drawn");
    }

    function test_GivenEmptyPool() public {
        _prepare(1);
        vm.expectEmit(address(escrow));
        emit IWorkingContractEscrow.BackupAgentsDrawn(new address[](0));
        escrow.draw();
        assertTrue(escrow.jury().drawn, "draw made");
    }

    /// Else whoever sees the seed could stake or unstake until the jury suits: a draw would then be worth nothing.
    /// forge-config: default.fuzz.runs = 250
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

    /// Also holds if a chain gives several blocks the same timestamp.
    function test_WhenPoolChangesInTheSecondOfTheDispute() public {
        _stakeAgents(6);
        escrow = _disputed(_newTerms());
        drawBlock = vm.getBlockNumber() + 1;
        vm.roll(drawBlock + 1);
        vm.setBlockhash(drawBlock, keccak256("seed"));
        uint256 prepared = vm.snapshotState();
        bytes32 drawn = keccak256(abi.encode(_draw()));
        vm.revertToState(prepared);
        _stake(agents[6], ELIGIBILITY_STAKE);
        assertEq(keccak256(abi.encode(_draw())), drawn, "the same jury");
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

    function _countDrawn() private view returns (uint256 count) {
        for (uint256 i = 0; i < agents.length; ++i) {
            if (escrow.isDrawn(agents[i])) ++count;
        }
    }
}
