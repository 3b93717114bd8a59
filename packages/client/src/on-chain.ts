/** An agent's own transactions, for which it needs gas and no service. index.ts documents `onChain`. */
import { escrowAbi, factoryAbi, registryAbi } from "@working-contracts/protocol/abi";
import { parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { encodeWords } from "@working-contracts/protocol/calls";
import { checkpointLeaf, rootOfLeaves } from "@working-contracts/protocol/checkpoints";
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import { depositsOf, disputeBond, voteDeposit } from "@working-contracts/protocol/ledger";
import { bondNonce, findVotes, packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import type { Status } from "@working-contracts/protocol/status";
import { escrowAddress, packTerms } from "@working-contracts/protocol/terms";
import type { Address, EscrowTerms } from "@working-contracts/protocol/types";
import {
  type Abi,
  type Account,
  BaseError,
  ContractFunctionRevertedError,
  createClient,
  erc20Abi,
  type Hex,
  http,
  zeroHash,
} from "viem";
import {
  getBlock,
  getChainId,
  getCode,
  readContract,
  waitForTransactionReceipt,
  writeContract,
} from "viem/actions";
import { escrowAt, hostOf, requireOnChain, withoutUrl } from "./chain-check.js";
import { lowerCase } from "./connect.js";
import { Reverted } from "./errors.js";
import { signAuthorization, VALIDITY_SECONDS } from "./payment.js";
import { plannedOf } from "./session.js";
import type { PlannedPayment } from "./spending.js";
import type { Addresses, Checkpoint, Outcome } from "./types.js";
import { voteSalt } from "./votes.js";
import type { Signer } from "./wallets.js";

export interface OnChainOptions {
  rpcUrl: string;
  /** Signs, and pays the gas. */
  account: Account;
  /** The pinned addresses of the protocol: payments and stakes need them. */
  network?: Addresses | undefined;
  /** Called before each payment is signed. Throw to refuse the payment. */
  beforePayment?: ((payment: PlannedPayment) => void | Promise<void>) | undefined;
}

export interface DeliverOnChainOptions {
  /** All that were submitted, in order. */
  checkpoints?: readonly Checkpoint[];
  /** One for each criterion, if criteria are computed. */
  outcomes?: readonly Outcome[];
}

export function onChainActions({ rpcUrl, account, network, beforePayment }: OnChainOptions) {
  const client = createClient({ account, transport: http(rpcUrl) });
  const me = account.address.toLowerCase() as Address;
  const signer = account as unknown as Signer;
  const pinned = (): Addresses => {
    if (network !== undefined) return lowerCase(network);
    throw new TypeError("This needs `network`, the addresses of the protocol");
  };

  async function transact(address: string, abi: Abi, functionName: string, args: readonly unknown[] = []) {
    const to = address.toLowerCase() as Address;
    try {
      // A call to an address without code would succeed and do nothing.
      if ((await getCode(client, { address: to })) === undefined)
        throw new Error(`No contract at ${to} on the chain of ${hostOf(rpcUrl)}`);
      const hash = await writeContract(client, {
        address: to,
        abi,
        functionName,
        args,
        account,
        chain: null,
      });
      const { status, transactionHash } = await waitForTransactionReceipt(client, { hash });
      if (transactionHash !== hash)
        throw new Error(`The transaction ${hash} was replaced by ${transactionHash}`);
      if (status !== "success") throw new Error(`The transaction ${hash} reverted`);
      return hash;
    } catch (error) {
      const cause =
        error instanceof BaseError ? error.walk((one) => one instanceof ContractFunctionRevertedError) : null;
      if (cause instanceof ContractFunctionRevertedError) {
        const { data, shortMessage } = cause;
        const reason = data === undefined ? shortMessage : `${data.errorName}(${data.args ?? ""})`;
        throw new Reverted(`${functionName} at ${to}: ${reason}`, data?.errorName);
      }
      return withoutUrl(rpcUrl, error as Error);
    }
  }
  const call = (functionName: string) => (id: string) => transact(id, escrowAbi, functionName);

  /** Signs a payment that only this escrow can use. */
  async function depositOf(
    id: string,
    terms: EscrowTerms,
    { amount, nonce }: { amount: bigint; nonce?: Hex },
  ) {
    const { asset } = pinned();
    const escrow = { id, terms };
    await beforePayment?.(plannedOf({ payTo: id, amount, currency: "stablecoin", resource: id, escrow }));
    const { timestamp } = await getBlock(client);
    const validBefore = Number(timestamp) + VALIDITY_SECONDS;
    const authorization = { asset, payTo: id, amount, nonce, validBefore };
    const { message, signature } = await signAuthorization(signer, pinned(), authorization);
    return { ...message, signature };
  }

  /** Throws RefusedToSign unless the escrow is one of the deployment and has the status. */
  async function pay(
    id: string,
    status: Status,
    dueOf: (terms: EscrowTerms) => { amount: bigint; nonce?: Hex },
  ) {
    const escrow = await escrowAt(rpcUrl, pinned(), id);
    await escrow.requireStatus(status);
    return depositOf(id, escrow.terms, dueOf(escrow.terms));
  }

  async function ballotOf(id: string, salt?: Hex) {
    const ballot = { chainId: await getChainId(client), escrow: id.toLowerCase() as Address, voter: me };
    return { ...ballot, salt: salt ?? (await voteSalt(signer, ballot)) };
  }

  return {
    /**
     * Creates the contract of a quote (`dryRun` of the client returns its terms), from which the service keeps the text.
     */
    async create(terms: EscrowTerms): Promise<Hex> {
      const { factory, implementation } = pinned() as { factory: Address; implementation: Address };
      const id = escrowAddress({ factory, implementation, terms });
      await requireOnChain(rpcUrl, pinned(), { id, terms, isNew: true });
      const deposit = await depositOf(id, terms, { amount: depositsOf(terms).initiator });
      return transact(factory, factoryAbi, "create", [packTerms(terms), deposit]);
    },
    /** Pays the Worker Stake, or the price of a listing. */
    async accept(id: string): Promise<Hex> {
      const deposit = await pay(id, "created", (terms) => ({ amount: depositsOf(terms).acceptor }));
      return transact(id, escrowAbi, "accept", [me, deposit]);
    },
    decline: call("decline"),
    cancel: call("cancel"),
    withdraw: call("withdraw"),
    /** Commits to a reference that the Client has to get in another way. */
    deliver(id: string, reference: string, { checkpoints = [], outcomes = [] }: DeliverOnChainOptions = {}) {
      const root = rootOfLeaves(checkpoints.map(checkpointLeaf));
      const args = [keccak256(stringToHex(reference)), root, packOutcomes(outcomes)];
      return transact(id, escrowAbi, "deliver", args);
    },
    approve: call("approve"),
    /** Pays the Dispute Bond. */
    async dispute(id: string): Promise<Hex> {
      const bond = await pay(id, "under-review", ({ price, parameters }) => ({
        amount: disputeBond(price, parameters),
      }));
      return transact(id, escrowAbi, "dispute", [bond]);
    },
    draw: call("draw"),
    /** Pays the bond, and seals the votes with a salt, by default the one that the account's signature gives. */
    async vote(id: string, words: readonly Outcome[], salt?: Hex): Promise<Hex> {
      const commitment = voteCommitment({ ...(await ballotOf(id, salt)), votes: packOutcomes(words) });
      const bond = await pay(id, "disputed", ({ price, criteriaCount, parameters }) => {
        if (words.length !== criteriaCount)
          throw new RangeError(`${words.length} outcomes for ${criteriaCount} criteria`);
        return { amount: voteDeposit(price, criteriaCount, parameters), nonce: bondNonce(commitment) };
      });
      return transact(id, escrowAbi, "vote", [me, commitment, bond]);
    },
    /** Opens the account's own vote, once voting has ended and for a day. Throws if the salt does not open it. */
    async openVote(id: string, salt?: Hex): Promise<Hex> {
      const ballot = await ballotOf(id, salt);
      const sealed = {
        address: ballot.escrow,
        abi: escrowAbi,
        functionName: "ballotOf",
        args: [me],
      } as const;
      const words = findVotes(encodeWords(await readContract(client, sealed)), ballot);
      if (words === null) throw new Error(`${me} has no sealed vote on ${id} that this salt opens`);
      return transact(id, escrowAbi, "openVote", [me, packOutcomes(words), ballot.salt]);
    },
    tally: call("tally"),
    /** Pays the parties. Returns null if it was settled already. */
    settle: (id: string): Promise<Hex | null> =>
      transact(id, escrowAbi, "settle").catch((error) => {
        if (error instanceof Reverted && error.errorName === "AlreadySettled") return null;
        throw error;
      }),
    /** Pays a Backup Agent, by default this account, its bond, its share of slashed bonds and its reward. */
    claim: (id: string, backupAgent: string = me) => transact(id, escrowAbi, "claim", [backupAgent]),
    /** Pays what the token refused to transfer before. */
    claimDeferred: (id: string, payee: string = me) => transact(id, escrowAbi, "claimDeferred", [payee]),
    /** Stakes protocol tokens, given as a decimal, in two transactions: the registry may take them, and does. */
    async stake(amount: string): Promise<Hex> {
      const { protocolToken, registry } = pinned();
      const units = parseDecimal(amount, TOKEN_DECIMALS);
      if (units === null) throw new RangeError(`${amount} is not an amount of protocol tokens`);
      await beforePayment?.(
        plannedOf({ payTo: registry, amount: units, currency: "protocol-token", resource: registry }),
      );
      await transact(protocolToken, erc20Abi, "approve", [registry, units]);
      const unsigned = { validAfter: 0n, validBefore: 0n, nonce: zeroHash, signature: "0x" };
      return transact(registry, registryAbi, "stake", [me, units, unsigned]);
    },
    /** Starts to withdraw the whole stake. */
    unstake: () => transact(pinned().registry, registryAbi, "requestUnstake", [me]),
    /** Pays out the stake, 48 hours after `unstake` and once its votes can no longer be opened. */
    withdrawStake: () => transact(pinned().registry, registryAbi, "withdrawStake", [me]),
    /** Ends every signed action for an escrow, by default those for the registry, that was not used yet. */
    cancelSignatures: (id: string = pinned().registry) => transact(id, escrowAbi, "cancelSignatures"),
  };
}
