// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";
import {TermsCodec} from "../../../contracts/libraries/TermsCodec.sol";
import {Parameters, Terms} from "../../../contracts/types/Types.sol";

contract TermsCodecTest is Test {
    using TermsCodec for bytes;

    /// Terms and packed bytes of a known form map one to one, so equal terms have one address.
    function testFuzz_PackIsInverseOfUnpack(bytes32[4] memory words, uint8 flags, address counterparty) public pure {
        bytes memory packed = abi.encodePacked(words[0], words[1], words[2], bytes13(words[3]));
        packed[31] = bytes1(flags & 3);
        if (counterparty != address(0)) packed = bytes.concat(packed, bytes20(counterparty));
        assertTrue(packed.hasKnownForm(), "form");
        assertEq(TermsCodec.pack(packed.unpack()), packed, "packed");
    }

    function testFuzz_OtherBytesHaveNoKnownForm(bytes memory packed, bytes32[5] memory words, uint8 flags) public pure {
        if (packed.length != 109 && packed.length != 129) assertFalse(packed.hasKnownForm(), "other length");

        packed = abi.encodePacked(words[0], words[1], words[2], bytes13(words[3]));
        packed[31] = bytes1(uint8(bound(flags, 4, 255)));
        assertFalse(packed.hasKnownForm(), "unknown flag");

        packed[31] = 0;
        assertTrue(packed.hasKnownForm(), "known form");
        assertFalse(bytes.concat(packed, bytes20(0)).hasKnownForm(), "zero counterparty");
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
