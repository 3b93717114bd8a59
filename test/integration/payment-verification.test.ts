import { testUsdAbi } from "@working-contracts/protocol/abi";
import type { Address } from "@working-contracts/protocol/types";
import { authorizationTypes } from "@x402/evm";
import {
  type Abi,
  concat,
  createPublicClient,
  type Hex,
  hashTypedData,
  http,
  numberToHex,
  padHex,
  size,
  slice,
  toHex,
} from "viem";
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { askWallet } from "../../src/chain/signatures.js";
import { verifyPayment } from "../../src/payments/verify-payment.js";
import { decodePayment, type PaymentQuote } from "../../src/payments/x402.js";
import { LOCAL_CHAIN_ID } from "../../tools/local/chain.js";
import { transferData } from "../support/chain.js";
import { domainOf, payloadOf } from "../support/payment.js";
import { startTestChain } from "../support/test-chain.js";

const PRICE = 50_000_000n;
const ESCROW = "0x00000000000000000000000000000000000e5c01";
const STRANGER = "0x00000000000000000000000000000000000000aa";
const SIGNATURE = "invalid_exact_evm_payload_signature";
const AUTHORIZATION = "invalid_exact_evm_payload_authorization";

let node: Awaited<ReturnType<typeof startTestChain>>;
let quote: PaymentQuote;

beforeAll(async () => {
  node = await startTestChain();
  quote = {
    payTo: ESCROW,
    amount: PRICE,
    asset: { address: await node.deployCompiled("TestUSD"), name: "Test USD", version: "2" },
    chainId: LOCAL_CHAIN_ID,
    resourceUrl: "http://127.0.0.1/v1/contracts",
    description: "The price of a translation, locked in its escrow",
  };
});
afterAll(() => node?.stop());

describe("a payment is rejected when", () => {
  const cases: [name: string, reason: string, change: PaymentChange][] = [
    ["it was signed for another token", SIGNATURE, { tokenName: "USD Coin" }],
    ["it echoes another chain", "invalid_network", { accepted: { network: "eip155:8453" } }],
    ["it echoes another scheme", "invalid_scheme", { accepted: { scheme: "upto" } }],
    ["it echoes another token", "invalid_payment_requirements", { accepted: { asset: ESCROW } }],
    ["it echoes another amount", `${AUTHORIZATION}_value`, { accepted: { amount: "1" } }],
    [
      "it echoes another recipient",
      "invalid_exact_evm_payload_recipient_mismatch",
      { accepted: { payTo: STRANGER } },
    ],
    ["it expires before it can settle", `${AUTHORIZATION}_valid_before`, { validBeforeIn: 4 }],
    ["it is not valid yet", `${AUTHORIZATION}_valid_after`, { validAfterIn: 1_000 }],
    ["its signature was tampered with", SIGNATURE, { tamper: flipBit }],
    ["its signature is cut", SIGNATURE, { tamper: (hex) => slice(hex, 0, 64) }],
    ["its signature is a single zero byte", SIGNATURE, { tamper: () => "0x00" }],
    ["its signature is the malleable twin", SIGNATURE, { tamper: highS }],
    ["its recovery byte is invalid", SIGNATURE, { tamper: (hex) => withV(hex, 29) }],
  ];
  it.each(cases)("%s", async (_name, reason, change) => {
    await expectRefused(await fundedPayer(), change, reason);
  });

  it("the payer lacks one unit", async () => {
    await expectRefused(await fundedPayer(PRICE - 1n), {}, "insufficient_funds");
  });

  it("its nonce has been used, even after it has expired and the payer is out of funds", async () => {
    const payment = await sign(await fundedPayer(), {});
    await settle(payment);
    const now = Number(payment.payload.authorization.validBefore) + 100;
    expect(await verify(payment, { now })).toMatchObject({ ok: false, reason: "authorization_used" });
  });

  it("the token has blocked the payer", async () => {
    const payer = await fundedPayer();
    await write("setBlacklisted", [payer.address, true]);
    await expectRefused(payer, {}, "invalid_transaction_state");
  });

  it("it becomes valid after the chain's newest block, although the clock is past that time", async () => {
    const payer = await fundedPayer();
    const head = Number((await node.publicClient.getBlock()).timestamp);
    const payment = await sign(payer, { validAfter: head + 30 });
    expect(await verify(payment, { now: head + 35 })).toMatchObject({
      reason: `${AUTHORIZATION}_valid_after`,
    });
  });

  it.each([
    ["30 days", 30 * 86_400 + 60],
    ["2 hours", 7_200 + 60],
    ["10 minutes", 600 + 30],
    ["[345]\\d seconds", 59],
  ])(
    "the chain's clock is %s ahead of the real time, and the reason says what to do",
    async (words, ahead) => {
      const payer = await fundedPayer();
      const now = Math.floor(Date.now() / 1000) + ahead;
      const expired = await sign(payer, { validBefore: BigInt(now - 60) });
      expect(await verify(expired, { now })).toMatchObject({
        reason: `${AUTHORIZATION}_valid_before`,
        message: expect.stringMatching(
          new RegExp(`clock is ${words} ahead of the real time.*npm start -- --reset`),
        ),
      });
    },
  );

  it("the node does not respond: this is not a rejection, and the error says that a retry can help", async () => {
    const payer = await fundedPayer();
    const unreachable = createPublicClient({ transport: http("http://127.0.0.1:1", { retryCount: 0 }) });
    const verification = verify(await sign(payer, {}), { publicClient: unreachable });
    await expect(verification).rejects.toMatchObject({ code: "unavailable", status: 503 });
  });
});

describe("a payment is accepted, and settles, when", () => {
  const cases: [name: string, change: PaymentChange][] = [
    ["its recovery byte is 0 or 1", { tamper: (hex) => withV(hex, Number(slice(hex, 64)) - 27) }],
    ["it never expires", { validBefore: 2n ** 48n }],
    ["it echoes nothing", { accepted: null }],
    ["it echoes addresses in upper case", { accepted: { payTo: `0x${ESCROW.slice(2).toUpperCase()}` } }],
  ];
  it.each(cases)("%s", async (_name, change) => {
    const payer = await fundedPayer();
    await settle(await sign(payer, change));
    expect(await balanceOf(payer.address)).toBe(0n);
  });
});

describe("a payment that only its payee can use", () => {
  it.each([
    ["is accepted from a key", async () => fundedPayer()],
    ["is accepted from a contract wallet", async () => fundedWallet()],
  ])("%s, where the payee can use it", async (_name, create) => {
    const payer = await create();
    const payment = await sign(payer, { kind: "ReceiveWithAuthorization" });
    expect(await verify(payment, { isReceivable: true })).toMatchObject({ ok: true });
    expect(await verify(payment, { isReceivable: false })).toMatchObject({
      reason: SIGNATURE,
    });
  });
});

describe("a contract wallet", () => {
  it("pays with its owner's signature (ERC-1271), but not with a stranger's", async () => {
    const wallet = await fundedWallet();
    const stranger = privateKeyToAccount(generatePrivateKey());
    await expectRefused({ address: wallet.address, signer: stranger }, {}, SIGNATURE);
    await settle(await sign(wallet, {}));
    expect(await balanceOf(wallet.address)).toBe(0n);
  });

  it("is asked to deploy first if its signature is that of an undeployed wallet (ERC-6492)", async () => {
    const wrapped = (hex: Hex) => concat([hex, `0x${"6492".repeat(16)}`]);
    const digestAlone = (_hex: Hex, digest: Hex) => wrapped(digest);
    for (const [payer, tamper] of [
      [await fundedPayer(), wrapped],
      [await fundedPayer(), digestAlone],
      [await walletThatWantsTheDigestFirst(), digestAlone],
    ] as const) {
      expect(await verify(await sign(payer, { tamper }))).toMatchObject({
        reason: SIGNATURE,
        message: expect.stringContaining(`Deploy the wallet ${payer.address.toLowerCase()} first`),
      });
    }
  });

  it("pays with a signature of any length", async () => {
    const wallet = await walletThatWantsTheDigestFirst();
    const payment = await sign(wallet, {
      tamper: (_hex, digest) => concat([digest, padHex("0x01", { size: 2_000 })]),
    });
    expect(size(payment.payload.signature)).toBe(2_032);
    await settle(payment);
    expect(await balanceOf(wallet.address)).toBe(0n);
  });

  it("keeps a last byte of 0 or 1 in its signature if that byte is not a recovery byte", async () => {
    const wallet = await walletThatWantsTheDigestFirst();
    const payment = await sign(wallet, {
      tamper: (_hex, digest) => concat([digest, padHex("0x01", { size: 33 })]),
    });
    expect((await settle(payment)).signature).toBe(payment.payload.signature);
  });

  it("decides at an address that runs code, whoever holds the key (EIP-7702)", async () => {
    const payer = await fundedPayer();
    const stranger = privateKeyToAccount(generatePrivateKey());
    const delegate = await node.deployCompiled("ContractWallet", [stranger.address]);
    await node.testClient.setCode({ address: payer.address, bytecode: concat(["0xef0100", delegate]) });
    await expectRefused(payer, {}, SIGNATURE);
    await settle(await sign({ address: payer.address, signer: stranger }, {}));
  });
});

interface PaymentChange {
  kind?: "TransferWithAuthorization" | "ReceiveWithAuthorization";
  validAfter?: number;
  validAfterIn?: number;
  validBefore?: bigint;
  validBeforeIn?: number;
  tokenName?: string;
  accepted?: Record<string, unknown> | null;
  tamper?: (signature: Hex, digest: Hex) => Hex;
}

type Payer = PrivateKeyAccount | { address: Address; signer: PrivateKeyAccount };

async function expectRefused(payer: Payer, change: PaymentChange, reason: string) {
  expect(await verify(await sign(payer, change))).toMatchObject({ ok: false, reason });
}

/** Verifies a payment by its own payer. */
function verify(
  payment: Awaited<ReturnType<typeof sign>>,
  changes: Partial<Parameters<typeof verifyPayment>[0]> = {},
) {
  const value = Buffer.from(JSON.stringify(payment)).toString("base64");
  const decoded = decodePayment(new Headers({ "PAYMENT-SIGNATURE": value }));
  if (!decoded?.ok) throw new Error("not decoded");
  const payer = decoded.payment.from;
  const usual = { publicClient: node.publicClient, quote, payer, now: clock(), isReceivable: true };
  return verifyPayment({ ...usual, payment: decoded.payment, ...changes });
}

/** Verifies a payment and executes it at the token. Returns it as verified. */
async function settle(payment: Awaited<ReturnType<typeof sign>>) {
  const verification = await verify(payment);
  if (!verification.ok) throw new Error(verification.reason);
  const data = transferData(verification.payment);
  await node.mined(await node.wallet(0).sendTransaction({ to: quote.asset.address, data }));
  return verification.payment;
}

async function fundedWallet(): Promise<Payer> {
  const signer = privateKeyToAccount(generatePrivateKey());
  const address = await node.deployCompiled("ContractWallet", [signer.address]);
  await write("mint", [address, PRICE]);
  return { address, signer };
}

/** A version 2 payment built by hand, so that any part of it can be wrong and still be signed. */
async function sign(payer: Payer, change: PaymentChange) {
  const now = clock();
  const message = {
    from: payer.address,
    to: quote.payTo,
    value: PRICE,
    validAfter: BigInt(change.validAfter ?? now + (change.validAfterIn ?? -600)),
    validBefore: change.validBefore ?? BigInt(now + (change.validBeforeIn ?? 60)),
    nonce: generatePrivateKey(),
  };
  const { kind = "TransferWithAuthorization" } = change;
  const typedData = {
    domain: { ...domainOf(quote), name: change.tokenName ?? quote.asset.name },
    types: { [kind]: authorizationTypes.TransferWithAuthorization },
    primaryType: kind,
    message,
  };
  const signer = "signer" in payer ? payer.signer : payer;
  const signature = await signer.signTypedData(typedData);
  const offered = { scheme: "exact", network: "eip155:84532", amount: PRICE.toString(), payTo: quote.payTo };
  return {
    x402Version: 2,
    ...(change.accepted !== null && { accepted: { ...offered, ...change.accepted } }),
    payload: payloadOf({
      ...message,
      signature: change.tamper?.(signature, hashTypedData(typedData)) ?? signature,
    }),
  };
}

async function fundedPayer(amount = PRICE): Promise<PrivateKeyAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  await write("mint", [account.address, amount]);
  return account;
}

/** A wallet that accepts exactly the signatures whose first word is the digest. Length and last byte are free. */
async function walletThatWantsTheDigestFirst(): Promise<{ address: Address; signer: PrivateKeyAccount }> {
  const signer = privateKeyToAccount(generatePrivateKey());
  await node.testClient.setCode({
    address: signer.address,
    bytecode: "0x60643560043514631626ba7e60e01b0260005260206000f3",
  });
  await write("mint", [signer.address, PRICE]);
  return { address: signer.address, signer };
}

function clock(): number {
  return Math.floor(Date.now() / 1_000);
}

function withV(signature: Hex, v: number): Hex {
  return concat([slice(signature, 0, 64), numberToHex(v, { size: 1 })]);
}

function flipBit(signature: Hex): Hex {
  return concat([
    slice(signature, 0, 40),
    toHex(Number(slice(signature, 40, 41)) ^ 1, { size: 1 }),
    slice(signature, 41),
  ]);
}

/** The other signature of the same key over the same digest: (r, n - s, flipped v). */
function highS(signature: Hex): Hex {
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const s = numberToHex(order - BigInt(slice(signature, 32, 64)), { size: 32 });
  return concat([slice(signature, 0, 32), s, numberToHex(55 - Number(slice(signature, 64)), { size: 1 })]);
}

async function write(functionName: string, args: unknown[]) {
  const token = { address: quote.asset.address, abi: testUsdAbi as Abi };
  await node.mined(await node.wallet(0).writeContract({ ...token, functionName, args }));
}

function balanceOf(account: Address): Promise<bigint> {
  const token = { address: quote.asset.address, abi: testUsdAbi } as const;
  return node.publicClient.readContract({ ...token, functionName: "balanceOf", args: [account] });
}

it("of a wallet's answer only the first word is read, and one that is shorter is no answer", async () => {
  const address: Address = "0x0000000000000000000000000000000000001271";
  const ask = async (returned: string) => {
    // Stores the magic word, and returns memory of this length.
    await node.testClient.setCode({ address, bytecode: `0x631626ba7e60e01b5f52${returned}5ff3` });
    return askWallet(node.publicClient, { address, hash: padHex("0x01"), signature: "0x02" });
  };
  const magic = padHex("0x1626ba7e", { dir: "right" });
  expect(await ask("62100000")).toBe(magic);
  expect(await ask("6020")).toBe(magic);
  expect(await ask("601f")).toBeNull();
});
