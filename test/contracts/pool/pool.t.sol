// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {BaseTest} from "../Base.t.sol";

contract PoolTest is BaseTest {
    uint256 internal constant CHANGES = 40;

    /// Times of changes, and the agents in the pool from that second on, as bits.
    uint40[] internal times;
    uint256[] internal members;

    /// forge-config: default.fuzz.runs = 50
    function testFuzz_WhenAgentsJoinAndLeave(uint256 seed) public {
        uint256 inside;
        for (uint256 i = 0; i < CHANGES; ++i) {
            seed = uint256(keccak256(abi.encode(seed)));
            // Sometimes several changes in one second.
            vm.warp(_now() + seed % 3);
            uint256 who = (seed >> 8) % agents.length;
            inside = _change(agents[who], 1 << who, inside);
            times.push(_now());
            members.push(inside);
        }
        assertEq(registry.poolSize(times[0]), 0, "before the first change");
        for (uint256 i = 0; i < CHANGES; ++i) {
            if (i + 1 < CHANGES && times[i + 1] == times[i]) continue;
            uint40 until = i + 1 < CHANGES ? times[i + 1] : _now() + 1 days;
            assertEq(_poolBefore(times[i] + 1), members[i], "from the change on");
            assertEq(_poolBefore(until), members[i], "until the next one");
        }
        assertEq(_poolBefore(type(uint40).max), inside, "now");
    }

    /// @dev Joins, leaves, or rejoins after unbonding.
    function _change(address agent, uint256 bit, uint256 inside) private returns (uint256) {
        if (inside & bit != 0) {
            vm.prank(agent);
            registry.requestUnstake(agent);
            return inside & ~bit;
        }
        (,,, uint40 releasableAt,) = registry.stakes(agent);
        if (releasableAt != 0) {
            if (_now() < releasableAt) vm.warp(releasableAt);
            registry.withdrawStake(agent);
        }
        _stake(agent, ELIGIBILITY_STAKE);
        return inside | bit;
    }

    function _poolBefore(uint40 time) private view returns (uint256 inside) {
        uint256 size = registry.poolSize(time);
        for (uint256 slot = 0; slot < size; ++slot) {
            address agent = registry.poolAt(slot, time);
            uint256 bit = _bitOf(agent);
            assertEq(inside & bit, 0, "once each");
            inside |= bit;
        }
    }

    function _bitOf(address agent) private view returns (uint256) {
        for (uint256 i = 0; i < agents.length; ++i) {
            if (agents[i] == agent) return 1 << i;
        }
        revert("slot of an unknown agent");
    }
}
