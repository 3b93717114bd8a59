/** Everything that a command needs, above all the signed-in agent. Its API key is saved for later commands. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  type Agent,
  type ConnectOptions,
  connect,
  OutcomeUnknown,
  onChain,
  type PaymentProgress,
  type PaymentProof,
  type PinnedNetwork,
  type PlannedPayment,
  RefusedToSign,
  ServiceError,
  SpendingLimitError,
  type SubmissionStore,
  untilOutcome,
} from "@working-contracts/client/index";
import { CONTRACTS } from "@working-contracts/client/signing";
import {
  formatDecimal,
  MAX_AMOUNT,
  parseDecimal,
  STABLECOIN_DECIMALS,
  TOKEN_DECIMALS,
} from "@working-contracts/protocol/amounts";
import { type Deployment, parseDeployment } from "@working-contracts/protocol/deployment";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { UsageError } from "./errors.js";
import {
  appendPrivateLine,
  exclusively,
  readNamed,
  readPrivateJson,
  submittedIn,
  writePrivateJson,
} from "./files.js";
import { readKeystore } from "./keystore.js";
import { type CommonOptions, readSettings, type Settings, type World } from "./settings.js";
import { askSecret, confirm, createOutput, isInteractive } from "./terminal.js";

/** Amounts that the command line names. */
interface Consent {
  stablecoin?: string;
  tokens?: string;
}

/** The agent signs in, and a password is asked for, only when a command calls for it. */
export type Context = ReturnType<typeof createContext>;

/** No limit: `beforePayment` decides whether to pay. */
const NO_LIMIT = { perCall: formatDecimal(MAX_AMOUNT), stake: formatDecimal(MAX_AMOUNT, TOKEN_DECIMALS) };

/** Reads the settings alone. Throws UsageError or RangeError if one is wrong. */
export function createContext(options: CommonOptions, world: World) {
  const settings = readSettings(options, world);
  const out = createOutput(options, world);
  if (settings.ignored !== undefined) out.progress(settings.ignored);
  const base = { settings, out };
  return {
    ...base,
    /** Signs in. Up to the amount of `consent`, payments need no confirmation. */
    async agent(consent: Consent = {}): Promise<Agent> {
      const { agent } = await signedIn(base, {
        spendingLimit: NO_LIMIT,
        beforePayment: (payment) => allow(payment, { options, consent }),
        patienceMs: settings.patienceMs,
        onWaiting: (reason) => out.progress(`waiting: ${reason}`),
      });
      return agent;
    },
    /** The agent of an earlier sign-in, or of the deployment file with `isAlone`. Throws UsageError if there is none. */
    async reader({ isAlone } = { isAlone: false }): Promise<Agent> {
      const { saved, common } = await connectionOf(base, { patienceMs: settings.patienceMs });
      const { url: baseUrl } = settings;
      const deployment = isAlone ? deploymentOf(settings) : undefined;
      const given = deployment && { ...deployment, baseUrl, network: `eip155:${deployment.chainId}` };
      const network = saved?.network ?? given;
      if (network === undefined)
        throw new UsageError(`not signed in to ${settings.url}: run \`wcontract list\` first`);
      return connect({ ...common, network, apiKey: saved?.apiKey ?? "" });
    },
    /** Own transactions, on the network of the deployment file or the last sign-in. Throws UsageError without a node. */
    async onChain(consent: Consent = {}) {
      const { rpcUrl, clock, maxGasCost } = settings;
      if (rpcUrl === undefined) throw new UsageError("on-chain needs --rpc-url or RPC_URL.");
      const account = await loadAccount(settings);
      return onChain({
        rpcUrl,
        account,
        clock,
        maxGasCost,
        submitted: submittedBy(settings, account),
        network: deploymentOf(settings) ?? savedSignIn(settings, account).saved?.network,
        async beforePayment(payment) {
          await allow(payment, { options, consent });
          announce(base, payment);
        },
      });
    },
    /** Performs a paid action. While its outcome is unknown and can still change, resumes it with the same payment. */
    untilOutcome: <T>(action: () => Promise<T>) =>
      untilOutcome(action, {
        onUnknown: (reason) => out.progress(`payment signed, outcome not known yet: ${reason}`),
      }).catch((error) => {
        const hint = "Before you run the command again, see exit code 5 in `wcontract --help`.";
        throw error instanceof OutcomeUnknown ? Object.assign(error, { hint }) : error;
      }),
  };
}

/** Allows an amount that the command line covers; otherwise asks. Throws SpendingLimitError without consent. */
async function allow(
  { amount, decimal, currency, token, payTo, role, resource }: PlannedPayment,
  { options, consent }: { options: CommonOptions; consent: Consent },
): Promise<void> {
  const isToken = currency === "protocol-token";
  const unit = unitOf(currency);
  const named = isToken ? consent.tokens : (options.maxPay ?? consent.stablecoin);
  const limit =
    named === undefined ? null : parseDecimal(named, isToken ? TOKEN_DECIMALS : STABLECOIN_DECIMALS);
  if (named !== undefined && limit === null) throw new UsageError(`${named} is not a decimal amount.`);
  const cost = `${resource} costs ${decimal} ${unit}`;
  if (limit !== null && amount > limit)
    throw new SpendingLimitError(`${cost}, more than ${named}. Nothing was signed.`);
  const question = `As the ${role}, pay ${decimal} ${unit} (token ${token}) to ${payTo}?`;
  // No terms of a contract say how much to stake.
  const covered = limit !== null || (options.yes === true && !isToken);
  const isAllowed = covered || (isInteractive() && (await confirm(question)));
  const consenting = isToken ? "name the amount (stake <amount>)" : "pass --max-pay <amount> or --yes";
  if (!isAllowed) throw new SpendingLimitError(`${cost}. Nothing was signed. To allow it, ${consenting}.`);
}

const unitOf = (currency: PlannedPayment["currency"]): string =>
  currency === "protocol-token" ? "protocol tokens" : "of the stablecoin";

type Base = Pick<Context, "settings" | "out">;

/** Prints and keeps a payment before it is signed: nothing else names its escrow if the service then falls silent. */
function announce(base: Base, { decimal, currency, payTo, role, resource }: PlannedPayment): void {
  base.out.progress(`as the ${role}, paying ${decimal} ${unitOf(currency)} to ${payTo} for ${resource}`);
  keep(base, "payment", { payTo, decimal, currency, role, resource });
}

/** Appends to a file in the settings folder. Reports a failure, which must stop no payment. */
function keep({ settings, out }: Base, what: "payment" | "receipt", facts: object): void {
  const kept = { at: new Date().toISOString(), service: settings.url, ...facts };
  try {
    appendPrivateLine(join(settings.configDir, `${what}s.jsonl`), JSON.stringify(kept));
  } catch (error) {
    out.progress(`the ${what} could not be stored: ${(error as Error).message}`);
  }
}

/** Loads the account that signs. Throws UsageError if there is no key. */
export async function loadAccount(settings: Settings): Promise<PrivateKeyAccount> {
  const { privateKey, keystorePath } = settings;
  if (privateKey !== undefined) return privateKeyToAccount(privateKey);
  if (!existsSync(keystorePath)) {
    throw new UsageError(`No key found at ${keystorePath}. Run \`wcontract key new\` or set WC_PRIVATE_KEY.`);
  }
  // Asked once: a command can need the key again long after its user has left.
  settings.password ??= await askSecret(
    `Password of ${keystorePath}: `,
    "Set WC_PASSWORD or WC_PASSWORD_FILE.",
  );
  return privateKeyToAccount(await readKeystore(keystorePath, settings.password));
}

/** The addresses to trust, from the deployment file if there is one. */
export function deploymentOf({ deploymentPath: path }: Settings): Deployment | undefined {
  return path === undefined
    ? undefined
    : parseDeployment(readNamed(path, "--deployment or DEPLOYMENT"), path);
}

/** Throws RefusedToSign if the deployment file differs from this network. */
function requireDeployed(settings: Settings, network: PinnedNetwork, source: string): void {
  const deployment = deploymentOf(settings);
  if (deployment === undefined) return;
  const own = { ...deployment, asset: deployment.asset.address };
  const named = { ...network, asset: network.asset.address };
  for (const field of ["chainId", "domain", "startBlock", ...CONTRACTS, "asset"] as const)
    if (named[field] !== own[field])
      throw new RefusedToSign(
        field,
        `the deployment file ${settings.deploymentPath} has ${own[field]}, ${source} ${named[field]}`,
      );
}

const submittedBy = ({ configDir }: Settings, { address }: PrivateKeyAccount): SubmissionStore =>
  submittedIn(join(configDir, "submitted", address.toLowerCase()));

const ApiKeysSchema = z.record(z.string(), z.unknown()).nullable();
/** A saved sign-in. The network is not validated further, because only this program writes the file. */
const SignInSchema = z.object({
  apiKey: z.string(),
  operator: z.enum(["none", "all"]),
  network: z.custom<PinnedNetwork>((value) => typeof value === "object" && value !== null),
});

type SignInOptions = Omit<ConnectOptions, "baseUrl" | "account" | "apiKey" | "onReceipt">;

/**
 * Signs in once per service and address, and pins the network: nothing is signed for another one later, nor for one that
 * differs from the deployment file.
 */
export async function signedIn(
  context: Base,
  options: SignInOptions,
): Promise<{ agent: Agent; account: PrivateKeyAccount }> {
  const { account, saved, claim, save, common } = await connectionOf(context, options);
  const { operator } = context.settings;
  if (saved?.operator === operator) {
    const agent = await connect({ ...common, apiKey: saved.apiKey });
    if (await isAccepted(agent)) return { agent, account };
  }
  claim();
  const { network } = saved ?? (await connect({ ...common, apiKey: "" }));
  requireDeployed(context.settings, network, `the service ${common.baseUrl}`);
  const agent = await connect({ ...common, network, label: "wcontract" });
  save({ apiKey: agent.apiKey, operator, network });
  return { agent, account };
}

/** How to connect, from the settings and the saved sign-in. Payments and receipts are kept, and faults of receipts reported. */
async function connectionOf(base: Base, options: SignInOptions) {
  const { settings, out } = base;
  const account = await loadAccount(settings);
  const { saved, claim, save, path } = savedSignIn(settings, account);
  if (saved)
    requireDeployed(settings, saved.network, `your earlier sign-in (in ${path}; remove it to start over)`);
  const { url: baseUrl, clock, operator, domain, rpcUrl, maxGasCost } = settings;
  const common = {
    ...options,
    baseUrl,
    maxGasCost,
    account,
    clock,
    operator,
    onProgress({ step, payment }: PaymentProgress) {
      // Nothing refuses it any more.
      if (step === "signing") announce(base, payment);
    },
    onReceipt(proof: PaymentProof) {
      const { fault } = proof;
      if (fault !== null) out.progress(`paid, but the service's receipt proves nothing: ${fault}`);
      keep(base, "receipt", proof);
    },
    submitted: submittedBy(settings, account),
    ...(domain !== undefined && { domain }),
    ...(rpcUrl !== undefined && { node: rpcUrl }),
    ...(saved && { network: saved.network }),
  };
  return { account, saved, claim, save, common };
}

function savedSignIn({ configDir, url }: Settings, { address }: PrivateKeyAccount) {
  const path = join(configDir, "api-keys.json");
  const entry = `${url} ${address.toLowerCase()}`;
  const keys = () => {
    const { success, data } = ApiKeysSchema.safeParse(readPrivateJson(path));
    if (!success) throw new Error(`${path} is not a record of sign-ins. Repair or delete it.`);
    return data;
  };
  return {
    path,
    /** Throws if a new API key could not be saved, as under the lock of a process that died. */
    claim: () => exclusively(path, () => {}),
    // An entry in another format, as from an earlier release, is replaced.
    saved: SignInSchema.safeParse(keys()?.[entry]).data,
    save: (signIn: z.infer<typeof SignInSchema>) =>
      exclusively(path, () => writePrivateJson(path, { ...keys(), [entry]: signIn })),
  };
}

/** A saved key can be revoked, or belong to a database that was reset. */
async function isAccepted(agent: Agent): Promise<boolean> {
  try {
    // One page: a service could offer one after the other.
    await agent.call("GET /v1/agents/me/api-keys");
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === "unauthorized") return false;
    throw error;
  }
}
