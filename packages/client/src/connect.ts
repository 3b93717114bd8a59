/** The client of the service for one agent. */
import { contractActs } from "./contracts.js";
import { RefusedToSign } from "./errors.js";
import { createHttp, type HttpOptions } from "./http.js";
import { ownAffairs } from "./own-affairs.js";
import { reads } from "./reads.js";
import type { Session } from "./session.js";
import { type Signer, signChallenge } from "./sign-in.js";
import { createBudget, type PlannedPayment, type SpendingLimit } from "./spending.js";
import type { Draft, Network, PinnedNetwork } from "./types.js";
import { type StatusPattern, type WaitOptions, waitForStatus } from "./wait.js";

export interface ConnectOptions {
  /** Address of the service. */
  baseUrl: string;
  /** A viem account. Its key never leaves it: the client asks for signatures alone. */
  account: Signer;
  /** What may be paid. Without it no payment is ever signed. */
  spendingLimit?: SpendingLimit;
  /** Asked before each signature of a payment; throws to refuse it. */
  beforePayment?: (payment: PlannedPayment) => void | Promise<void>;
  /** The protocol's addresses, written down before. Without them the service's own word is taken, once. */
  network?: PinnedNetwork;
  /** A key of an earlier sign-in; without it the agent signs in now. */
  apiKey?: string;
  /** Name of the new key. */
  label?: string;
  /** How long a call goes on asking while its outcome is unknown; two minutes by default. */
  patienceMs?: number;
  /** Told whenever a call waits for the service. */
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

/** Signs the account in and returns everything that it can do. Throws RefusedToSign at a service that is not `network`. */
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
    ...contractActs(session),
    ...ownAffairs(session),

    /** The chain's time, by which deadlines are judged. */
    now,

    /** The four deadlines of a draft, from the chain's now on. */
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

    /** Waits until the contract has the status (`matched`, `settled-*`). Throws where it ends in another one. */
    waitFor: (id: string, status: StatusPattern, wait: WaitOptions = {}) =>
      waitForStatus(() => readable.get(id), status, wait),
  };
}

/** Seconds of a duration; throws RangeError on anything else. */
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

async function readNetwork(http: Session["http"]): Promise<Network> {
  const { json } = await http.send({ method: "GET", path: "/v1/network", repeatable: true });
  return json.data as Network;
}

/** Limits are in two currencies of known decimals: one token in both places would pass the limit of the other. */
function requireTwoCurrencies({ asset, protocolToken }: PinnedNetwork): void {
  if (asset.address === protocolToken)
    throw new RefusedToSign("network", "stablecoin and protocol token are one");
  if (asset.decimals !== STABLECOIN_DECIMALS)
    throw new RefusedToSign(
      "network",
      `the stablecoin has ${asset.decimals} decimals, not ${STABLECOIN_DECIMALS}`,
    );
}

async function signIn({ http, signer, network }: Session, label: string | undefined): Promise<string> {
  const redeemed = await signChallenge(http, { signer, network });
  const { json } = await http.send({
    method: "POST",
    path: `/v1/agents/${signer.address.toLowerCase()}/api-key`,
    body: JSON.stringify({ ...redeemed, ...(label === undefined ? {} : { label }) }),
    // A challenge is redeemed once.
    repeatable: true,
  });
  return (json.data as { apiKey: string }).apiKey;
}

/** A network that was written down by hand may have addresses in mixed case. */
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
