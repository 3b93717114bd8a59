/** Everything that a command needs. */
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
  /** Signs in. `consent` is the amount that the command line names, if any; up to it, payments need no confirmation. */
  agent(consent?: { stablecoin?: string; tokens?: string }): Promise<Agent>;
  /** Performs a paid action. While its outcome is unknown and can still change, resumes it with the same payment. */
  toTheEnd<T>(action: () => Promise<T>): Promise<T>;
}

/** Practically unlimited: `beforePayment` decides whether to pay. */
const NO_LIMIT = "10000000000";
/** Longer than the validity of a signed payment. */
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
    toTheEnd: (action) => toTheEnd(action, out),
  };
}

async function toTheEnd<T>(action: () => Promise<T>, out: Output): Promise<T> {
  const deadline = performance.now() + UNKNOWN_FOR_MS;
  let attempt = action;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof OutcomeUnknown) || performance.now() > deadline) throw error;
      out.progress(`payment signed, outcome not known yet: ${(error.cause as Error).message}`);
      attempt = (error as OutcomeUnknown<T>).resume;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** Allows an amount that the command line covers; otherwise asks. Throws SpendingLimitError without consent. */
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
      `${resource} costs ${decimal} ${unit}. Nothing was signed. To allow it, pass --max-pay <amount> or --yes.`,
    );
  }
  out.progress(`paying ${decimal} ${unit} for ${resource}`);
}
