// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";

/// @notice ISO 8601 text of a UTC time, to whole seconds.
library IsoTime {
    /// @notice `timestamp` (seconds since 1970) as `YYYY-MM-DDTHH:MM:SSZ`.
    function format(uint40 timestamp) internal pure returns (string memory) {
        (uint256 year, uint256 month, uint256 day) = _civil(timestamp / 1 days);
        uint256 second = timestamp % 1 days;
        return string.concat(
            string.concat(Strings.toString(year), "-", _two(month), "-", _two(day)),
            string.concat("T", _two(second / 1 hours), ":", _two(second % 1 hours / 1 minutes), ":", _two(second % 60)),
            "Z"
        );
    }

    /// @dev Howard Hinnant's civil_from_days, for days since 1970-01-01.
    function _civil(uint256 daysSinceEpoch) private pure returns (uint256 year, uint256 month, uint256 day) {
        uint256 z = daysSinceEpoch + 719_468;
        uint256 era = z / 146_097;
        uint256 dayOfEra = z % 146_097;
        uint256 yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365;
        uint256 dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100);
        uint256 shifted = (5 * dayOfYear + 2) / 153;
        day = dayOfYear - (153 * shifted + 2) / 5 + 1;
        month = shifted < 10 ? shifted + 3 : shifted - 9;
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
    }

    function _two(uint256 value) private pure returns (string memory) {
        return value < 10 ? string.concat("0", Strings.toString(value)) : Strings.toString(value);
    }
}
