/** Names the party whose signature allowed each step of a contract, from the chain alone. */
import { encodeWords } from "@working-contracts/protocol/hex";
import { depositsOf } from "@working-contracts/protocol/ledger";
import { ACTION_SIGNATURE_LENGTH } from "@working-contracts/protocol/limits";
import { bondNonce } from "@working-contracts/protocol/outcomes";
import {
  type AgentAction,
  actionBits,
  actionTypedData,
  complaintCall,
} from "@working-contracts/protocol/signatures";
import canonicalize from "canonicalize";
import {
  type Address,
  type BaseError,
  type Client,
  type Hex,
  isHex,
  parseAbi,
  parseEventLogs,
  type TransactionReceipt,
} from "viem";
import {
  getCode,
  getContractEvents,
  getTransaction,
  getTransactionReceipt,
  readContract,
} from "viem/actions";
import { hashTypedData, recoverAddress } from "viem/utils";
import { clientAbi } from "../abi.js";
import type { Complaint, SignedComplaint } from "../types.js";
import {
  type EscrowEvent,
  type EscrowOnChain,
  inRanges,
  lower,
  type Protocol,
  tokenAbi,
} from "./read-chain.js";

/** An event of a contract, and the reason why the escrow accepted it. */
export interface Step {
  step: string;
  /** It signed what allowed the step; it sent the transaction of a step that anyone can take. */
  party: string;
  allowedBy: string;
  transactionHash: Hex;
}

/** These follow from another step in the same transaction. */
const NO_STEPS = new Set(["ActionSigned", "PayoutDeferred", "RewardDeferred"]);
const PAYMENT = "its payment authorization";
/** The escrow takes either for a payment that the operator credits to it. */
const USED_BEFORE = `${PAYMENT}, used or cancelled at the token`;

/** One step per event, in order, without events that only follow from another one. Throws if the node fails. */
export async function stepsOf(
  client: Client,
  { id, escrow, network }: { id: Address; escrow: EscrowOnChain; network: Protocol },
): Promise<Step[]> {
  const { terms, events } = escrow;
  const upTo = (toBlock: bigint) => ({ ...network, toBlock });
  const matched = events.find(({ name }) => name === "Matched");
  const disputedIn = events.find(({ name }) => name === "Disputed")?.blockNumber ?? 0n;
  const acceptor = lower(matched?.args.counterparty ?? terms.counterparty);
  const [agentClient, worker] = terms.workerInitiated
    ? [acceptor, terms.initiator]
    : [terms.initiator, acceptor];
  const actors: Record<string, [Address, AgentAction]> = {
    Cancelled: [terms.initiator, "cancel"],
    Declined: [acceptor, "decline"],
    Withdrawn: [worker, "withdraw"],
    Delivered: [worker, "deliver"],
    Approved: [agentClient, "approve"],
  };
  const payers: Record<string, Address> = {
    Created: terms.initiator,
    Matched: acceptor,
    Disputed: agentClient,
  };

  /** The escrow accepts a signature, a call by the party or by whom it delegated to; an event shows the first. */
  async function actionOf(
    event: EscrowEvent,
    { from, to }: TransactionReceipt,
    [party, action]: [Address, AgentAction],
  ): Promise<string> {
    const { blockNumber, logIndex, timestamp } = event;
    const before = events.find((one) => one.blockNumber === blockNumber && one.logIndex === logIndex - 1);
    if (before?.name === "ActionSigned" && lower(before.args.agent) === party) return "its signed action";
    const isDirect = to !== null && lower(to) === id;
    if (isDirect && lower(from) === party) return "its own transaction";
    /** The escrow's caller, unless the party's own contract did. */
    const operator = lower(isDirect ? from : (to ?? party));
    const granted = await grantOf(party, operator, event);
    const isGranted =
      granted !== null &&
      (granted.actions & actionBits([action])) !== 0 &&
      (granted.until === 0 || timestamp < granted.until);
    const isRelay = operator === lower(network.relay);
    const name = `its delegation to ${isRelay ? "the operator" : operator}`;
    if (isGranted) return `${name}, registered in ${granted.transactionHash}`;
    // Anyone can register a text through a contract that hides it.
    const isHidden = isRelay || !(await getCode(client, { address: party }));
    return isHidden ? `${name}, in a text that the chain does not show` : "a call by its own contract";
  }

  /** The actions that the party had left to an operator before an event, from the text that it signed; null if nothing. */
  async function grantOf(agent: Address, operator: Address, { blockNumber, logIndex }: EscrowEvent) {
    const address = network.relay as Address;
    const ofBoth = { address, abi: clientAbi, args: { agent, operator } } as const;
    const changes = await Promise.all(
      (["DelegationRegistered", "DelegationRevoked"] as const).map((eventName) =>
        inRanges(upTo(blockNumber), (blocks) =>
          getContractEvents(client, { ...ofBoth, eventName, ...blocks }),
        ),
      ),
    );
    const earlier = changes
      .flat()
      .filter((one) => one.blockNumber < blockNumber || one.logIndex < logIndex)
      .sort((a, b) => Number(a.blockNumber - b.blockNumber) || a.logIndex - b.logIndex);
    const since = earlier.slice(earlier.findLastIndex((one) => one.eventName === "DelegationRevoked") + 1);
    // Only the newest delegation counts, in whatever order they were registered.
    const issuedAt = Math.max(...since.map(({ args }) => ("issuedAt" in args && args.issuedAt) || 0));
    const last = since.find(({ args }) => "issuedAt" in args && args.issuedAt === issuedAt);
    if (last === undefined) return null;
    const { transactionHash } = last;
    const { input } = await getTransaction(client, { hash: transactionHash });
    // The words of `Delegation` after these two: actions, until, nonce, issuedAt.
    const [, ...texts] = input.split(encodeWords(agent, operator).slice(2));
    const wordOf = (text: string, i: number) => Number(`0x${text.slice(64 * i, 64 * (i + 1))}`);
    const text = texts.find((one) => wordOf(one, 3) === issuedAt);
    return text === undefined ? null : { actions: wordOf(text, 0), until: wordOf(text, 1), transactionHash };
  }

  /** The first transfer from the party to this escrow after the event, and the nonce of its authorization if it has one. */
  function paymentIn({ logs }: TransactionReceipt, party: Address, after = -1): { nonce: Hex | null } | null {
    const ofToken = logs.filter(({ address }) => lower(address) === lower(network.asset.address));
    const token = { abi: tokenAbi, logs: ofToken } as const;
    const transfers = parseEventLogs({ ...token, eventName: "Transfer", args: { from: party, to: id } });
    const uses = parseEventLogs({ ...token, eventName: "AuthorizationUsed", args: { authorizer: party } });
    for (const { args, logIndex } of transfers) {
      const used = uses.find((one) => one.logIndex === logIndex - 1);
      // Anyone can transfer nothing from anyone, but not by its authorization.
      if (logIndex > after && (args.value > 0n || used)) return { nonce: used?.args.nonce ?? null };
    }
    return null;
  }

  /** Money that was at the address before the opening: only an authorization shows that the initiator agreed. */
  async function openedFromBalance({ blockNumber }: EscrowEvent): Promise<string> {
    const token = { address: network.asset.address as Address, abi: tokenAbi } as const;
    const transfers = await inRanges(upTo(blockNumber), (blocks) =>
      getContractEvents(client, { ...token, eventName: "Transfer", args: { to: id }, ...blocks }),
    );
    const deposit = depositsOf(terms).initiator;
    const own = transfers.find(({ args }) => args.value === deposit && lower(args.from) === terms.initiator);
    const payer = transfers.find(({ args }) => args.value !== 0n)?.args.from;
    if (own === undefined) return `no signature: ${payer ?? "no one"} paid`;
    const receipt = await getTransactionReceipt(client, { hash: own.transactionHash });
    return paymentIn(receipt, terms.initiator)?.nonce ? `${PAYMENT}, used at the token` : "its own transfer";
  }

  async function paidBy(event: EscrowEvent, receipt: TransactionReceipt, party: Address): Promise<string> {
    const paid = paymentIn(receipt, party, event.logIndex);
    const { commitment } = event.args;
    if (commitment !== undefined && paid?.nonce !== bondNonce(commitment as Hex))
      return `${paid ? PAYMENT : USED_BEFORE}; the votes, ${await actionOf(event, receipt, [party, "vote"])}`;
    if (paid !== null) return paid.nonce === null ? "its own transaction" : PAYMENT;
    return event.name === "Created" ? openedFromBalance(event) : USED_BEFORE;
  }

  async function stepOf(event: EscrowEvent): Promise<Step> {
    const { name, args, transactionHash } = event;
    const receipt = await getTransactionReceipt(client, { hash: transactionHash });
    const by = (party: unknown, allowedBy: string): Step => {
      return { step: name, party: lower(party), allowedBy, transactionHash };
    };
    const actor = actors[name];
    if (actor !== undefined) return by(actor[0], await actionOf(event, receipt, actor));
    const payer = name === "VoteSealed" ? lower(args.backupAgent) : payers[name];
    if (payer !== undefined) return by(payer, await paidBy(event, receipt, payer));
    if (name.startsWith("DirectTransfer")) return by(args.payer, USED_BEFORE);
    if (name === "VoteOpened") return by(args.backupAgent, `its sealed vote, opened by ${receipt.from}`);
    const isLate = name === "BackupAgentsDrawn" && escrow.drawBlock !== disputedIn + 1n;
    const seed = isLate ? `, by the hash of block ${escrow.drawBlock}: the first was out of reach` : "";
    return by(receipt.from, `no one: anyone can send it${seed}`);
  }

  return Promise.all(events.filter(({ name }) => !NO_STEPS.has(name)).map(stepOf));
}

/** The result of checking one complaint's signature. */
export interface ComplaintSigner {
  complaint: Complaint;
  /** The party that should have signed; null if the contract has none. */
  filer: string | null;
  /** The same, or why it did not; null without a signature. */
  signer: string | null;
}

const walletAbi = parseAbi(["function isValidSignature(bytes32, bytes) view returns (bytes4)"]);
const ERC1271_VALID = "0x1626ba7e";

/** Recovers each signer, or asks the filer's wallet (ERC-1271). Throws if the node fails. */
export function signersOf(
  client: Client,
  complaints: readonly SignedComplaint[],
  {
    id: contract,
    chainId,
    parties,
  }: { id: Address; chainId: number; parties: Record<Complaint["filedByRole"], string | null> },
): Promise<ComplaintSigner[]> {
  return Promise.all(
    complaints.map(async (complaint) => {
      const { filedByRole, evidence, signed } = complaint;
      const filer = parties[filedByRole];
      const signerOf = async (): Promise<string | null> => {
        if (!signed || filer === null) return null;
        const agent = filer as Address;
        const { signature, nonce, deadline } = signed;
        const hashOf = async () => {
          const call = complaintCall(canonicalize(evidence) ?? "");
          return hashTypedData(
            actionTypedData({ chainId, contract, agent, call, nonce: BigInt(nonce), deadline }),
          );
        };
        const hash = await hashOf().catch(() => null);
        if (hash === null || !isHex(signature) || signature.length > ACTION_SIGNATURE_LENGTH)
          return "unreadable";
        const key = await recoverAddress({ hash, signature }).catch(() => null);
        if (key !== null && lower(key) === lower(agent)) return filer;
        const wallet = { address: agent, abi: walletAbi, functionName: "isValidSignature" } as const;
        const answer = await readContract(client, { ...wallet, args: [hash, signature] }).catch(ifNo);
        return answer === ERC1271_VALID ? filer : `not by its key (${key})`;
      };
      return { complaint, filer, signer: await signerOf() };
    }),
  );
}

/** A revert, or something other than an answer, means no. A node's own failure says nothing. */
function ifNo(error: BaseError): null {
  if (error.walk((one) => /Reverted|ZeroData|Decoding/.test((one as Error).name))) return null;
  throw error;
}
