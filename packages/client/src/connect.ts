/** The client of the service for one agent. */
import { STABLECOIN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { Hex } from "@working-contracts/protocol/types";
import { actions } from "./actions.js";
import { deliveries } from "./deliveries.js";
import { ConnectionError, RefusedToSign, ServiceError } from "./errors.js";
import { type EventOptions, followEvents, webhooks } from "./events.js";
import { createHttp } from "./http.js";
import {
  createBudget,
  type PaymentProgress,
  type PaymentProof,
  type PlannedPayment,
  type SpendingLimit,
} from "./payment.js";
import type { ChainNode } from "./rpc.js";
import {
  call,
  dataOf,
  type Endpoint,
  type InputArguments,
  type ResponseOf,
  reads,
  type Session,
  type SubmissionStore,
} from "./session.js";
import {
  CLOCK_TOLERANCE,
  lowerCase,
  type OperatorPermission,
  permissionOf,
  requireNotAhead,
  requireOwnDomain,
  requireTime,
  signChallenge,
  wrongClock,
} from "./signing.js";
import type { Contract, Draft, Network, PinnedNetwork, Settlement } from "./types.js";
import type { Verification, VerifyOptions } from "./verify/verify.js";
import { type StatusPattern, type WaitOptions, waitForPayout, waitForStatus, waitUntil } from "./wait.js";
import type { Signer } from "./wallets.js";

/** Only `baseUrl` and `account` are needed. With these two, the agent reads and acts, but pays nothing. */
export interface ConnectOptions {
  baseUrl: string;
  /** A viem account. Its private key stays inside: the client only requests signatures. */
  account: Signer;
  /** Limits on payments. Without it, no payment is ever signed. */
  spendingLimit?: SpendingLimit;
  /** Called last before each payment is signed, after every check. Throw to refuse the payment. */
  beforePayment?: ((payment: PlannedPayment) => void | Promise<void>) | undefined;
  /** Pinned addresses; by default this package's for the host, otherwise read once from the service (README). */
  network?: PinnedNetwork;
  /** The service's name in sign-in challenges; by default the host of `baseUrl` (`localhost` for a loopback address). */
  domain?: string;
  /** A node of the chain (JSON-RPC URL or EIP-1193 provider): before each payment, the escrow is checked on chain. */
  node?: ChainNode;
  /** The most that the gas of one transaction of the agent's own may cost, in wei; by default 0.01 ether. */
  maxGasCost?: bigint | undefined;
  /** The clock that bounds signatures: this machine's plus five minutes, or the service's, for a sandbox whose clock was moved. */
  clock?: "local" | "service" | undefined;
  /** Actions that the service may take without a signature each: `none` (default), `all`, or some, for a time. Enforced on chain. */
  operator?: OperatorPermission;
  /** API key of an earlier sign-in. If absent, the agent signs in now. */
  apiKey?: string;
  /** Keeps what was submitted, to notice or replace what the service hides; by default in memory, which ends with the program. */
  submitted?: SubmissionStore | undefined;
  /** Label of the new API key. */
  label?: string;
  /** How long a request is retried while its outcome is unknown, in milliseconds; two minutes by default. A first attempt gets at least 30 seconds. */
  patienceMs?: number;
  /** Called before each retry, with the reason. */
  onWaiting?: ((reason: string) => void) | undefined;
  /** Called at each step of a payment. */
  onProgress?: (progress: PaymentProgress) => void;
  /** Called with the service's signed offer and receipt of each payment, checked. Errors that it throws are ignored. */
  onReceipt?: (proof: PaymentProof) => void;
  /** By default the global one. The body of its responses must be a web stream, as in Node.js and browsers. */
  fetch?: typeof fetch;
  signal?: AbortSignal | undefined;
}

/** Public deployments by the host of their service, which may show no other addresses. There is none yet. */
const DEPLOYMENTS: Readonly<Record<string, PinnedNetwork>> = {};

const PATIENCE_MS = 120_000;
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** `90m`, `36h`, `2d`. */
export type Duration = `${number}${keyof typeof SECONDS}`;

/** The actions and reads of one signed-in address. Its `apiKey` is a secret. */
export type Agent = Awaited<ReturnType<typeof connect>>;

/** Signs in. Throws RefusedToSign if the service does not match `network`; throws if `node` still shows a wider delegation. */
export async function connect(options: ConnectOptions) {
  const { account: signer, node } = options;
  const http = createHttp({
    ...options,
    baseUrl: options.baseUrl.replace(/\/+$/, ""),
    fetch: options.fetch ?? fetch,
    patienceMs: options.patienceMs ?? PATIENCE_MS,
  });
  const pinned = options.network ?? DEPLOYMENTS[new URL(options.baseUrl).host];
  const network = lowerCase(pinned ?? (await readNetwork({ http, apiKey: "" })));
  if (pinned === undefined) requireOwnDomain(options, network.domain);
  requireTwoCurrencies(network);
  const now = async (): Promise<number> =>
    // With the key: without one, others behind the same IP address could use up its limit.
    requireTime(Math.floor(Date.parse((await readNetwork(session)).time) / 1000));
  const boundedTime = async (): Promise<number> => {
    const time = await now();
    if (options.clock !== "service") requireNotAhead(time);
    return time;
  };
  const session: Session = {
    ...options,
    http,
    signer,
    network,
    budget: createBudget(options.spendingLimit),
    now,
    boundedTime,
    agreedTime: async () => {
      const time = await boundedTime();
      if (options.clock !== "service" && time < Date.now() / 1000 - CLOCK_TOLERANCE) throw wrongClock(time);
      return time;
    },
    submitted: options.submitted ?? inMemory(),
    unused: new Map(),
    permission: permissionOf(options.operator ?? "none"),
    apiKey: options.apiKey ?? "",
  };
  if (options.apiKey === undefined) {
    const checks = node && (await import("./chain-check.js"));
    // Asked before as well: a key that was issued would be lost with the error of a node that is down.
    if (node && checks) await checks.grantAt(node, network, signer.address);
    session.apiKey = await signIn(session, options.label);
    if (node && checks) await checks.requireNotWider(session, node);
  }

  const readable = reads(session);
  const readsUntil = (signal: AbortSignal) => reads({ ...session, http: http.until(signal) });
  const acting = actions(session);
  const references = deliveries(session, acting.deliver);
  if (options.apiKey === undefined) await references.publishKey().catch(ifNotPossible);
  const known = {
    address: signer.address.toLowerCase(),
    network,
    ...readable,
    ...references,
  };
  return {
    ...acting,
    ...known,
    apiKey: session.apiKey,
    webhooks: webhooks(session),

    /** Every event from now on, or after `after`, as an async iterator that resumes after breaks. */
    events: (options: EventOptions = {}) => followEvents(session, options),

    /** Any other operation: `call("GET /v1/contracts/{id}/ledger", { path: { id } })`. Never pays. */
    call: <E extends Endpoint>(endpoint: E, ...input: InputArguments<E>): Promise<ResponseOf<E>> =>
      call(session, endpoint, ...input),

    /** The chain's time in seconds. It decides whether a deadline has passed. */
    now,

    /** The four deadlines: times, or counted from the chain's time. Throws RefusedToSign if that is off, unless `clock` trusts it. */
    async deadlines(
      after: Record<"match" | "withdrawal" | "delivery" | "review", Duration | Date>,
    ): Promise<Pick<Draft, "matchDeadline" | "withdrawalDeadline" | "deliveryDeadline" | "reviewDeadline">> {
      const areCounted = Object.values(after).some((time) => !(time instanceof Date));
      const start = areCounted ? await session.agreedTime() : 0;
      const at = (time: Duration | Date): string =>
        (time instanceof Date ? time : new Date((start + secondsOf(time)) * 1000)).toISOString();
      return {
        matchDeadline: at(after.match),
        withdrawalDeadline: at(after.withdrawal),
        deliveryDeadline: at(after.delivery),
        reviewDeadline: at(after.review),
      };
    },

    /**
     * Waits for a status (`matched`, `settled-*`). Throws if it ends with another one. With a node, the chain decides, and
     * the service has 30 seconds to follow.
     */
    async waitFor(id: string, status: StatusPattern, wait: WaitOptions<Contract> = {}): Promise<Contract> {
      const served = (signal: AbortSignal) => readsUntil(signal).get(id);
      const read =
        node === undefined
          ? served
          : (await import("./chain-check.js")).provenReader(served, [node, network, id], wait);
      return waitForStatus(read, status, wait);
    },

    /** Waits until the contract has ended and everything is paid. */
    waitForPayout: (id: string, wait: WaitOptions<Settlement> = {}) =>
      waitForPayout((signal) => readsUntil(signal).settlement(id), wait),

    /** Waits for anything that can be read: `waitUntil(() => agent.stakeOf(), ({ eligible }) => eligible)`. */
    waitUntil: <T>(read: () => Promise<T>, isDone: (value: T) => boolean, wait: WaitOptions<T> = {}) =>
      waitUntil(() => read(), isDone, wait),

    /** Rebuilds a contract from the chain and compares the service's view (not votes and ledger). Throws without node or escrow. */
    async verify(id: string, options: Partial<VerifyOptions> = {}): Promise<Verification> {
      const { verifyContract } = await import("./verify/verify.js");
      return verifyContract(known, id, { nodes: node === undefined ? [] : [node], ...options });
    },

    /** The payment that an action would make, or null. Signs nothing; `create` uses one of five unpaid attempts (30 minutes). */
    dryRun: (action: (dry: PaidActions) => Promise<unknown>) => dryRun(session, action),
  };
}

function inMemory(): SubmissionStore {
  const values = new Map<string, Hex[]>();
  return {
    read: (key) => values.get(key) ?? [],
    add: (key, value) => void values.set(key, [...(values.get(key) ?? []), value]),
  };
}

/** Some wallets cannot make a key (see `ownKeysOf`), and contract wallets publish none: what they get is not sealed. */
function ifNotPossible(error: unknown): void {
  const isRefused = error instanceof ServiceError && error.code === "invalid_signature";
  if ((error instanceof ServiceError && !isRefused) || error instanceof ConnectionError) throw error;
}

/** The actions that can cost money. */
type PaidActions = Pick<ReturnType<typeof actions>, "create" | "accept" | "dispute" | "vote" | "stake">;

async function dryRun(
  session: Session,
  action: (dry: PaidActions) => Promise<unknown>,
): Promise<PlannedPayment | null> {
  const end = new Error("This was a dry run");
  let planned: PlannedPayment | null = null;
  const onProgress = ({ payment }: PaymentProgress): never => {
    planned = payment;
    throw end;
  };
  const { create, accept, dispute, vote, stake } = actions({
    ...session,
    onProgress,
    submitted: inMemory(),
    budget: { ...session.budget, check() {} },
  });
  const salt: Hex = `0x${"f".repeat(64)}`;
  try {
    await action({ create, accept, dispute, vote: (id, words) => vote(id, words, { salt }), stake });
    return null;
  } catch (error) {
    if (error === end) return planned;
    throw error;
  }
}

/** Converts a duration to seconds. Throws RangeError if the text is not a duration. */
export function secondsOf(duration: string): number {
  const [, count = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(duration) ?? [];
  if (count === "") throw new RangeError(`${duration} is not a duration such as 90m, 36h or 2d`);
  return Math.round(Number(count) * SECONDS[unit as keyof typeof SECONDS]);
}

function readNetwork(session: Pick<Session, "http" | "apiKey">): Promise<Network> {
  return dataOf(session, "GET /v1/network");
}

/** Limits apply to two currencies: if one token had both roles, a payment could evade its limit by the other's. */
function requireTwoCurrencies({ asset, protocolToken }: PinnedNetwork): void {
  if (asset.address === protocolToken)
    throw new RefusedToSign("network", "the stablecoin and the protocol token have the same address");
  if (asset.decimals !== STABLECOIN_DECIMALS)
    throw new RefusedToSign(
      "network",
      `the stablecoin has ${asset.decimals} decimals, not ${STABLECOIN_DECIMALS}`,
    );
}

async function signIn(session: Session, label: string | undefined): Promise<string> {
  const redeemed = await signChallenge(session);
  const { apiKey } = await dataOf({ ...session, apiKey: "" }, "POST /v1/agents/{address}/api-key", {
    path: { address: session.signer.address },
    body: { ...redeemed, ...(label === undefined ? {} : { label }) },
  });
  return apiKey;
}
