/** Checks which complaints their filer signed: the operator could insert others. */
import { actionTypedData, complaintCall } from "@working-contracts/protocol/signatures";
import canonicalize from "canonicalize";
import { type Address, type BaseError, type Client, type Hex, isAddressEqual, parseAbi } from "viem";
import { readContract } from "viem/actions";
import { hashTypedData, recoverAddress } from "viem/utils";
import type { Complaint } from "../types.js";

export interface ComplaintSigner {
  complaint: Complaint;
  /** The party that should have signed; null if the contract has none. */
  filer: string | null;
  /** The same, or why it did not; null without a signature. */
  signer: string | null;
}

const walletAbi = parseAbi(["function isValidSignature(bytes32, bytes) view returns (bytes4)"]);
const ERC1271_VALID = "0x1626ba7e";

export function signersOf(
  client: Client,
  complaints: readonly Complaint[],
  of: { id: Address; chainId: number; parties: Record<Complaint["filedByRole"], string | null> },
): Promise<ComplaintSigner[]> {
  return Promise.all(
    complaints.map(async (complaint) => {
      const { filedByRole, evidence, signed } = complaint;
      const filer = of.parties[filedByRole];
      if (signed === null || filer === null) return { complaint, filer, signer: null };
      const agent = filer as Address;
      const signature = signed.signature as Hex;
      const action = {
        ...{ chainId: of.chainId, contract: of.id, agent, call: complaintCall(canonicalize(evidence) ?? "") },
        ...{ nonce: BigInt(signed.nonce), deadline: signed.deadline },
      };
      const hash = hashTypedData(actionTypedData(action));
      const key = await recoverAddress({ hash, signature }).catch(() => null);
      if (key !== null && isAddressEqual(key, agent)) return { complaint, filer, signer: filer };
      const wallet = { address: agent, abi: walletAbi, functionName: "isValidSignature" } as const;
      const answer = await readContract(client, { ...wallet, args: [hash, signature] }).catch(ifNo);
      return { complaint, filer, signer: answer === ERC1271_VALID ? filer : `not by its key (${key})` };
    }),
  );
}

/** A revert, or something other than an answer, means no. A node's own failure says nothing. */
function ifNo(error: BaseError): null {
  if (error.walk((one) => /Reverted|ZeroData|Decoding/.test((one as Error).name))) return null;
  throw error;
}
