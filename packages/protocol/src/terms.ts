/** The terms that a Working Contract's address commits to: the hashed document and the packed on-chain terms. */
import canonicalize from "canonicalize";
import {
  concatHex,
  encodePacked,
  getContractAddress,
  hexToBigInt,
  hexToNumber,
  keccak256,
  numberToHex,
  sha256,
  size,
  sliceHex,
  stringToHex,
  zeroAddress,
} from "viem";
import { eachParameter, PARAMETER_NAMES, PARAMETER_WIDTHS, type Parameters } from "./parameters.js";
import type { Address, EscrowTerms, Hex } from "./types.js";

/** The text of the terms, hashed as canonical JSON (RFC 8785). Absent fields are null. */
export interface TermsDocument {
  acceptanceCriteria: string[];
  application: string | null;
  applicationTerms: Record<string, unknown> | null;
  awardMethod: string;
  contractType: string;
  initiator: string;
  salt: Hex;
  supplementaryMaterialsHash: Hex | null;
  taskDescription: string;
  title: string;
  verificationMode: string;
}

export interface TermsText {
  title: string;
  taskDescription: string;
  acceptanceCriteria: string[];
  awardMethod: "direct_award" | "open_tender";
  initiator: "client" | "worker";
  application?: string | null;
  applicationTerms?: Record<string, unknown> | null;
  /** Unencrypted reference; the document contains only its hash. */
  supplementaryMaterials?: string | null;
  salt: Hex;
}

/** The document that {@link termsHash} hashes. */
export function termsDocument(text: TermsText): TermsDocument {
  return {
    acceptanceCriteria: text.acceptanceCriteria,
    application: text.application ?? null,
    applicationTerms: text.applicationTerms ?? null,
    awardMethod: text.awardMethod,
    contractType: "fixed",
    initiator: text.initiator,
    salt: text.salt,
    supplementaryMaterialsHash:
      text.supplementaryMaterials == null ? null : keccak256(stringToHex(text.supplementaryMaterials)),
    taskDescription: text.taskDescription,
    title: text.title,
    verificationMode: "privacy-preserving",
  };
}

/** The document as RFC 8785 text. Throws on values that canonical JSON cannot represent: a lone surrogate, NaN. */
export function canonicalTerms(document: TermsDocument): string {
  const text = canonicalize(document);
  if (text === undefined) throw new TypeError("A terms document must be an object");
  return text;
}

export function termsHash(document: TermsDocument): Hex {
  return keccak256(stringToHex(canonicalTerms(document)));
}

/** Salt of a creation attempt: the same bytes from the same caller yield the same address (docs/rules.md 17, 19). */
export function creationSalt(caller: Address, rawBody: Uint8Array): Hex {
  return keccak256(concatHex([caller, sha256(rawBody, "hex")]));
}

const WORKER_INITIATED = 1;
const COMPUTED_CRITERIA = 2;
/** Packed bytes before the counterparty, which follows only if one is named. */
const LENGTH_WITHOUT_COUNTERPARTY = 115;
const LENGTH_WITH_COUNTERPARTY = 135;

/** Packs the escrow's 115 or 135 immutable bytes (TermsCodec.pack). Throws if a number does not fit its field. */
export function packTerms(terms: EscrowTerms): Hex {
  const flags =
    (terms.workerInitiated ? WORKER_INITIATED : 0) | (terms.computedCriteria ? COMPUTED_CRITERIA : 0);
  return concatHex([
    encodePacked(
      ["address", "uint96", "uint8", "uint8", "uint40", "uint40", "uint40", "uint40", "bytes32"],
      [
        terms.initiator,
        terms.price,
        terms.criteriaCount,
        flags,
        terms.matchDeadline,
        terms.withdrawalDeadline,
        terms.deliveryDeadline,
        terms.reviewDeadline,
        terms.termsHash,
      ],
    ),
    packParameters(terms.parameters),
    terms.counterparty === zeroAddress ? "0x" : encodePacked(["address"], [terms.counterparty]),
  ]);
}

/** Packs a parameter snapshot into the factory's key for it (TermsCodec.packParameters). */
export function packParameters(parameters: Parameters): Hex {
  return concatHex(
    PARAMETER_NAMES.map((name) => numberToHex(parameters[name], { size: PARAMETER_WIDTHS[name] })),
  );
}

/** Reverses {@link packTerms}; addresses are lower case. Throws if the length is neither 115 nor 135 bytes. */
export function unpackTerms(packed: Hex): EscrowTerms {
  const named = size(packed) === LENGTH_WITH_COUNTERPARTY;
  if (!named && size(packed) !== LENGTH_WITHOUT_COUNTERPARTY) {
    throw new RangeError("Packed terms are neither 115 nor 135 bytes");
  }
  const number = (start: number, length: number) => hexToNumber(sliceHex(packed, start, start + length));
  const flags = number(33, 1);
  return {
    initiator: sliceHex(packed, 0, 20).toLowerCase() as Address,
    price: hexToBigInt(sliceHex(packed, 20, 32)),
    counterparty: named
      ? (sliceHex(packed, LENGTH_WITHOUT_COUNTERPARTY).toLowerCase() as Address)
      : zeroAddress,
    criteriaCount: number(32, 1),
    workerInitiated: (flags & WORKER_INITIATED) !== 0,
    computedCriteria: (flags & COMPUTED_CRITERIA) !== 0,
    matchDeadline: number(34, 5),
    withdrawalDeadline: number(39, 5),
    deliveryDeadline: number(44, 5),
    reviewDeadline: number(49, 5),
    termsHash: sliceHex(packed, 54, 86).toLowerCase() as Hex,
    parameters: unpackParameters(sliceHex(packed, 86, LENGTH_WITHOUT_COUNTERPARTY)),
  };
}

function unpackParameters(packed: Hex): Parameters {
  let offset = 0;
  return eachParameter((name) => {
    const start = offset;
    offset += PARAMETER_WIDTHS[name];
    return hexToNumber(sliceHex(packed, start, offset));
  });
}

const CREATE2_SALT = numberToHex(0, { size: 32 });

/** The escrow's lower-case address: OpenZeppelin's EIP-1167 clone with immutable arguments, made with CREATE2. */
export function escrowAddress(commitment: {
  factory: Address;
  implementation: Address;
  terms: EscrowTerms;
}): Address {
  const packed = packTerms(commitment.terms);
  const bytecode = concatHex([
    "0x61",
    numberToHex(size(packed) + 0x2d, { size: 2 }),
    "0x3d81600a3d39f3363d3d373d3d3d363d73",
    commitment.implementation,
    "0x5af43d82803e903d91602b57fd5bf3",
    packed,
  ]);
  return getContractAddress({
    opcode: "CREATE2",
    from: commitment.factory,
    salt: CREATE2_SALT,
    bytecode,
  }).toLowerCase() as Address;
}
