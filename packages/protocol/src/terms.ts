/** The terms that a Working Contract's address commits to: the hashed document, the packed on-chain terms, and the parameters. */
import canonicalize from "canonicalize";
import { concatHex, keccak256, numberToHex, sha256, size, sliceHex, stringToHex } from "./hex.js";
import { type Address, type EscrowTerms, type Hex, ZERO_ADDRESS } from "./types.js";

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

/** The optional fields can be null or absent: both give the same document. */
interface TermsText {
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

/** keccak256 of the text of {@link canonicalTerms}, which the escrow's address commits to. Throws if that does. */
export function termsHash(document: TermsDocument): Hex {
  return keccak256(stringToHex(canonicalTerms(document)));
}

/** Salt of a creation attempt: the same bytes from the same caller yield the same address (docs/rules.md 17, 19). */
export function creationSalt(caller: Address, rawBody: Uint8Array): Hex {
  return keccak256(concatHex([caller, sha256(rawBody)]));
}

const WORKER_INITIATED = 1;
const COMPUTED_CRITERIA = 2;
/** Packed bytes before the counterparty, which follows only if one is named. */
const LENGTH_WITHOUT_COUNTERPARTY = 109;
const LENGTH_WITH_COUNTERPARTY = 129;

/** Packs the escrow's 109 or 129 immutable bytes (TermsCodec.pack). Throws on a value of another form: addresses could collide. */
export function packTerms(terms: EscrowTerms): Hex {
  const flags =
    (terms.workerInitiated ? WORKER_INITIATED : 0) | (terms.computedCriteria ? COMPUTED_CRITERIA : 0);
  return concatHex([
    fixed(terms.initiator, 20),
    numberToHex(terms.price, { size: 10 }),
    numberToHex(terms.criteriaCount, { size: 1 }),
    numberToHex(flags, { size: 1 }),
    numberToHex(terms.matchDeadline, { size: 4 }),
    numberToHex(terms.withdrawalDeadline, { size: 4 }),
    numberToHex(terms.deliveryDeadline, { size: 4 }),
    numberToHex(terms.reviewDeadline, { size: 4 }),
    fixed(terms.termsHash, 32),
    packParameters(terms.parameters),
    terms.counterparty === ZERO_ADDRESS ? "0x" : fixed(terms.counterparty, 20),
  ]);
}

/** Packs a parameter snapshot into the factory's key for it (TermsCodec.packParameters). */
export function packParameters(parameters: Parameters): Hex {
  return concatHex(
    PARAMETER_NAMES.map((name) => numberToHex(parameters[name], { size: PARAMETER_WIDTHS[name] })),
  );
}

/** Reverses {@link packTerms}; addresses are lower case. Throws if the length is neither 109 nor 129 bytes. */
export function unpackTerms(packed: Hex): EscrowTerms {
  const named = size(packed) === LENGTH_WITH_COUNTERPARTY;
  if (!named && size(packed) !== LENGTH_WITHOUT_COUNTERPARTY) {
    throw new RangeError("Packed terms are neither 109 nor 129 bytes");
  }
  const number = (start: number, length: number) => Number(sliceHex(packed, start, start + length));
  const flags = number(31, 1);
  return {
    initiator: lower(sliceHex(packed, 0, 20)),
    price: BigInt(sliceHex(packed, 20, 30)),
    counterparty: named ? lower(sliceHex(packed, LENGTH_WITHOUT_COUNTERPARTY)) : ZERO_ADDRESS,
    criteriaCount: number(30, 1),
    workerInitiated: (flags & WORKER_INITIATED) !== 0,
    computedCriteria: (flags & COMPUTED_CRITERIA) !== 0,
    matchDeadline: number(32, 4),
    withdrawalDeadline: number(36, 4),
    deliveryDeadline: number(40, 4),
    reviewDeadline: number(44, 4),
    termsHash: lower(sliceHex(packed, 48, 80)),
    parameters: unpackParameters(sliceHex(packed, 80, LENGTH_WITHOUT_COUNTERPARTY)),
  };
}

function unpackParameters(packed: Hex): Parameters {
  let offset = 0;
  return eachParameter((name) => {
    const start = offset;
    offset += PARAMETER_WIDTHS[name];
    return Number(sliceHex(packed, start, offset));
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
  return sliceHex(keccak256(concatHex(["0xff", commitment.factory, CREATE2_SALT, keccak256(bytecode)])), 12);
}

const lower = (hex: Hex): Hex => hex.toLowerCase() as Hex;

/** Lower case. Throws unless it is exactly so many bytes. */
function fixed(hex: Hex, length: number): Hex {
  if (/^0x[0-9a-f]*$/i.test(hex) && hex.length === 2 + 2 * length) return lower(hex);
  throw new RangeError(`${hex} is not ${length} bytes in hexadecimal`);
}

interface Parameter {
  width: number;
  value: number;
  min?: number;
  max?: number;
}

const WHOLE = 10_000;
const DAY = 86_400;

/** Width in bytes, in packing order (TermsCodec.sol), specified value and bounds. In basis points, whole tokens or seconds. */
const PARAMETERS = {
  protocolFee: { width: 2, value: 500, max: 2000 },
  workerStakeRatio: { width: 2, value: 500, max: WHOLE },
  disputeBondRatio: { width: 2, value: 500, max: WHOLE },
  backupAgentBondRatio: { width: 2, value: 500, max: WHOLE },
  earlyWithdrawalSlashRatio: { width: 2, value: 3000, max: WHOLE },
  absentNoneMetClientShare: { width: 2, value: 8000, max: WHOLE },
  baUnclearSlashRatio: { width: 2, value: 3000, max: WHOLE },
  tokenMintRewardFull: { width: 2, value: 10 },
  tokenMintRewardReduced: { width: 2, value: 4 },
  baEligibilityStake: { width: 4, value: 1000, min: 1000 },
  baVotingWindow: { width: 3, value: DAY, min: DAY / 24, max: 7 * DAY },
  /** If zero, every eligible Backup Agent may vote. */
  baRecruitCount: { width: 1, value: 0, max: 31 },
  payoutHold: { width: 3, value: 0, max: 3 * DAY },
} as const satisfies Record<string, Parameter>;

type ParameterName = keyof typeof PARAMETERS;
/** The values that one Working Contract keeps (docs/rules.md 25): ratios in basis points, whole tokens, seconds. */
export type Parameters = Record<ParameterName, number>;

/** In packing order (TermsCodec.sol). */
export const PARAMETER_NAMES: readonly ParameterName[] = Object.keys(PARAMETERS) as ParameterName[];
/** Packed bytes of each parameter, 29 together. */
export const PARAMETER_WIDTHS = eachParameter((name) => PARAMETERS[name].width);
export const DEFAULT_PARAMETERS: Parameters = eachParameter((name) => PARAMETERS[name].value);

/** The first parameter that no factory accepts; undefined if all are within their bounds. */
export function outOfBounds(parameters: Parameters): ParameterName | undefined {
  return PARAMETER_NAMES.find((name) => {
    const { min, max } = boundsOf(name);
    const value = parameters[name];
    return !Number.isInteger(value) || value < min || value > max;
  });
}

/** The smallest and the greatest value that a factory accepts. */
export function boundsOf(name: ParameterName): { min: number; max: number } {
  const { width, min = 0, max = 256 ** width - 1 }: Parameter = PARAMETERS[name];
  return { min, max };
}

/** An object with one value per parameter, in packing order. */
export function eachParameter<T>(of: (name: ParameterName) => T): Record<ParameterName, T> {
  return Object.fromEntries(PARAMETER_NAMES.map((name) => [name, of(name)])) as Record<ParameterName, T>;
}
