/** The client of the service for one agent. */
import { actions } from "./actions.js";
import { RefusedToSign } from "./errors.js";
import { createHttp, type HttpOptions } from "./http.js";
import { reads } from "./reads.js";
import { call, dataOf, type Session } from "./session.js";
import { type Signer, signChallenge } from "./sign-in.js";
import { createBudget, type PlannedPayment, type SpendingLimit } from "./spending.js";
import type { Draft, Network, PinnedNetwork } from "./types.js";
import { type StatusPattern, type WaitOptions, waitForStatus } from "./wait.js";

export interface ConnectOptions {
  /** URL of the service. */
  baseUrl: string;
  /** A viem account. Its private key stays inside: the client only requests signatures. */
  account: Signer;
  /** Limits on payments. Without it, no payment is ever signed. */
  spendingLimit?: SpendingLimit;
  /** Called before each payment is signed. Throw to refuse the payment. */
  beforePayment?: (payment: PlannedPayment) => void | Promise<void>;
  /** The pinned addresses of the protocol. If absent, they are read once from the service, which is then trusted. */
  network?: PinnedNetwork;
  /** API key of an earlier sign-in. If absent, the agent signs in now. */
  apiKey?: string;
  /** Label of the new API key. */
  label?: string;
  /** How long a call is retried while its outcome is unknown; two minutes by default. */
  patienceMs?: number;
  /** Called before each retry, with the reason. */
  onWaiting?: (reason: string) => void;
  fetch?: typeof fetch;
  signal?: AbortSignal;
}

const PATIENCE_MS = 120_000;
const STABLECOIN_DECIMALS = 6;
const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/** `90m`, `36h`, `2d`. */
export type Duration = `${number}${keyof typeof SECONDS}`;

export type Agent = Awaited<ReturnType<typeof connect>>;

/** Signs the account in and returns its actions. Throws RefusedToSign if the service does not match `network`. */
export async function connect(options: ConnectOptions) {
  const { account: signer, spendingLimit, beforePayment } = options;
  const http = createHttp(httpOptions(options));
  const network = lowerCase(options.network ?? (await readNetwork(http)));
  requireTwoCurrencies(network);
  const now = async (): Promise<number> => Math.floor(Date.parse((await readNetwork(http)).time) / 1000);
  const session: Session = {
    http,
    signer,
    network,
    budget: createBudget(spendingLimit),
    beforePayment,
    now,
    apiKey: options.apiKey ?? "",
  };
  if (options.apiKey === undefined) session.apiKey = await signIn(session, options.label);

  const readable = reads(session);
  return {
    /** Lower case. */
    address: signer.address.toLowerCase(),
    apiKey: session.apiKey,
    network: session.network,
    ...readable,
    ...actions(session),

    /** The chain's time in seconds. It decides whether a deadline has passed. */
    now,

    /** The four deadlines of a draft, counted from the chain's current time. */
    async deadlines(after: { match: Duration; withdrawal: Duration; delivery: Duration; review: Duration }) {
      const start = await now();
      const at = (duration: Duration): string => new Date((start + secondsOf(duration)) * 1000).toISOString();
      return {
        matchDeadline: at(after.match),
        withdrawalDeadline: at(after.withdrawal),
        deliveryDeadline: at(after.delivery),
        reviewDeadline: at(after.review),
      } satisfies Partial<Draft>;
    },

    /** Waits until the contract has the status (`matched`, `settled-*`). Throws if it ends with another status. */
    waitFor: (id: string, status: StatusPattern, wait: WaitOptions = {}) =>
      waitForStatus(() => readable.get(id), status, wait),
  };
}

/** Converts a duration to seconds. Throws RangeError if the text is not a duration. */
export function secondsOf(duration: string): number {
  const [, count = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(duration) ?? [];
  if (count === "") throw new RangeError(`${duration} is not a duration such as 90m, 36h or 2d`);
  return Math.round(Number(count) * SECONDS[unit as keyof typeof SECONDS]);
}

function httpOptions({
  baseUrl,
  patienceMs = PATIENCE_MS,
  onWaiting,
  signal,
  ...given
}: ConnectOptions): HttpOptions {
  return { baseUrl: baseUrl.replace(/\/+$/, ""), patienceMs, onWaiting, signal, fetch: given.fetch ?? fetch };
}

function readNetwork(http: Session["http"]): Promise<Network> {
  return dataOf(call({ http, apiKey: "" }, "GET /v1/network"));
}

/**
 * Spending limits apply to two currencies with known decimals. If one token had both roles, a payment could evade its
 * limit by counting against the other.
 */
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
  const { apiKey } = await dataOf(
    call({ ...session, apiKey: "" }, "POST /v1/agents/{address}/api-key", {
      path: { address: session.signer.address },
      body: { ...redeemed, ...(label === undefined ? {} : { label }) },
    }),
  );
  return apiKey;
}

/** A hand-written network can contain addresses in mixed case. */
function lowerCase(network: PinnedNetwork): PinnedNetwork {
  const addresses = [
    "factory",
    "implementation",
    "relay",
    "delegation",
    "registry",
    "protocolToken",
  ] as const;
  const lowered = Object.fromEntries(addresses.map((name) => [name, network[name].toLowerCase()]));
  return {
    ...network,
    ...lowered,
    asset: { ...network.asset, address: network.asset.address.toLowerCase() },
  };
}
