/** An agent signs these beside payments: the texts of a sign-in and of its encryption key, and actions as typed data. */
import { encodeCall, keccak256, stringToHex } from "./hex.js";
import type { Address, Hex } from "./types.js";

/** Actions that an agent can leave to the operator, in the order of `AgentAction` in Types.sol. */
export const AGENT_ACTIONS = [
  "approve",
  "deliver",
  "withdraw",
  "cancel",
  "decline",
  "vote",
  "unstake",
  "complain",
] as const;
/** Unless left to the operator, each needs the agent's own signature or transaction (docs/rules.md 4). */
export type AgentAction = (typeof AGENT_ACTIONS)[number];

/** A bit for each action, as {@link actionBits} packs them. */
export const ALL_ACTIONS = (1 << AGENT_ACTIONS.length) - 1;

/** A bit per action, the first lowest. */
export const actionBits = (actions: readonly AgentAction[]): number =>
  actions.reduce((bits, action) => bits | (1 << AGENT_ACTIONS.indexOf(action)), 0);

/** How far the operator may act without a signature of the agent for the action. */
export interface Permission {
  /** A bit per action; zero for none. */
  actions: number;
  /** Seconds since 1970; 0 until revoked. */
  until: number;
}

/** Every action, until it is revoked. */
export const FULL_PERMISSION: Permission = { actions: ALL_ACTIONS, until: 0 };

/** A sign-in: `Delegation` in Types.sol. */
export interface Delegation extends Permission {
  agent: Address;
  /** The Relay contract that acts for the agent. */
  operator: Address;
  /** 32 bytes. */
  nonce: Hex;
  /** Seconds since 1970. */
  issuedAt: number;
  expiresAt: number;
}

/** A sign-in, and the deployment for which alone it counts. */
interface ChallengeFields extends Delegation {
  /** Name of the service that AgentDelegation was deployed with. */
  domain: string;
  factory: Address;
  chainId: number;
}

/** The text that an agent signs. AgentDelegation.challengeText rebuilds it on chain, byte for byte. */
export function challengeText(fields: ChallengeFields): string {
  return [
    `${fields.domain} asks you to sign in with your address:`,
    fields.agent.toLowerCase(),
    "",
    "Purpose: issue or revoke an API key.",
    permissionText(fields),
    "Signing moves no money and costs no gas.",
    "",
    `Chain ID: ${fields.chainId}`,
    `Nonce: ${fields.nonce.toLowerCase()}`,
    `Issued At: ${isoSeconds(fields.issuedAt)}`,
    `Expires At: ${isoSeconds(fields.expiresAt)}`,
  ].join("\n");
}

function permissionText({ operator, factory, actions, until }: ChallengeFields): string {
  const subject = operator.toLowerCase();
  const place = `at the escrow factory ${factory.toLowerCase()}`;
  if (actions === 0)
    return `The operator ${subject} may carry out this address's contract actions ${place} only with its signature for each action.`;
  const names = AGENT_ACTIONS.filter((_, i) => (actions >> i) & 1).join(", ");
  const which = actions === ALL_ACTIONS ? "" : `(${names}) `;
  const end = until === 0 ? "" : `, or until ${isoSeconds(until)}`;
  return `The holder of the key may have the operator ${subject} carry out this address's contract actions ${which}${place} until revoked${end}.`;
}

/** `YYYY-MM-DDTHH:MM:SSZ`. Years past 9999 have no plus sign and no leading zeros, as in IsoTime.sol. */
function isoSeconds(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace(".000Z", "Z").replace(/^\+0*/, "");
}

/** Seconds that a sign-in can be dated ahead of the chain's clock at most: `CLOCK_TOLERANCE` of AgentDelegation.sol. */
export const MAX_DATED_AHEAD = 900;

/** Seconds for which a signature can be valid at most. */
export const MAX_SIGNATURE_VALIDITY = 86_400;

const ACTION_TYPES = {
  Action: [
    { name: "agent", type: "address" },
    { name: "call", type: "bytes" },
    { name: "nonce", type: "uint256" },
    { name: "deadline", type: "uint40" },
  ],
} as const;

/** One action that an agent allows, at this contract and on this chain alone. */
export interface SignedAction {
  chainId: number;
  /** The escrow, or for an unstake the registry. */
  contract: Address;
  agent: Address;
  /** Calldata of the action. */
  call: Hex;
  /** How often the agent has cancelled its signatures for this contract. */
  nonce: bigint;
  /** Seconds since 1970. */
  deadline: number;
}

/** The signature (EIP-712) with which an agent allows one action. AgentSignatures.sol checks it. */
export function actionTypedData({ chainId, contract, agent, call, nonce, deadline }: SignedAction) {
  return {
    domain: { name: "Working Contract", version: "1", chainId, verifyingContract: contract },
    types: ACTION_TYPES,
    primaryType: "Action",
    message: { agent, call, nonce, deadline },
  } as const;
}

/** A complaint in the form of a call, so that it is signed like every other action. No contract has this function. */
export function complaintCall(canonicalEvidence: string): Hex {
  return encodeCall("complain(bytes32)", keccak256(stringToHex(canonicalEvidence)));
}

/** The text with which an agent signs its X25519 key (RFC 7748; base64url), so that the service cannot serve another. */
export function encryptionKeyText(
  published: Pick<ChallengeFields, "domain" | "chainId"> & { address: Address; key: string },
): string {
  const { domain, chainId, address, key } = published;
  return [
    `${domain} asks you to publish the key to which others encrypt what they deliver to you:`,
    address.toLowerCase(),
    "",
    "Signing moves no money and costs no gas.",
    "",
    `Chain ID: ${chainId}`,
    `Key: X25519 ${key}`,
  ].join("\n");
}
