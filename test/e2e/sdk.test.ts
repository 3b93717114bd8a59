/** The agents' client: whole contracts in a few lines, and it signs only what was asked for. */

import {
  type Agent,
  type Contract,
  type Network,
  OutcomeUnknown,
  onChain,
  type PaymentProof,
  RefusedToSign,
} from "@working-contracts/client/index";
import { escrowAddress } from "@working-contracts/protocol/terms";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import { decodePaymentRequiredHeader, encodePaymentRequiredHeader } from "@x402/core/http";
import type { Address } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { BROKEN, RESET, startRpcProxy } from "../faults/support/rpc-proxy.js";
import { alone } from "../support/chain.js";
import {
  type AgentOptions,
  changing,
  draftOf,
  lying,
  makeJuror,
  newAgent as newAgentIn,
} from "../support/client-agents.js";
import { useWorld } from "../support/world.js";

const WORK = {
  title: " Summarise a paper ",
  acceptanceCriteria: ["One page", " Names the method", "Names the limits"],
};

const world = await useWorld();

const work = (agent: Agent) => draftOf(agent, WORK);
const newAgent = (options: AgentOptions = {}, usd = "100") => newAgentIn(world, { usd, ...options });
const newJuror = async (options: AgentOptions = {}) => makeJuror(world, await newAgent(options));

describe("a contract", () => {
  it("shows each step of its payment, and leaves proof of what was quoted and paid", async () => {
    const steps: string[] = [];
    const proofs: PaymentProof[] = [];
    const client = await newAgent({
      onProgress: ({ step }) => steps.push(step),
      onReceipt: (proof) => proofs.push(proof),
    });
    const { id } = await client.create(await work(client));
    expect(steps).toEqual(["quoted", "signing", "sent", "paid"]);
    const [proof] = proofs;
    expect(proof?.fault).toBeNull();
    const read = (jws: string | null | undefined) => {
      const [, payload = ""] = (jws ?? "").split(".");
      return JSON.parse(Buffer.from(payload, "base64url").toString());
    };
    const offer = { scheme: "exact", payTo: id, amount: "50000000", asset: world.deployment.asset.address };
    const resourceUrl = `${world.url}/v1/contracts`;
    expect(read(proof?.offer)).toMatchObject({ version: 1, resourceUrl, ...offer });
    const receipt = read(proof?.receipt);
    expect(receipt).toMatchObject({ version: 1, resourceUrl, payer: client.address });
    const { status } = await world.publicClient.getTransactionReceipt({ hash: receipt.transaction });
    expect(status).toBe("success");
  });

  it("notices an offer and a receipt that prove nothing", async () => {
    const faults: (string | null)[] = [];
    const withHeaders = (change: (headers: Headers, isOk: boolean) => void) =>
      lying((_, response) => {
        const headers = new Headers(response.headers);
        change(headers, response.ok);
        return new Response(response.body, { status: response.status, headers });
      });
    const without = withHeaders((headers) => headers.delete("payment-response"));
    const foreign = lying(({ pathname }, response) =>
      pathname.endsWith("did.json") ? Response.json({ verificationMethod: [] }) : response,
    );
    let first: string | null = null;
    const replaying = withHeaders((headers, isOk) => {
      first ??= headers.get("payment-response");
      if (first !== null && isOk) headers.set("payment-response", first);
    });
    const onReceipt = ({ fault }: PaymentProof) => faults.push(fault);
    for (const fetch of [without, foreign, replaying]) {
      const client = await newAgent({ fetch, onReceipt });
      const pay = async () => client.create(await work(client));
      expect((await pay()).status).toBe("created");
      if (fetch !== replaying) continue;
      await world.increaseTime(120);
      await pay();
    }
    expect(faults).toEqual([
      "the service signed no receipt",
      "the service does not publish the key of its offer",
      null,
      "the receipt is older than the payment",
    ]);
    const throwing = await newAgent({
      onReceipt() {
        throw new Error("no room to keep it");
      },
    });
    expect((await throwing.create(await work(throwing))).status).toBe("created");
  });

  it("is voted on by agents that open their votes themselves if the service does not for an hour", async () => {
    const refused = { error: { code: "conflict", message: "Not yet" } };
    const answers = [
      // A service that is down lists no votes either.
      () => new Response("", { status: 503 }),
      () => Response.json(refused, { status: 409 }),
      () => Response.json({}),
    ];
    const [client, worker] = await Promise.all([newAgent(), newAgent()]);
    const jurors = await Promise.all(
      answers.map(async (answer, i) => {
        const account = privateKeyToAccount(generatePrivateKey());
        let isDown = false;
        const withholding: typeof fetch = async (input, init) => {
          const url = String(input);
          const isListed = i === 0 && isDown && init?.method === "GET" && url.includes("/v1/votes?");
          return isListed || url.endsWith("/votes/open") ? answer() : fetch(input, init);
        };
        const options = { account, fetch: withholding, node: world.info.rpcUrl, patienceMs: 0 };
        const agent = await newJuror(options);
        const goDown = () => {
          isDown = true;
        };
        return { agent, account, goDown };
      }),
    );
    const { id } = await client.create(await work(client));
    await worker.accept(id);
    await worker.deliver(id, "ipfs://summary");
    await client.dispute(id);
    for (const { agent } of jurors) await agent.vote(id, ["met", "met", "met"]);
    for (const { goDown } of jurors) goDown();
    await world.increaseTime(86_400 + 3_600);
    // Without gas it says what to do.
    const alone =
      /still sealed at the node: open it yourself \(onChain of the client, wcontract on-chain open-vote\)/;
    await expect(jurors[0]?.agent.openVotes({ wait: false })).rejects.toThrow(alone);
    await Promise.all(
      jurors.map(async ({ agent, account }) => {
        await world.testClient.setBalance({ address: account.address, value: 10n ** 18n });
        expect(await agent.openVotes({ wait: false })).toEqual([id]);
      }),
    );
    await client.waitFor(id, "settled-all-met", { timeoutMs: 60_000, intervalMs: 100 });
  });

  it("is not settled again by anyone's own transaction once the service settled it", async () => {
    const client = await newAgent();
    const { id } = await client.create(await work(client));
    await client.cancel(id);
    await client.waitFor(id, "cancelled-*");
    await expect.poll(async () => (await client.settlement(id)).settledAt).not.toBeNull();
    const stranger = privateKeyToAccount(generatePrivateKey());
    await world.testClient.setBalance({ address: stranger.address, value: 10n ** 18n });
    const own = await onChain({ rpcUrl: world.info.rpcUrl, account: stranger });
    expect(await own.settle(id)).toBeNull();
    await expect(own.tally(id)).rejects.toMatchObject({ name: "Reverted", errorName: "WrongStatus" });
    await expect(own.accept(id)).rejects.toThrow("needs `network`");
    const elsewhere = await onChain({ rpcUrl: "http://127.0.0.1:9/secret", account: stranger });
    await expect(elsewhere.settle(id)).rejects.toThrow(/^(?!.*secret).*127\.0\.0\.1:9/s);
  });
});

describe("an agent", () => {
  it("creates and stakes with its own transactions if its gas is not paid", async () => {
    const account = privateKeyToAccount(generatePrivateKey());
    const agent = await newAgent({ account });
    const own = await alone(world, { account });
    await world.grantTokens(account.address, 1000);
    const draft = { ...(await work(agent)), idempotencyKey: "own-transaction" };
    const planned = await agent.dryRun(({ create }) => create(draft));
    await own.create(planned?.terms as EscrowTerms);
    const id = planned?.payTo as string;
    const { status, title } = (await agent.waitUntil(
      () => agent.get(id).catch(() => null),
      (contract) => contract?.status === "created",
      { timeoutMs: 60_000 },
    )) as Contract;
    expect([status, title.trim()]).toEqual(["created", WORK.title.trim()]);
    expect(await world.usdOf(account.address)).toBe(50_000_000n);

    // The node sends the transaction on, and then no longer responds.
    const node = await startRpcProxy(world.info.rpcUrl);
    node.setRule(async ({ method }, forward) => {
      if (method === "eth_getTransactionReceipt") return BROKEN;
      if (method !== "eth_sendRawTransaction") return forward();
      await forward();
      return RESET;
    });
    const lost = await onChain({ rpcUrl: node.url, account, network: agent.network });
    const unknown = await lost.stake("400").catch((error) => error);
    expect(unknown).toBeInstanceOf(OutcomeUnknown);
    node.setRule(null);
    const hash = await unknown.resume();
    expect(unknown.message).toContain(hash);
    await node.stop();
    const { staked } = await agent.waitUntil(agent.stakeOf, ({ staked }) => staked !== "0.0");
    expect(staked).toBe("400.0");
  });
});

/** The response, with its quote changed if it has one. */
async function requoted(
  response: Response,
  change: (required: ReturnType<typeof decodePaymentRequiredHeader>) => void | Promise<void>,
): Promise<Response> {
  const header = response.headers.get("payment-required");
  if (header === null) return response;
  const required = decodePaymentRequiredHeader(header);
  await change(required);
  const headers = new Headers(response.headers);
  headers.set("payment-required", encodePaymentRequiredHeader(required));
  return new Response(await response.text(), { status: 402, headers });
}

/** A quote with one field changed. */
const lyingQuote = (field: string, value: string): typeof fetch =>
  lying((_, response) =>
    requoted(response, ({ resource, accepts }) => {
      if (field === "resource") Object.assign(resource, { url: value });
      else Object.assign(accepts[0] as object, { [field]: value });
    }),
  );

/** An account that counts what it signs. */
function countingAccount() {
  const account = privateKeyToAccount(generatePrivateKey());
  const payments: bigint[] = [];
  let messages = 0;
  return {
    address: account.address,
    signMessage: (message: Parameters<typeof account.signMessage>[0]) => {
      messages++;
      return account.signMessage(message);
    },
    signTypedData: (data: Parameters<typeof account.signTypedData>[0]) => {
      payments.push((data.message as { validBefore: bigint }).validBefore);
      return account.signTypedData(data);
    },
    /** `validBefore` of each payment. */
    payments: () => payments,
    signatures: () => messages + payments.length,
  };
}

interface Served {
  contractId: string;
  escrowTerms: Omit<EscrowTerms, "price"> & { price: string };
}

/** A consistent liar: it quotes terms with changed parameters, at the address to which they lead, and serves them there. */
function lyingTerms(
  changes: object,
  { factory, implementation }: { factory: Address; implementation: Address } = world.deployment,
): typeof fetch {
  let served: Served | undefined;
  return async (input, init) => {
    const response = await fetch(input, init);
    if (String(input).endsWith(`/${served?.contractId}/terms`)) return Response.json({ data: served });
    return requoted(response, async ({ accepts }) => {
      const quote = accepts[0] as { payTo: string };
      const { authorization = "" } = (init?.headers ?? {}) as Record<string, string>;
      const path = `${world.url}/v1/contracts/${quote.payTo}/terms`;
      const { data } = (await (await fetch(path, { headers: { authorization } })).json()) as { data: Served };
      Object.assign(data.escrowTerms.parameters, changes);
      const terms = { ...data.escrowTerms, price: BigInt(data.escrowTerms.price) };
      quote.payTo = escrowAddress({ factory, implementation, terms });
      served = { ...data, contractId: quote.payTo };
    });
  };
}

const elsewhere = `0x${"66".repeat(20)}`;

/** A new contract is refused like this, and its payment is not signed. */
async function expectUnsigned(options: AgentOptions, refusal: object, account = countingAccount()) {
  const agent = await newAgent({ account, ...options }, "0");
  await expect(agent.create(await work(agent))).rejects.toMatchObject(refusal);
  expect(account.payments()).toEqual([]);
}

describe("a client", () => {
  it.each([
    ["payTo", "payTo", elsewhere],
    ["amount", "amount", "50000001"],
    ["amount", "maxAmountRequired", "50000001"],
    ["asset", "asset", elsewhere],
    ["network", "network", "eip155:1"],
    ["scheme", "scheme", "upto"],
    ["resource", "resource", "https://elsewhere.example/v1/contracts"],
  ])("signs nothing if the quote of a new contract has another %s (%s)", async (named, field, value) => {
    // Without terms at the address there is nothing to compare.
    const refusal = named === "payTo" ? { code: "not_found" } : { name: "RefusedToSign", field: named };
    await expectUnsigned({ fetch: lyingQuote(field, value) }, refusal);
  });

  it("signs nothing if the terms behind payTo belong to another contract", async () => {
    const other = await newAgent();
    const { id } = await other.create(await work(other));
    await expectUnsigned({ fetch: lyingQuote("payTo", id) }, { name: "RefusedToSign", field: "payTo" });
  });

  it.each([
    ["beyond the factory's bounds", { protocolFee: 9900 }, false, "protocolFee"],
    ["unknown to the factory, by the caller's node", { protocolFee: 600 }, true, "parameters"],
  ])("signs nothing if a new contract's parameters are %s", async (_name, changes, hasNode, field) => {
    const node = hasNode ? { node: world.info.rpcUrl } : {};
    await expectUnsigned({ fetch: lyingTerms(changes), ...node }, { name: "RefusedToSign", field });
  });

  it("signs nothing at a service on another network than the recorded one", async () => {
    const { network } = await newAgent({}, "0");
    const pinned = { ...network, factory: elsewhere };
    const signingIn = newAgent({ network: pinned }, "0");
    await expect(signingIn).rejects.toBeInstanceOf(RefusedToSign);
    await expect(signingIn).rejects.toMatchObject({ field: "operator" });
  });

  it("signs nothing if its own node is down, and what was not signed counts towards no limit", async () => {
    let isDown = false;
    const counted: string[] = [];
    const client = await newAgent({
      spendingLimit: { perCall: "60", total: "50" },
      beforePayment: ({ decimal }) => void counted.push(decimal),
      node: {
        async request(call) {
          if (isDown) throw new Error("the node is down");
          return world.publicClient.request(call as never);
        },
      },
    });
    isDown = true;
    const draft = { ...(await work(client)), idempotencyKey: "one" };
    expect(await client.dryRun((dry) => dry.create(draft))).toMatchObject({ decimal: "50.0" });
    await expect(client.create(draft)).rejects.toThrow("the node is down");
    expect(counted).toEqual([]);
    isDown = false;
    expect(await client.create(draft)).toMatchObject({ status: "created" });
    expect(counted).toEqual(["50.0"]);
  });
});

describe("a malicious service", () => {
  const EVIL = "https://evil.example";
  type Json = { data: Record<string, unknown> };

  /** Relays the real service's responses from another host, and changes what `change` changes. */
  function relaying(change: (path: string, body: Json) => void | Promise<void> = () => {}): typeof fetch {
    return async (input, init) => {
      const { pathname, search } = new URL(String(input));
      const response = await fetch(world.url + pathname + search, init);
      const body = (await response.json()) as Json;
      await change(pathname, body);
      return new Response(JSON.stringify(body), response);
    };
  }

  const lie = (path: string, change: (data: Record<string, unknown>) => void) =>
    relaying((called, { data }) => {
      if (called === "/v1/network") data.domain = "evil.example";
      if (called.endsWith(path)) change(data);
    });
  const edit = (from: string | RegExp, to: string) =>
    lie("/challenge", (data) => {
      data.message = String(data.message).replace("localhost", "evil.example").replace(from, to);
    });

  const timeIn = (ms: number) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`;

  it.each<[string, string, () => typeof fetch]>([
    ["relays the challenge of another service", "domain", () => relaying()],
    ["relays it, and claims the other's name as its own", "domain", () => lie("-", () => {})],
    ["names another address", "address", () => edit(/^0x\w{40}$/m, elsewhere)],
    ["names another purpose", "purpose", () => edit("issue or revoke", "hand over")],
    ["delegates to another operator", "operator", () => edit(/operator 0x\w{40}/, `operator ${elsewhere}`)],
    ["names another chain", "chainId", () => edit(/Chain ID: \d+/, "Chain ID: 1")],
    ["sends no nonce", "nonce", () => edit(/Nonce: \w+/, "Nonce: 1")],
    ["dates its challenge two minutes ahead", "issuedAt", () => edit(/(?<=Issued At: ).+/, timeIn(120_000))],
    [
      "back-dates its challenge, so that it replaces no earlier one",
      "issuedAt",
      () => edit(/(?<=Issued At: ).+/, timeIn(-120_000)),
    ],
    ["wants a challenge that stays valid", "expiresAt", () => edit(/Expires At: \d+/, "Expires At: 9999")],
    ["adds a line", "challenge", () => edit(/$/, "\nResources: all")],
  ])("gets no sign-in if it %s", async (_name, field, fetch) => {
    const account = countingAccount();
    const signingIn = newAgent({ account, baseUrl: EVIL, fetch: fetch() }, "0");
    await expect(signingIn).rejects.toMatchObject({ name: "RefusedToSign", field });
    expect(account.signatures()).toBe(0);
  });

  it("gets no sign-in if its clock is behind, like its challenge", async () => {
    const fetch = relaying((called, { data }) => {
      if (called === "/v1/network") data.time = timeIn(-400_000);
      if (called.endsWith("/challenge"))
        data.message = String(data.message)
          .replace(/(?<=Issued At: ).+/, timeIn(-400_000))
          .replace(/(?<=Expires At: ).+/, timeIn(-100_000));
    });
    const account = countingAccount();
    const signingIn = newAgent({ account, baseUrl: EVIL, domain: "localhost", fetch }, "0");
    await expect(signingIn).rejects.toMatchObject({ name: "RefusedToSign", field: "clock" });
    expect(account.signatures()).toBe(0);
  });

  it("signs in if the caller names its domain", async () => {
    const agent = await newAgent({ baseUrl: EVIL, domain: "localhost", fetch: relaying() }, "0");
    expect(await agent.apiKeys()).toHaveLength(1);
  });

  it("gets no payment that outlives the terms or ten minutes if its clock is ahead", async () => {
    const account = countingAccount();
    const { apiKey } = await newAgent({ account });
    const time = "9999-01-01T00:00:00.000Z";
    const fetch = changing<Network>(/^\/v1\/network$/, (data) => ({ ...data, time }));
    const draft = await work(await newAgent({}, "0"));
    const strict = await newAgent({ account, apiKey, fetch }, "0");
    await expect(strict.create(draft)).rejects.toMatchObject({ name: "RefusedToSign", field: "clock" });
    expect(account.payments()).toEqual([]);

    // A sandbox's caller trusts its clock; the terms still bound the payment.
    const trusting = await newAgent({ account, apiKey, fetch, clock: "service" }, "0");
    await trusting.create(draft);
    const honest = await newAgent({ account, apiKey });
    await honest.create(await work(honest));
    const [byTerms, byTime] = account.payments();
    expect(byTerms).toBe(BigInt(Date.parse(draft.matchDeadline) / 1000));
    expect(Number(byTime)).toBeLessThanOrEqual(Date.now() / 1000 + 900);
  });

  /** Gives an address the code of another one, changed. */
  async function copyCode(from: string, to: Address, change: (code: string) => string): Promise<void> {
    const code = await world.publicClient.getCode({ address: from as Address });
    await world.testClient.setCode({ address: to, bytecode: change(code ?? "") as `0x${string}` });
  }
  const [ownFactory, ownImplementation] = [`0x${"67".repeat(20)}`, `0x${"68".repeat(20)}`] as const;
  const ownRelay = `0x${"69".repeat(20)}` as const;
  const withOtherEnd = (code: string): string => `${code.slice(0, -2)}00`;
  const swapped = (code: string, from: string, to: string): string =>
    code.replaceAll(from.slice(2), to.slice(2));

  /** Genuine code of factory and escrows at the liar's addresses, with one more address of theirs replaced. */
  async function deployOwn({ factory, implementation }: Network, from: string, to: string) {
    await copyCode(factory, ownFactory, (code) => swapped(code, implementation, ownImplementation));
    await copyCode(implementation, ownImplementation, (code) =>
      swapped(swapped(code, from, to), factory, ownFactory),
    );
    return { factory: ownFactory, implementation: ownImplementation };
  }

  it.each<[string, keyof Network, (real: Network) => Promise<Partial<Network>> | Partial<Network>]>([
    ["factory without code", "factory", () => ({ factory: elsewhere })],
    // The registry has code, but no escrow of the factory runs it.
    [
      "implementation that the factory does not deploy",
      "implementation",
      ({ registry }) => ({ implementation: registry }),
    ],
    [
      "factory with code of its own",
      "factory",
      async ({ factory }) => {
        await copyCode(factory, ownFactory, withOtherEnd);
        return { factory: ownFactory };
      },
    ],
    [
      "factory that deploys code of its own",
      "implementation",
      async ({ factory, implementation }) => {
        await copyCode(factory, ownFactory, (code) => swapped(code, implementation, ownImplementation));
        await copyCode(implementation, ownImplementation, withOtherEnd);
        return { factory: ownFactory, implementation: ownImplementation };
      },
    ],
    ["genuine code for another token", "asset", (real) => deployOwn(real, real.asset.address, elsewhere)],
    [
      "Relay with code of its own behind genuine escrows",
      "relay",
      async (real) => {
        await copyCode(real.relay, ownRelay, (code) => withOtherEnd(swapped(code, real.factory, ownFactory)));
        return { ...(await deployOwn(real, real.relay, ownRelay)), relay: ownRelay };
      },
    ],
  ])("gets no payment if a node is at hand and it has a %s", async (_name, field, lies) => {
    const account = countingAccount();
    const { apiKey, network: real } = await newAgent({ account });
    const lied = await lies(real as Network);
    // By its own factory.
    const quoting = lyingTerms({}, { ...real, ...lied } as { factory: Address; implementation: Address });
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const response = await quoting(input, init);
      if (!String(input).endsWith("/v1/network")) return response;
      const { data } = (await response.json()) as { data: Network };
      return Response.json({ data: { ...data, ...lied } });
    };
    const options = { apiKey, fetch, node: world.info.rpcUrl };
    await expectUnsigned(options, { name: "RefusedToSign", field }, account);
  });
});
