/** An agent's own transactions, for which it needs gas and no service. index.ts documents `onChain`. */
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { checkpointLeaf, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { encodeWords, keccak256, stringToHex, toHex } from "@working-contracts/protocol/hex";
import { CHALLENGE_VALIDITY } from "@working-contracts/protocol/limits";
import { bondNonce, findVotes, packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import { challengeText, MAX_DATED_AHEAD } from "@working-contracts/protocol/signatures";
import { isVotingClosed } from "@working-contracts/protocol/status";
import { escrowAddress, packTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms } from "@working-contracts/protocol/types";
import {
  type Abi,
  BaseError,
  ContractFunctionRevertedError,
  createClient,
  encodeFunctionData,
  type Hex,
  http,
  type LocalAccount,
  RpcRequestError,
  type TransactionSerializable,
} from "viem";
import {
  getBlock,
  getChainId,
  getCode,
  getEip712Domain,
  readContract,
  sendRawTransaction,
  simulateContract,
  waitForTransactionReceipt,
} from "viem/actions";
import { clientAbi } from "./abi.js";
import {
  escrowAt,
  grantAt,
  requireChain,
  requireKnownCode,
  requireOnChain,
  requireTokens,
  termsIn,
} from "./chain-check.js";
import type { ConnectOptions } from "./connect.js";
import { OutcomeUnknown, RefusedToSign, Reverted } from "./errors.js";
import { fetchWhole } from "./http.js";
import { type Expected, signAuthorization, VALIDITY_SECONDS } from "./payment.js";
import { hostOf, shortOf, withoutUrl } from "./rpc.js";
import { type ExpectedPayment, plannedOf, votesKey } from "./session.js";
import { lowerCase, type OperatorPermission, permissionOf, requireNotAhead } from "./signing.js";
import { type Due, dueToAccept, dueToCreate, dueToDispute, dueToVote, requireBounds } from "./terms.js";
import type { Addresses, Checkpoint, Outcome } from "./types.js";
import { type Signer, voteSalt } from "./wallets.js";

/** Without `network`, only actions that neither pay nor vote. Others as with `connect`; `clock` is about the node's. */
export interface OnChainOptions
  extends Pick<ConnectOptions, "beforePayment" | "clock" | "maxGasCost" | "submitted"> {
  rpcUrl: string;
  /** Signs, and pays the gas. */
  account: LocalAccount;
  /** The pinned addresses of the protocol: payments, stakes and votes need them. */
  network?: Addresses | undefined;
}

/** For continuous work. The delivery commits to both, so a checkpoint that is missing here can never be proven. */
export interface DeliverOnChainOptions {
  /** All that were submitted, in order, or their hashes. */
  checkpoints?: readonly (Checkpoint | Hex)[];
  /** One for each criterion, if criteria are computed. */
  outcomes?: readonly Outcome[];
}

const POLLING_MS = 1_000;
const MAX_GAS_COST = 10n ** 16n;
/** Nodes estimate for the newest block: in the next one, entries that the call overwrites there can be new. */
const withMargin = (estimated: bigint): bigint => (estimated * 3n) / 2n + 50_000n;

/** The actions behind `onChain` of index.ts. No error contains the node's URL, which can hold a key. */
export function onChainActions(options: OnChainOptions) {
  const actions = createActions(options, createTransactor(options));
  const guarded = Object.entries(actions).map(([name, act]) => {
    const perform = act as (...args: unknown[]) => Promise<unknown>;
    return [
      name,
      (...args: unknown[]) => perform(...args).catch((error) => withoutUrl(options.rpcUrl, error)),
    ];
  });
  return Object.fromEntries(guarded) as typeof actions;
}

/** Sends the account's transactions and signs its payments, at one node. */
function createTransactor({
  rpcUrl,
  account,
  network,
  beforePayment,
  clock,
  maxGasCost = MAX_GAS_COST,
}: OnChainOptions) {
  const client = createClient({
    account,
    transport: http(rpcUrl, { fetchFn: fetchWhole }),
    pollingInterval: POLLING_MS,
  });
  /** A node that is asked again after a lost answer refuses the transaction that it has. */
  const sender = createClient({ transport: http(rpcUrl, { fetchFn: fetchWhole, retryCount: 0 }) });
  const rpc = <T>(method: string, params: unknown[]) =>
    client.request({ method, params } as never) as Promise<T>;
  const me = account.address.toLowerCase() as Address;
  const signer: Signer = account;
  const pinned = (): Addresses => {
    if (network !== undefined) return lowerCase(network);
    throw new RangeError("This needs `network`, the addresses of the protocol (--deployment)");
  };
  const chainId = async (): Promise<number> => network?.chainId ?? getChainId(client);

  /** Throws RefusedToSign if the node is on another chain, or proposes fees beyond `maxGasCost`. */
  async function prepared(to: Address, data: Hex): Promise<TransactionSerializable> {
    const numberOf = async (method: string, ...params: unknown[]) => BigInt(await rpc<Hex>(method, params));
    if (network !== undefined) await requireChain(rpc, network);
    const [chain, nonce, estimated, { baseFeePerGas }] = await Promise.all([
      chainId(),
      numberOf("eth_getTransactionCount", me, "pending"),
      numberOf("eth_estimateGas", { from: me, to, data }),
      rpc<{ baseFeePerGas?: Hex }>("eth_getBlockByNumber", ["latest", false]),
    ]);
    const price = () => numberOf("eth_gasPrice");
    const base = baseFeePerGas && BigInt(baseFeePerGas);
    const proposed =
      base === undefined
        ? 0n
        : await numberOf("eth_maxPriorityFeePerGas").catch(async () => (await price()) - base);
    // A node's price can be older than its base fee.
    const tip = proposed > 0n ? proposed : 0n;
    // The base fee can rise before the next blocks.
    const fee = base === undefined ? await price() : (base * 6n) / 5n + tip;
    const gas = withMargin(estimated);
    const cost = gas * fee;
    if (cost > maxGasCost)
      throw new RefusedToSign(
        "gas",
        `it could cost ${formatDecimal(cost, 18)} ether, more than the ${formatDecimal(maxGasCost, 18)} allowed. Wait for lower fees, or raise maxGasCost (--max-gas)`,
      );
    const fees = base === undefined ? { gasPrice: fee } : { maxFeePerGas: fee, maxPriorityFeePerGas: tip };
    return { chainId: chain, nonce: Number(nonce), gas, to, data, ...fees };
  }

  /** Throws OutcomeUnknown once the transaction is signed and sent: resuming it sends no other one. */
  async function transact(address: string, functionName: string, args: readonly unknown[] = []) {
    const to = address.toLowerCase() as Address;
    // A call to an address without code would succeed and do nothing.
    if ((await getCode(client, { address: to })) === undefined)
      throw new Error(`No contract at ${to} on the chain of ${hostOf(rpcUrl)}`);
    const call = { address: to, abi: clientAbi as Abi, functionName, args, account };
    const requireAccepted = () => simulateContract(client, call).catch((error) => refuse(call, error));
    await requireAccepted();
    const data = encodeFunctionData(call);
    const transaction = await prepared(to, data).catch(async (error) => {
      // Another transaction can have come first: then the contract names the reason.
      if (!(error instanceof RefusedToSign)) await requireAccepted();
      throw error;
    });
    const serializedTransaction = await account.signTransaction(transaction);
    const hash = keccak256(serializedTransaction);
    const send = () => sendRawTransaction(sender, { serializedTransaction });

    async function outcome(): Promise<Hex> {
      const { status, transactionHash } = await waitForTransactionReceipt(client, { hash }).catch((error) => {
        const reason = new Error(shortOf(error));
        const message = `The outcome of the transaction ${hash} is not known yet (${reason.message})`;
        // A node that has it says so.
        throw new OutcomeUnknown(message, () => send().then(outcome, outcome), reason);
      });
      if (transactionHash !== hash)
        throw new Error(`The transaction ${hash} was replaced by ${transactionHash}`);
      if (status === "success") return hash;
      await requireAccepted();
      throw new Reverted(`The transaction ${hash} reverted`, undefined);
    }

    await send().catch(async (error) => {
      // Without an answer, the node can have it; a proxy that sent it twice names the refusal of the second.
      if (!(error instanceof BaseError && error.walk((one) => one instanceof RpcRequestError))) return;
      if (!(await rpc("eth_getTransactionByHash", [hash]).catch(() => null))) throw error;
    });
    return outcome();
  }

  /** In seconds. Throws RefusedToSign if it is ahead of this machine's clock. */
  async function nodeTime(): Promise<number> {
    const time = Number((await getBlock(client)).timestamp);
    if (clock !== "service") requireNotAhead(time, "the node");
    return time;
  }

  /** Signs a payment to the escrow or the registry, which only that contract can use. */
  async function sign(
    payment: ExpectedPayment,
    given: Pick<Parameters<typeof signAuthorization>[2], "asset" | "nonce">,
  ) {
    const { payTo, amount, deadline = Infinity } = payment;
    await requireKnownCode(rpcUrl, pinned());
    await requireTokens(rpcUrl, pinned());
    await beforePayment?.(plannedOf({ ...payment, resource: payTo }, pinned()));
    const validBefore = Math.min((await nodeTime()) + VALIDITY_SECONDS, deadline);
    const authorization = { ...given, payTo, amount, validBefore };
    const { message, signature } = await signAuthorization(signer, pinned(), authorization);
    return { ...message, signature };
  }

  return { client, me, signer, pinned, chainId, transact, nodeTime, sign };
}

/** Throws Reverted with the reason why the contract refuses the call. */
function refuse({ address, functionName }: { address: string; functionName: string }, error: unknown): never {
  const cause =
    error instanceof BaseError ? error.walk((one) => one instanceof ContractFunctionRevertedError) : null;
  if (!(cause instanceof ContractFunctionRevertedError)) throw error;
  const { data, shortMessage } = cause;
  const reason = data === undefined ? shortMessage : `${data.errorName}(${data.args ?? ""})`;
  throw new Reverted(`${functionName} at ${address}: ${reason}`, data?.errorName);
}

/** Errors of these actions can contain the node's URL. */
function createActions(
  { rpcUrl, submitted }: OnChainOptions,
  { client, me, signer, pinned, chainId, transact, nodeTime, sign }: ReturnType<typeof createTransactor>,
) {
  const call = (functionName: string) => (id: string) => transact(id, functionName);
  async function callRegistry(functionName: string, args: readonly unknown[]): Promise<Hex> {
    await requireOnChain(rpcUrl, pinned());
    return transact(pinned().registry, functionName, args);
  }

  function depositOf(escrow: Required<Expected>["escrow"], due: Due, nonce?: Hex) {
    requireBounds(escrow.terms);
    const payment = { payTo: escrow.id, currency: "stablecoin", escrow, ...due } as const;
    return sign(payment, { asset: pinned().asset, nonce });
  }

  /** Throws RefusedToSign unless the escrow is one of the deployment and has the status. */
  async function pay(id: string, dueOf: (terms: EscrowTerms) => Due, nonce?: Hex) {
    const { terms, requireStatus } = await escrowAt(rpcUrl, pinned(), id);
    const due = dueOf(terms);
    await requireStatus(due.status);
    return depositOf({ id, terms }, due, nonce);
  }

  async function ballotOf(id: string, salt?: Hex) {
    const ballot = { chainId: await chainId(), escrow: id.toLowerCase() as Address, voter: me };
    return { ...ballot, salt: salt ?? (await voteSalt(signer, { ...pinned(), ...ballot })) };
  }

  return {
    /** Creates the contract of a quote, whose text the service has (`dryRun` of the client returns its terms). */
    async create(terms: EscrowTerms): Promise<Hex> {
      const { factory, implementation } = pinned() as { factory: Address; implementation: Address };
      const id = escrowAddress({ factory, implementation, terms });
      const escrow = { id, terms, isNew: true };
      await requireOnChain(rpcUrl, pinned(), escrow);
      const deposit = await depositOf(escrow, dueToCreate(terms));
      return transact(factory, "create", [packTerms(terms), deposit]);
    },
    /** Pays the Worker Stake, or the price of a listing. */
    async accept(id: string): Promise<Hex> {
      return transact(id, "accept", [me, await pay(id, dueToAccept)]);
    },
    decline: call("decline"),
    cancel: call("cancel"),
    withdraw: call("withdraw"),
    /** Commits to a reference that the Client has to get in another way. */
    deliver(id: string, reference: string, { checkpoints = [], outcomes = [] }: DeliverOnChainOptions = {}) {
      const leafOf = (one: Checkpoint | Hex) => (typeof one === "string" ? one : checkpointLeaf(one));
      const root = rootOfLeaves(checkpoints.map(leafOf));
      const args = [keccak256(stringToHex(reference)), root, packOutcomes(outcomes)];
      return transact(id, "deliver", args);
    },
    approve: call("approve"),
    /** Pays the Dispute Bond. */
    async dispute(id: string): Promise<Hex> {
      return transact(id, "dispute", [await pay(id, dueToDispute)]);
    },
    draw: call("draw"),
    /** Pays the bond, and seals the votes with a salt, by default the one that the account's signature gives. */
    async vote(id: string, words: readonly Outcome[], salt?: Hex): Promise<Hex> {
      const commitment = voteCommitment({ ...(await ballotOf(id, salt)), votes: packOutcomes(words) });
      const bond = await pay(id, dueToVote(words), bondNonce(commitment));
      await submitted?.add(votesKey(pinned()), id.toLowerCase() as Hex);
      return transact(id, "vote", [me, commitment, bond]);
    },
    /** Opens the own vote, for a day. Throws if the salt is another one, or voting has not ended: the node would learn the vote. */
    async openVote(id: string, salt?: Hex): Promise<Hex> {
      const escrow = { address: id.toLowerCase() as Address, abi: clientAbi } as const;
      const terms = termsIn(await getCode(client, escrow));
      if (terms === undefined) throw new Error(`No escrow at ${id} on the chain of ${hostOf(rpcUrl)}`);
      const jury = await readContract(client, { ...escrow, functionName: "jury" });
      const dispute = { ...terms.parameters, ...jury, disputedAt: BigInt(jury.disputedAt) };
      if (!isVotingClosed(dispute, await nodeTime()))
        throw new Error(`Voting on ${id} has not ended. Open your vote after that`);
      const ballot = await ballotOf(id, salt);
      const sealed = { ...escrow, functionName: "ballotOf", args: [me] } as const;
      const words = findVotes(encodeWords(await readContract(client, sealed)), ballot);
      if (words === null) throw new Error(`${me} has no sealed vote on ${id} that this salt opens`);
      return transact(id, "openVote", [me, packOutcomes(words), ballot.salt]);
    },
    tally: call("tally"),
    /** Pays the parties. Returns null if it was settled already. */
    settle: (id: string): Promise<Hex | null> =>
      transact(id, "settle").catch((error) => {
        if (error instanceof Reverted && error.errorName === "AlreadySettled") return null;
        throw error;
      }),
    /** Pays a Backup Agent, by default this account, its bond, its share of slashed bonds and its reward. */
    claim: (id: string, backupAgent: string = me) => transact(id, "claim", [backupAgent]),
    /** Pays what the token refused to transfer before. */
    claimDeferred: (id: string, payee: string = me) => transact(id, "claimDeferred", [payee]),
    /** Stakes protocol tokens, given as a decimal. */
    async stake(amount: string): Promise<Hex> {
      const { protocolToken, registry } = pinned();
      const units = parseDecimal(amount, TOKEN_DECIMALS);
      if (units === null) throw new RangeError(`${amount} is not an amount of protocol tokens`);
      await requireOnChain(rpcUrl, pinned());
      const { domain } = await getEip712Domain(client, { address: protocolToken as Address });
      const { name = "", version = "" } = domain;
      const payment = { payTo: registry, amount: units, currency: "protocol-token" } as const;
      const authorization = await sign(payment, { asset: { address: protocolToken, name, version } });
      return transact(registry, "stake", [me, units, authorization]);
    },
    /** Starts to withdraw the whole stake. */
    unstake: () => callRegistry("requestUnstake", [me]),
    /** Pays out the stake, 48 hours after `unstake` and once its votes can no longer be opened. */
    withdrawStake: () => callRegistry("withdrawStake", [me]),
    /** Ends every signed action for an escrow, by default those for the registry, that was not used yet. */
    cancelSignatures: (id?: string) =>
      id === undefined ? callRegistry("cancelSignatures", []) : transact(id, "cancelSignatures"),
    /** Registers what the operator may do, by default nothing. Repeat it six minutes after a sign-in, which can be dated ahead. */
    async register(operator: OperatorPermission = "none"): Promise<Hex> {
      const { relay, factory, domain, chainId } = pinned() as Addresses & {
        relay: Address;
        factory: Address;
      };
      const earlier = await grantAt(rpcUrl, pinned(), me);
      // The newest date counts; an earlier delegation can be dated ahead.
      const now = await nodeTime();
      const issuedAt = Math.max(now, earlier.issuedAt + 1, earlier.revokedAt + 1);
      // No contract has accepted such a date yet. The node could register this one later, and no other would replace it.
      if (issuedAt > now + MAX_DATED_AHEAD)
        throw new RefusedToSign(
          "issuedAt",
          `the node shows a delegation or revocation dated over ${MAX_DATED_AHEAD / 60} minutes ahead of its clock. Use another node`,
        );
      const nonce = toHex(crypto.getRandomValues(new Uint8Array(32)));
      const dated = { nonce, issuedAt, expiresAt: issuedAt + CHALLENGE_VALIDITY };
      const delegation = { agent: me, operator: relay, ...permissionOf(operator), ...dated };
      const message = challengeText({ ...delegation, domain, factory, chainId });
      return transact(relay, "register", [delegation, await signer.signMessage({ message })]);
    },
    /** Ends what the agent leaves to the operator. Repeat it six minutes after a sign-in, which can be dated ahead. */
    async revoke(): Promise<Hex> {
      await grantAt(rpcUrl, pinned(), me);
      return transact(pinned().relay, "revoke", [me, pinned().relay]);
    },
  };
}
