/** Calls the contracts directly and pays from allowances, without service or relayer. */

import {
  escrowAbi,
  factoryAbi,
  protocolTokenAbi,
  registryAbi,
  testUsdAbi,
} from "@working-contracts/protocol/abi";
import { voteCommitment } from "@working-contracts/protocol/outcomes";
import { type Parameters, packTerms } from "@working-contracts/protocol/terms";
import { type EscrowTerms, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import {
  type Abi,
  type Address,
  type ContractFunctionArgs,
  type ContractFunctionName,
  concatHex,
  encodeFunctionData,
  type Hex,
  keccak256,
  numberToHex,
  pad,
  stringToHex,
  type TransactionReceipt,
  zeroHash,
} from "viem";
import type { Database } from "../../src/db/client.js";
import { terms } from "../../src/db/schema.js";
import { encodeBatch } from "../../src/relayer/transaction.js";
import { transferData } from "../support/chain.js";
import { domainOf, signAuthorization } from "../support/payment.js";
import type { Wallet } from "../support/test-chain.js";
import type { IndexerNetwork } from "./indexer-network.js";

export const FROM_ALLOWANCE = { validAfter: 0n, validBefore: 0n, nonce: zeroHash, signature: "0x" } as const;
export const PRICE = 50_000_000n;
const BALANCE = 10n ** 12n;
export const ELIGIBILITY_STAKE = 1000n * 10n ** 18n;
/** For every call. An estimate holds only within its second, as the registry's history grows by one entry a second. */
const GAS_LIMIT = 3_000_000n;

export interface EscrowOptions {
  title: string;
  initiator: Wallet;
  counterparty?: Address;
  /** Seconds until the match deadline; the others follow in steps of an hour. */
  matchIn?: number;
  /** Called with the address before the escrow exists. */
  onAddress?: (escrow: Address) => Promise<void>;
}

/** Every call is mined at once, and throws if its transaction reverted. */
export async function createActors(network: IndexerNetwork, accounts: number) {
  const { deployment, publicClient, testClient } = network;
  const owner = network.wallet(0);
  const usd = { address: deployment.asset.address, abi: testUsdAbi } as const;
  const factory = { address: deployment.factory, abi: factoryAbi } as const;
  const token = { address: deployment.protocolToken, abi: protocolTokenAbi } as const;
  const registry = { address: deployment.registry, abi: registryAbi } as const;

  async function send(from: Wallet, to: Address, data: Hex): Promise<TransactionReceipt> {
    const hash = await from.sendTransaction({ to, data, gas: GAS_LIMIT });
    await testClient.mine({ blocks: 1 });
    return network.mined(hash);
  }

  function call<const abi extends Abi, name extends ContractFunctionName<abi, "nonpayable">>(
    from: Wallet,
    target: { address: Address; abi: abi },
    functionName: name,
    args: ContractFunctionArgs<abi, "nonpayable", name>,
  ): Promise<TransactionReceipt> {
    // biome-ignore lint/suspicious/noExplicitAny: viem cannot relate the generic pieces to each other again
    return send(from, target.address, encodeFunctionData({ abi: target.abi, functionName, args } as any));
  }

  for (let index = 1; index <= accounts; index++) {
    await call(owner, usd, "mint", [network.wallet(index).account.address, BALANCE]);
  }

  const escrowAt = (address: Address) => ({ address, abi: escrowAbi }) as const;
  const approve = (from: Wallet, spender: Address) => call(from, usd, "approve", [spender, BALANCE]);

  return {
    call,
    escrowAt,

    async termsOf(options: EscrowOptions): Promise<EscrowTerms> {
      const { timestamp } = await publicClient.getBlock();
      const matchDeadline = Number(timestamp) + (options.matchIn ?? 3600);
      return {
        initiator: options.initiator.account.address,
        price: PRICE,
        counterparty: options.counterparty ?? ZERO_ADDRESS,
        criteriaCount: 3,
        workerInitiated: false,
        computedCriteria: false,
        matchDeadline,
        withdrawalDeadline: matchDeadline + 3600,
        deliveryDeadline: matchDeadline + 7200,
        reviewDeadline: matchDeadline + 10_800,
        termsHash: keccak256(stringToHex(options.title)),
        parameters: await publicClient.readContract({ ...factory, functionName: "parameters" }),
      };
    },

    /** Pays the escrow's address, then creates the escrow: money that is already there counts as the initiator's. */
    async create(options: EscrowOptions): Promise<Address> {
      const terms = await this.termsOf(options);
      const address = await publicClient.readContract({ ...factory, functionName: "predict", args: [terms] });
      await options.onAddress?.(address);
      await call(options.initiator, usd, "transfer", [address, PRICE]);
      await call(options.initiator, factory, "create", [packTerms(terms), FROM_ALLOWANCE]);
      return address.toLowerCase() as Address;
    },

    async accept(party: Wallet, escrow: Address) {
      await approve(party, escrow);
      return call(party, escrowAt(escrow), "accept", [party.account.address, FROM_ALLOWANCE]);
    },
    deliver: (worker: Wallet, escrow: Address) =>
      call(worker, escrowAt(escrow), "deliver", [keccak256("0x01"), keccak256("0x02"), 0]),
    approveDelivery: (client: Wallet, escrow: Address) => call(client, escrowAt(escrow), "approve", []),
    cancel: (initiator: Wallet, escrow: Address) => call(initiator, escrowAt(escrow), "cancel", []),
    settle: (escrow: Address) => call(owner, escrowAt(escrow), "settle", []),

    async dispute(client: Wallet, escrow: Address) {
      await approve(client, escrow);
      return call(client, escrowAt(escrow), "dispute", [FROM_ALLOWANCE]);
    },
    draw: (escrow: Address) => call(owner, escrowAt(escrow), "draw", []),
    async vote(voter: Wallet, escrow: Address, votes: number, salt: Hex) {
      const commitment = voteCommitment({
        chainId: deployment.chainId,
        escrow,
        voter: voter.account.address,
        votes,
        salt,
      });
      await approve(voter, escrow);
      await call(voter, escrowAt(escrow), "vote", [voter.account.address, commitment, FROM_ALLOWANCE]);
      return commitment;
    },
    openVote: (voter: Wallet, escrow: Address, votes: number, salt: Hex) =>
      call(owner, escrowAt(escrow), "openVote", [voter.account.address, votes, salt]),
    tally: (escrow: Address) => call(owner, escrowAt(escrow), "tally", []),
    claim: (voter: Wallet, escrow: Address) =>
      call(owner, escrowAt(escrow), "claim", [voter.account.address]),
    claimDeferred: (payee: Address, escrow: Address) =>
      call(owner, escrowAt(escrow), "claimDeferred", [payee]),

    blacklist: (account: Address, blacklisted: boolean) =>
      call(owner, usd, "setBlacklisted", [account, blacklisted]),
    setDailyCap: (cap: bigint) => call(owner, token, "setDailyCap", [cap]),
    /** Mints as an escrow, which anvil lets a transaction come from. */
    async mintReward(escrow: Address, amount: bigint): Promise<void> {
      await testClient.impersonateAccount({ address: escrow });
      await testClient.setBalance({ address: escrow, value: 10n ** 18n });
      const hash = await testClient.sendUnsignedTransaction({
        from: escrow,
        to: token.address,
        data: encodeFunctionData({
          abi: token.abi,
          functionName: "mintReward",
          args: [owner.account.address, amount],
        }),
        gas: GAS_LIMIT,
      });
      await testClient.mine({ blocks: 1 });
      await network.mined(hash);
    },
    async setParameters(change: Partial<Parameters>) {
      const parameters = await publicClient.readContract({ ...factory, functionName: "parameters" });
      return call(owner, factory, "setParameters", [{ ...parameters, ...change }]);
    },

    async stake(agent: Wallet, amount: bigint) {
      await call(owner, token, "grant", [agent.account.address, amount]);
      await call(agent, token, "approve", [deployment.registry, amount]);
      return call(agent, registry, "stake", [agent.account.address, amount, FROM_ALLOWANCE]);
    },
    requestUnstake: (agent: Wallet) => call(agent, registry, "requestUnstake", [agent.account.address]),
    withdrawStake: (agent: Wallet) => call(owner, registry, "withdrawStake", [agent.account.address]),

    /** Deploys a foreign contract whose constructor emits `topics` and one word of data. */
    async emitLookAlike(topics: readonly Hex[], words: readonly Hex[] = ["0x01"]) {
      const byte = (value: number) => numberToHex(value, { size: 1 });
      const store = words.map((word, place) =>
        concatHex(["0x7f", pad(word), "0x60", byte(32 * place), "0x52"]),
      );
      const push = topics.toReversed().map((topic) => concatHex(["0x7f", pad(topic)]));
      const data = concatHex([
        ...store,
        ...push,
        ...(["0x60", byte(32 * words.length), "0x6000"] as const),
        byte(0xa0 + topics.length),
        "0x00",
      ]);
      const hash = await owner.sendTransaction({ data });
      await testClient.mine({ blocks: 1 });
      const receipt = await network.mined(hash);
      if (receipt.logs.length !== 1) throw new Error("The look-alike emitted nothing");
      return receipt;
    },

    /** A payment that someone broadcast at the token, which the operator then refunds. */
    async directTransfer(payer: Wallet, escrow: Address, amount: bigint, nonce: Hex) {
      const fields = { to: escrow, value: amount, validBefore: 2n ** 48n, nonce };
      const payment = await signAuthorization(payer.account, domainOf(deployment), fields);
      await send(owner, usd.address, transferData(payment));
      const data = encodeFunctionData({
        abi: escrowAbi,
        functionName: "refundDirectTransfer",
        args: [payer.account.address, amount, payment],
      });
      return send(
        network.wallet(1),
        deployment.relay,
        encodeBatch([{ target: escrow, gasLimit: 300_000, data }]),
      );
    },
  };
}

/** Makes this service hold the escrow's terms. Its loops ignore other escrows. */
export async function holdTerms(
  db: Database,
  { escrow, title, caller }: { escrow: Address; title: string; caller: Address },
): Promise<void> {
  await db.insert(terms).values({
    id: escrow.toLowerCase() as Address,
    caller: caller.toLowerCase() as Address,
    bodyHash: keccak256(stringToHex(title)),
    document: "{}",
    title,
    taskDescription: "",
    acceptanceCriteria: [],
    awardMethod: "open_tender",
    initiator: "client",
    escrowTerms: {},
  });
}
