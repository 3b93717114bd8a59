/** What a command is given, made when it asks for it. */
import {
  type Agent,
  OutcomeUnknown,
  type PlannedPayment,
  SpendingLimitError,
} from "@working-contracts/client/index";
import { parseDecimal } from "@working-contracts/protocol/amounts";
import { signedIn } from "./agent.js";
import { UsageError } from "./exit-codes.js";
import { createOutput, type Output } from "./output.js";
import { confirm, isInteractive } from "./prompt.js";
import { type CommonOptions, readSettings, type Settings, type World } from "./settings.js";

export interface Context {
  settings: Settings;
  out: Output;
  /** Signs in. `consent` is what the command line itself names as the price, where it does. */
  agent(consent?: { stablecoin?: string; tokens?: string }): Promise<Agent>;
  /** Performs a paid act, and repeats it with the same payment until its outcome is known, or can no longer change. */
  toTheEnd<T>(act: () => Promise<T>): Promise<T>;
}

/** More than anybody has: whether to pay is asked in `beforePayment`. */
const NO_LIMIT = "10000000000";
/** Longer than a signed payment is valid. */
const UNKNOWN_FOR_MS = 15 * 60_000;
const PAUSE_MS = 1000;

export function createContext(options: CommonOptions, world: World): Context {
  const settings = readSettings(options, world);
  const out = createOutput(options, world);
  return {
    settings,
    out,
    async agent(consent = {}) {
      const { agent } = await signedIn(settings, {
        spendingLimit: { perCall: NO_LIMIT, stake: NO_LIMIT },
        beforePayment: (payment) => allow(payment, { options, consent, out }),
        patienceMs: settings.patienceMs,
        onWaiting: (reason) => out.progress(`waiting: ${reason}`),
      });
      return agent;
    },
    toTheEnd: (act) => toTheEnd(act, out),
  };
}

async function toTheEnd<T>(act: () => Promise<T>, out: Output): Promise<T> {
  const giveUpAt = performance.now() + UNKNOWN_FOR_MS;
  let attempt = act;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof OutcomeUnknown) || performance.now() > giveUpAt) throw error;
      out.progress(`paid, outcome not known yet: ${(error.cause as Error).message}`);
      attempt = (error as OutcomeUnknown<T>).resume;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** Paid without a question: what the command line names. Throws SpendingLimitError where nobody consents. */
async function allow(
  { amount, decimal, currency, resource }: PlannedPayment,
  {
    options,
    consent,
    out,
  }: { options: CommonOptions; consent: { stablecoin?: string; tokens?: string }; out: Output },
): Promise<void> {
  const isToken = currency === "protocol-token";
  const unit = isToken ? "protocol tokens" : "of the stablecoin";
  const named = isToken ? consent.tokens : (options.maxPay ?? consent.stablecoin);
  const limit = named === undefined ? null : parseDecimal(named, isToken ? 18 : 6);
  if (named !== undefined && limit === null) throw new UsageError(`${named} is not a decimal amount.`);
  if (limit !== null && amount > limit) {
    throw new SpendingLimitError(
      `${resource} costs ${decimal} ${unit}, more than ${named}. Nothing was signed.`,
    );
  }
  if (
    limit === null &&
    options.yes !== true &&
    !(isInteractive() && (await confirm(`Pay ${decimal} ${unit}?`)))
  ) {
    throw new SpendingLimitError(
      `${resource} costs ${decimal} ${unit}. Nothing was signed: allow it with --max-pay <amount> or --yes.`,
    );
  }
  out.progress(`paying ${decimal} ${unit} for ${resource}`);
}
