/** The hashes that a contract wallet signs. */
import type { Hex } from "@working-contracts/protocol/types";
import type { TypedDataDefinition } from "viem";
import { hashMessage, hashTypedData } from "viem/utils";

export const messageHash = (message: string): Hex => hashMessage(message);
export const typedDataHash = (typedData: TypedDataDefinition): Hex => hashTypedData(typedData);
