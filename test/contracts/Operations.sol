// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice A call that the Relay carries; see {IRelay.execute}.
struct Operation {
    address target;
    uint32 gasLimit;
    bytes data;
}

function packOperations(Operation[] memory operations) pure returns (bytes memory packed) {
    for (uint256 i = 0; i < operations.length; ++i) {
        Operation memory o = operations[i];
        packed = abi.encodePacked(packed, o.target, o.gasLimit, uint24(o.data.length), o.data);
    }
}
