// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {TermsCodec} from "../../../contracts/libraries/TermsCodec.sol";
import {Parameters, Terms} from "../../../contracts/types/Types.sol";

contract TermsCodecTest is Test {
    using TermsCodec for bytes;

    function testFuzz_UnpackIsInverseOfPack(Terms memory t) public pure {
        bytes memory packed = TermsCodec.pack(t);
        assertEq(packed.length, 135, "length");
        assertTrue(packed.hasKnownFlags(), "flags");
        assertEq(keccak256(abi.encode(packed.unpack())), keccak256(abi.encode(t)), "terms");
    }

    /// Terms and packed forms with known flags map one to one, so equal terms have one address.
    function testFuzz_PackIsInverseOfUnpack(bytes32[5] memory words, uint8 flags) public pure {
        bytes memory packed = abi.encodePacked(words[0], words[1], words[2], words[3], bytes7(words[4]));
        packed[53] = bytes1(flags & 3);
        assertTrue(packed.hasKnownFlags(), "flags");
        assertEq(TermsCodec.pack(packed.unpack()), packed, "packed");
    }

    function testFuzz_ReadersAgreeWithUnpack(Terms memory t) public pure {
        bytes memory packed = TermsCodec.pack(t);
        assertEq(packed.initiator(), t.initiator, "initiator");
        assertEq(packed.price(), t.price, "price");
        assertEq(packed.counterparty(), t.counterparty, "counterparty");
        assertEq(packed.criteriaCount(), t.criteriaCount, "criteria");
        assertEq(packed.reviewDeadline(), t.reviewDeadline, "review deadline");
        assertEq(packed.packedParameters(), TermsCodec.packParameters(t.parameters), "packed parameters");
        Parameters memory p = packed.parameters();
        assertEq(keccak256(abi.encode(p)), keccak256(abi.encode(t.parameters)), "parameters");
    }
}
