/** Sign-in: bound to the host that the client connected to, and checked field by field before it is signed. */
import { CHALLENGE_VALIDITY } from "@working-contracts/protocol/limits";
import {
  AGENT_ACTIONS,
  type AgentAction,
  ALL_ACTIONS,
  actionBits,
  actionTypedData,
  challengeText,
  FULL_PERMISSION,
  type Permission,
} from "@working-contracts/protocol/signatures";
import type { Address, Hex } from "@working-contracts/protocol/types";
import { RefusedToSign, ServiceError } from "./errors.js";
import { VALIDITY_SECONDS } from "./payment.js";
import {
  call,
  dataOf,
  type Endpoint,
  type InputArguments,
  type ResponseOf,
  requestOf,
  type Session,
} from "./session.js";
import type { Addresses } from "./types.js";

/** This machine, in the spelling of `URL.hostname`. */
export const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"]);

/** Throws RefusedToSign for a sign-in to another domain than the given one, the host or `localhost`: it would get a key. */
export function requireOwnDomain(
  { baseUrl, domain }: { baseUrl: string; domain?: string },
  asked: string,
): void {
  const { host, hostname } = new URL(baseUrl);
  const own = domain ?? (LOOPBACK_HOSTS.has(hostname) ? "localhost" : host);
  if (asked === own) return;
  throw new RefusedToSign(
    "domain",
    `${baseUrl} asks for a sign-in to ${asked}, not to ${own}. If ${asked} is the service you want, pass it as domain (--domain)`,
  );
}

/** Requests a challenge and signs it. Returns the body with which API keys are issued or revoked. */
export async function signChallenge(
  session: Pick<Session, "http" | "signer" | "network" | "agreedTime" | "permission">,
): Promise<{ challengeId: string; signature: Hex }> {
  const { http, signer, agreedTime, permission } = session;
  const path = { address: signer.address };
  const start = performance.now();
  const { challengeId, message } = await dataOf({ http, apiKey: "" }, "POST /v1/agents/{address}/challenge", {
    path,
    body: bodyOf(permission),
  });
  const now = await agreedTime();
  const since = now - (performance.now() - start) / 1000;
  requireChallenge(message, session, { now, since });
  return { challengeId, signature: await signer.signMessage({ message }) };
}

/** The permission as the body of a challenge's request. */
function bodyOf({ actions, until }: Permission) {
  const some = AGENT_ACTIONS.filter((_, i) => (actions >> i) & 1);
  return {
    operatorActions: actions === 0 ? ("none" as const) : actions === ALL_ACTIONS ? ("all" as const) : some,
    ...(until === 0 ? {} : { operatorUntil: new Date(until * 1000).toISOString() }),
  };
}

/** The field of a line, by the words that the line starts with. */
const FIELDS: [start: string, field: string][] = [
  ["0x", "address"],
  ["Purpose", "purpose"],
  ["The holder", "operator"],
  ["The operator", "operator"],
  ["Chain ID", "chainId"],
];

/** Throws RefusedToSign unless it is this service's challenge of `since` to `now` (seconds) for this address: others can be logins. */
function requireChallenge(
  message: string,
  { signer, network, permission }: Pick<Session, "signer" | "network" | "permission">,
  { since, now }: { since: number; now: number },
): void {
  const textOf = (name: string): string => new RegExp(`^${name}: (.+)$`, "m").exec(message)?.[1] ?? "";
  const secondsOf = (name: string): number => Date.parse(textOf(name)) / 1000;
  const [nonce, issuedAt, expiresAt] = [textOf("Nonce"), secondsOf("Issued At"), secondsOf("Expires At")];
  if (!/^0x[0-9a-f]{64}$/.test(nonce)) throw new RefusedToSign("nonce", "the challenge has no nonce");
  const isDated = Number.isInteger(issuedAt) && Number.isInteger(expiresAt);
  if (!isDated || issuedAt < since - PROCESS_LAG || issuedAt > now + PROCESS_LAG)
    throw new RefusedToSign("issuedAt", `the challenge is dated ${textOf("Issued At")}, not now`);
  if (expiresAt > issuedAt + CHALLENGE_VALIDITY)
    throw new RefusedToSign("expiresAt", `the challenge is valid until ${textOf("Expires At")}, too long`);

  const expected = challengeText({
    domain: network.domain,
    agent: signer.address,
    operator: network.relay as Address,
    ...permission,
    factory: network.factory as Address,
    chainId: network.chainId,
    nonce: nonce as Hex,
    issuedAt,
    expiresAt,
  }).split("\n");
  const lines = message.split("\n");
  for (const [i, line] of expected.entries()) {
    if (lines[i] === line) continue;
    const field = FIELDS.find(([start]) => line.startsWith(start))?.[1];
    throw new RefusedToSign(
      field ?? (i === 0 ? "domain" : "challenge"),
      `the challenge says ${JSON.stringify(lines[i] ?? "")}, expected ${JSON.stringify(line)}`,
    );
  }
  if (lines.length > expected.length)
    throw new RefusedToSign("challenge", "its text is longer than this service's sign-in text");
}

/** How far the processes of a service can be apart, in seconds. */
const PROCESS_LAG = 60;
/** How far a service's clock can be from this machine's, in seconds. */
export const CLOCK_TOLERANCE = 300;

/** Actions that need no signature for each; without `until`, until revoked. The contracts enforce it (docs/rules.md 4). */
export type OperatorPermission = "none" | "all" | { actions: readonly AgentAction[]; until?: Date };

/** As the contracts check it: `until` in seconds, rounded down. Throws RangeError for 0, which would mean without an end. */
export function permissionOf(operator: OperatorPermission): Permission {
  if (operator === "all") return FULL_PERMISSION;
  if (operator === "none") return { actions: 0, until: 0 };
  const { actions, until } = operator;
  const end = until ? Math.floor(until.getTime() / 1000) : 0;
  if (until && !(end > 0)) throw new RangeError("until must be in the future");
  return { actions: actionBits(actions), until: end };
}

/** Returns the time. Throws RefusedToSign unless it is an integer: with NaN, every later check would pass. */
export function requireTime(time: number, source = "the service"): number {
  if (Number.isInteger(time)) return time;
  throw new RefusedToSign("clock", `${source} returned an unreadable time`);
}

/** With a wrong clock it could ask for signatures that stay valid for years. */
export function requireNotAhead(time: number, source?: string): void {
  if (requireTime(time, source) > Date.now() / 1000 + CLOCK_TOLERANCE) throw wrongClock(time, source);
}

/** The error for a `time`, in seconds, that differs too much from this machine's. `source` is what says it. */
export const wrongClock = (time: number, source = "the service") =>
  new RefusedToSign(
    "clock",
    `${source} says that it is ${new Date(time * 1000).toISOString()}, but here it is ${new Date().toISOString()}. Check this machine's clock. For a sandbox whose clock was moved, use \`clock: "service"\` (\`--clock service\`)`,
  );

/** The contracts of a network, the stablecoin not among them. */
export const CONTRACTS = ["factory", "implementation", "relay", "registry", "protocolToken"] as const;

/** Addresses in lower case. Throws RefusedToSign for anything but an address: the caller is asked to pay to it. */
export function lowerCase<N extends Addresses>(network: N): N {
  const lower = (name: string, address: string): string => {
    if (/^0x[0-9a-f]{40}$/i.test(address)) return address.toLowerCase();
    throw new RefusedToSign(name, `${JSON.stringify(address)} is not an address`);
  };
  return {
    ...network,
    ...Object.fromEntries(CONTRACTS.map((name) => [name, lower(name, network[name])])),
    asset: { ...network.asset, address: lower("asset", network.asset.address) },
  };
}

interface ActionToSign {
  action: AgentAction;
  /** The escrow, or for an unstake the registry. */
  contract: string;
  /** The action's calldata; a function if it takes requests to know, which an unsigned call does not need. */
  calldata: Hex | (() => Promise<Hex>);
}

/** Calls an operation with the agent's signature for this action, unless it left the action to the operator. */
export async function callSigned<E extends Endpoint>(
  session: Session,
  endpoint: E,
  { action, contract, calldata }: ActionToSign,
  ...[input]: InputArguments<E>
): Promise<ResponseOf<E>> {
  const now = await session.boundedTime();
  if (isLeftToOperator(session, action, now))
    try {
      return await call(session, endpoint, ...([input] as InputArguments<E>));
    } catch (error) {
      // A later sign-in, of a browser for example, can have left less to the operator.
      if (!askedOf(error)) throw error;
    }

  const own = typeof calldata === "string" ? calldata : await calldata();
  const request = requestOf(session, endpoint, input as Parameters<typeof requestOf>[2]);
  const deadline = now + VALIDITY_SECONDS;
  const sign = async (nonce: bigint): Promise<ResponseOf<E>> => {
    const agent = session.signer.address.toLowerCase() as Address;
    const signature = await session.signer.signTypedData(
      actionTypedData({
        chainId: session.network.chainId,
        contract: contract.toLowerCase() as Address,
        agent,
        call: own,
        nonce,
        deadline,
      }),
    );
    const signed = { "action-deadline": String(deadline), "action-signature": signature };
    const { json } = await session.http.send({ ...request, headers: { ...request.headers, ...signed } });
    return json as ResponseOf<E>;
  };

  // The nonce is zero until the agent cancels signatures.
  const signing = sign(0n).catch(async (error) => {
    const asked = askedOf(error);
    if (!asked) throw error;
    if (asked.call !== own)
      throw new RefusedToSign("action", `the service asks to sign ${asked.call} in the place of ${own}`);
    if (asked.nonce === 0n) throw error;
    await requireNonce(session, contract, asked.nonce);
    return sign(asked.nonce);
  });
  return signing.catch((error) => {
    if (error instanceof RefusedToSign)
      error.message += `. But you signed ${action}, which can be carried out for ten minutes unless you call cancelSignatures (onChain, wcontract on-chain)`;
    throw error;
  });
}

/** With a node: a signature for a later nonce would survive the next `cancelSignatures`. */
async function requireNonce({ node, signer }: Session, contract: string, asked: bigint): Promise<void> {
  if (!node) return;
  const { signatureNonceAt } = await import("./chain-check.js");
  const nonce = await signatureNonceAt(node, contract, signer.address);
  if (asked !== nonce)
    throw new RefusedToSign("nonce", `the service asks for the nonce ${asked}, the chain has ${nonce}`);
}

function isLeftToOperator({ permission }: Session, action: AgentAction, now: number): boolean {
  const { actions, until } = permission;
  return (actions & actionBits([action])) !== 0 && (until === 0 || now + VALIDITY_SECONDS < until);
}

/** The action that the service asks to sign; null if the error is another one. */
function askedOf(error: unknown): { call: Hex; nonce: bigint } | null {
  if (!(error instanceof ServiceError)) return null;
  const message = (error.details as { sign?: { message?: { call?: unknown; nonce?: unknown } } } | undefined)
    ?.sign?.message;
  if (!message) return null;
  const { call, nonce } = message;
  if (typeof call === "string" && /^0x([0-9a-f]{2})+$/.test(call) && /^\d{1,20}$/.test(String(nonce)))
    return { call: call as Hex, nonce: BigInt(String(nonce)) };
  throw new RefusedToSign("action", "the response contains no action to sign");
}
