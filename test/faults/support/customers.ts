/**
 * Agents that follow the documentation: a call without a response, or with 503, is repeated byte for byte on any
 * process that responds. Every authorization that an agent ever signs is recorded for the audit.
 */
import { setTimeout as delay } from "node:timers/promises";
import { testUsdAbi } from "@working-contracts/protocol/abi";
import { type Address, encodeFunctionData, type Hex } from "viem";
import type { ContractView } from "../../../src/features/contracts/view.js";
import { type Agent, type ApiResponse, caller, signIn } from "../../support/agent.js";
import { draft as draftOf } from "../../support/contracts.js";
import {
  type Authorization,
  authorize,
  type Quote,
  quoteOf,
  type SignedPayment,
  version2,
} from "../../support/payment.js";
import { accountOf, type Cluster } from "./cluster.js";

export interface Call {
  agent: Agent;
  path: string;
  body: string;
  headers: Record<string, string>;
}

/** An authorization, the call that it pays for, and the responses that the caller received. */
export interface Payment extends Call {
  authorization: SignedPayment;
  /** Statuses of all responses, in order; 0 for a missing response. */
  statuses: number[];
  /** The response that gave the final outcome. */
  truth: ApiResponse<ContractView> | undefined;
}

/** Columns of the outbox that tests look at. */
interface Operation {
  state: string;
  reason: string | null;
  tries: number;
  published_at: Date | null;
  target: Address;
  data: Hex;
  gas_limit: number;
}

export type Customers = ReturnType<typeof createCustomers>;

const PATIENCE_MS = 150_000;
const ATTEMPT_TIMEOUT_MS = 20_000;
const PAUSE_MS = 300;
const HOUR = 3600;
const FUNDS = 10_000_000_000n;

/** Whether the call met a limit, other than that of unpaid attempts: these count for half an hour, too long to wait for. */
const isLimited = ({ status, error }: ApiResponse): boolean =>
  status === 429 && error?.code !== "too_many_pending_attempts";

/** `pauseMs`: before a call is repeated. */
export function createCustomers(cluster: Cluster, name: string, { pauseMs = PAUSE_MS } = {}) {
  const { deployment, publicClient } = cluster;
  const payments: Payment[] = [];
  const limits: string[] = [];
  let serial = 0;
  let turn = 0;

  /** Sends once to the next process in turn. Null if no response came. */
  async function attempt(
    agent: Agent,
    path: string,
    body: string,
    headers: Record<string, string> = {},
    method = "POST",
  ): Promise<ApiResponse<ContractView> | null> {
    const url = (cluster.apis[turn++ % cluster.apis.length] as (typeof cluster.apis)[number]).url;
    const call = caller(url, { authorization: `Bearer ${agent.apiKey}` }, (input, init) =>
      fetch(input, { ...init, signal: AbortSignal.timeout(ATTEMPT_TIMEOUT_MS) }),
    );
    try {
      const response = await call<ContractView>(method, path, { headers, ...(body !== "" && { body }) });
      if (isLimited(response)) limits.push(`${method} ${path}: ${response.error?.message}`);
      return response;
    } catch {
      return null;
    }
  }

  /** Repeats the call until a response gives its outcome. */
  async function insist(
    ask: () => Promise<ApiResponse<ContractView> | null>,
    { patienceMs = PATIENCE_MS, seen = [] as number[] } = {},
  ): Promise<ApiResponse<ContractView>> {
    const giveUpAt = performance.now() + patienceMs;
    for (;;) {
      const response = await ask();
      seen.push(response?.status ?? 0);
      if (response !== null && response.status < 500 && !isLimited(response)) return response;
      if (performance.now() > giveUpAt) {
        throw new Error(
          `No final response, at last ${JSON.stringify(response?.body)}, after ${seen.join(", ")}`,
        );
      }
      await delay(pauseMs);
    }
  }

  async function sign(
    agent: Agent,
    quote: Quote,
    changes: Partial<Authorization> = {},
  ): Promise<SignedPayment> {
    const validBefore = BigInt((await cluster.chainTime()) + HOUR);
    const { chainId } = deployment;
    return authorize(agent, quote, { chainId, changes: { validBefore, ...changes } });
  }

  /** Requests the quote and signs it. Returns the refusal if the call is rejected without a quote. */
  async function quoted(
    agent: Agent,
    path: string,
    body: string,
    changes: Partial<Authorization> = {},
  ): Promise<{ payment: Payment } | { refusal: ApiResponse<ContractView> }> {
    const response = await insist(() => attempt(agent, path, body));
    if (response.status !== 402) return { refusal: response };
    const quote = quoteOf(response);
    const authorization = await sign(agent, quote, changes);
    const payment: Payment = {
      agent,
      path,
      body,
      headers: version2(quote, authorization),
      authorization,
      statuses: [],
      truth: undefined,
    };
    payments.push(payment);
    return { payment };
  }

  /** Sends a signed call once. Null if no response came. */
  const send = ({ agent, path, body, headers }: Call): Promise<ApiResponse<ContractView> | null> =>
    attempt(agent, path, body, headers);

  /** Sends the payment until its outcome is known. */
  async function settle(payment: Payment, patienceMs = PATIENCE_MS): Promise<ApiResponse<ContractView>> {
    payment.truth = await insist(() => send(payment), { patienceMs, seen: payment.statuses });
    return payment.truth;
  }

  /** The same for a call that must be quoted. */
  async function signed(
    agent: Agent,
    path: string,
    body: string,
    changes: Partial<Authorization> = {},
  ): Promise<Payment> {
    const asked = await quoted(agent, path, body, changes);
    if ("refusal" in asked) throw new Error(`refused: ${JSON.stringify(asked.refusal.body)}`);
    return asked.payment;
  }

  async function pay(agent: Agent, path: string, body: unknown): Promise<ApiResponse<ContractView>> {
    const asked = await quoted(agent, path, typeof body === "string" ? body : JSON.stringify(body ?? {}));
    return "refusal" in asked ? asked.refusal : settle(asked.payment);
  }

  const inSeconds = async (seconds: number) =>
    new Date(((await cluster.chainTime()) + seconds) * 1000).toISOString();

  async function draft(changes: Record<string, unknown> = {}): Promise<string> {
    const idempotencyKey = `${name} ${serial++}`;
    const acceptanceCriteria = ["Every sentence is there", "The grammar is right"];
    return JSON.stringify(await draftOf({ inSeconds }, { idempotencyKey, acceptanceCriteria, ...changes }));
  }

  return {
    payments,
    /** Limits that calls met, in words. */
    limits,
    /** How many calls were sent, repetitions included. */
    sent: () => turn,
    attempt,
    insist,
    signedCreation: async (agent: Agent, changes?: Partial<Authorization>) =>
      signed(agent, "/v1/contracts", await draft(), changes),
    signedAcceptance: (agent: Agent, id: string, changes?: Partial<Authorization>) =>
      signed(agent, `/v1/contracts/${id}/accept`, JSON.stringify({ accept: true }), changes),
    send,
    settle,
    pay,
    draft,
    /** The operations with this payment's authorization. */
    operationsOf: async ({ authorization: { nonce } }: Payment): Promise<Operation[]> =>
      (await cluster.pool.query<Operation>("select * from app.operation where nonce = $1", [nonce])).rows,
    /** Takes a payment out of the audit. */
    forget: (payment: Payment) => payments.splice(payments.indexOf(payment), 1),
    /** Agents that have signed in and have test dollars. By default they leave everything to the operator. */
    async join(
      count: number,
      { funds = FUNDS, permission }: { funds?: bigint; permission?: Record<string, unknown> } = {},
    ): Promise<Agent[]> {
      const accounts = Array.from({ length: count }, () => accountOf(`${name} agent ${serial++}`).account);
      let nonce = await publicClient.getTransactionCount({
        address: cluster.owner.account.address,
        blockTag: "pending",
      });
      const hashes: Hex[] = [];
      // No block meanwhile: anvil can lose one of several transactions that are sent while it makes blocks.
      await cluster.blocks.pause();
      for (const { address } of accounts) {
        const data = encodeFunctionData({ abi: testUsdAbi, functionName: "mint", args: [address, funds] });
        hashes.push(
          await cluster.owner.sendTransaction({
            to: deployment.asset.address,
            data,
            gas: 120_000n,
            nonce: nonce++,
          }),
        );
      }
      cluster.blocks.resume();
      for (const hash of hashes) await publicClient.waitForTransactionReceipt({ hash, pollingInterval: 50 });
      const url = (cluster.apis[0] as (typeof cluster.apis)[number]).url;
      const { chainId } = deployment;
      return Promise.all(
        accounts.map((account) => signIn({ url, chainId, account, ...(permission && { permission }) })),
      );
    },
    create: async (agent: Agent, changes: Record<string, unknown> = {}) =>
      pay(agent, "/v1/contracts", await draft(changes)),
    accept: (agent: Agent, id: string) => pay(agent, `/v1/contracts/${id}/accept`, { accept: true }),
    act: (agent: Agent, id: string, act: string, body: unknown = undefined) =>
      insist(() =>
        attempt(agent, `/v1/contracts/${id}/${act}`, body === undefined ? "" : JSON.stringify(body)),
      ),
    read: (agent: Agent, id: string) => insist(() => attempt(agent, `/v1/contracts/${id}`, "", {}, "GET")),
    usdOf: (address: Address) =>
      publicClient.readContract({
        address: deployment.asset.address,
        abi: testUsdAbi,
        functionName: "balanceOf",
        args: [address],
      }),
  };
}
