/** The hashes that a contract wallet signs. A separate file: its dynamic import loads two functions of viem, not all utils. */
import type { Hex } from "@working-contracts/protocol/types";
import type { TypedDataDefinition } from "viem";
import { hashMessage, hashTypedData } from "viem/utils";

/** EIP-191, version `0x45`, as `personal_sign` hashes a text. */
export const messageHash = (message: string): Hex => hashMessage(message);
/** EIP-712. Throws if a value does not fit its type. */
export const typedDataHash = (typedData: TypedDataDefinition): Hex => hashTypedData(typedData);
