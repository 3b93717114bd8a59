// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {IsoTime} from "../../../contracts/libraries/IsoTime.sol";

contract IsoTimeTest is Test {
    function test_KnownTimes() public pure {
        assertEq(IsoTime.format(0), "1970-01-01T00:00:00Z", "epoch");
        assertEq(IsoTime.format(951_782_399), "2000-02-28T23:59:59Z", "before a leap day of a leap century");
        assertEq(IsoTime.format(951_782_400), "2000-02-29T00:00:00Z", "leap day of a leap century");
        assertEq(IsoTime.format(951_868_800), "2000-03-01T00:00:00Z", "after it");
        assertEq(IsoTime.format(1_000_000_000), "2001-09-09T01:46:40Z", "a billion seconds");
        assertEq(IsoTime.format(1_709_164_800), "2024-02-29T00:00:00Z", "leap day");
        assertEq(IsoTime.format(1_767_225_599), "2025-12-31T23:59:59Z", "end of a year");
        assertEq(IsoTime.format(2_147_483_648), "2038-01-19T03:14:08Z", "past 31 bits");
        assertEq(IsoTime.format(4_107_542_400), "2100-03-01T00:00:00Z", "no leap day in 2100");
        assertEq(IsoTime.format(253_402_300_799), "9999-12-31T23:59:59Z", "end of four-digit years");
    }

    /// Reads the text back by counting days one year and month at a time, unlike the formula under test.
    function testFuzz_TextReadsBack(uint40 timestamp) public pure {
        timestamp = uint40(bound(timestamp, 0, 253_402_300_799));
        bytes memory text = bytes(IsoTime.format(timestamp));
        assertEq(text.length, 20, "length");
        uint256 year = _number(text, 0, 4);
        uint256 month = _number(text, 5, 2);
        uint256 day = _number(text, 8, 2);
        uint256 daysBefore = 365 * (year - 1970) + _leapYearsBefore(year) - _leapYearsBefore(1970);
        for (uint256 i = 1; i < month; ++i) {
            daysBefore += _daysIn(year, i);
        }
        assertTrue(day >= 1 && day <= _daysIn(year, month), "day of the month");
        uint256 second = _number(text, 11, 2) * 3600 + _number(text, 14, 2) * 60 + _number(text, 17, 2);
        assertEq((daysBefore + day - 1) * 1 days + second, timestamp, "timestamp");
    }

    function _number(bytes memory text, uint256 start, uint256 length) private pure returns (uint256 number) {
        for (uint256 i = start; i < start + length; ++i) {
            number = number * 10 + uint8(text[i]) - 48;
        }
    }

    function _leapYearsBefore(uint256 year) private pure returns (uint256) {
        return (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    }

    function _daysIn(uint256 year, uint256 month) private pure returns (uint256) {
        if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
        return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
    }
}
