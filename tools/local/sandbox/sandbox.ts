/** The sandbox of local networks alone, in which a new agent can try the service: money, a clock, counterparties. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { protocolTokenAbi, testUsdAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { MAX_CRITERIA, OUTCOMES } from "@working-contracts/protocol/outcomes";
import { isoTime } from "@working-contracts/protocol/time";
import { Hono } from "hono";
import { html } from "hono/html";
import {
  BaseError,
  ContractFunctionRevertedError,
  createTestClient,
  http,
  parseEther,
  parseUnits,
  publicActions,
} from "viem";
import { z } from "zod";
import { createChainClients, createSigningClient } from "../../../src/chain/clients.js";
import { AppError } from "../../../src/errors.js";
import { invalidInput } from "../../../src/http/responses.js";
import { AddressSchema } from "../../../src/http/schemas.js";
import { ASSETS } from "../../../src/pages/layout.js";
import { ROOT } from "../../../src/root.js";
import { createConcurrencyLimit } from "../../../src/scheduling.js";
import { localAccount } from "../network.js";
import { until } from "../processes.js";
import { createPlays } from "./plays.js";

/** Maximum of one gift, in whole units. */
const MAX_GIFT = { usd: 1_000_000, tokens: 10_000 };
const MAX_PRICE = 100_000;

const amount = (max: number) =>
  z
    .string()
    .regex(/^\d{1,9}(\.\d{1,6})?$/, "must be a decimal such as 100.0")
    .refine((text) => Number(text) > 0 && Number(text) <= max, `must be more than 0 and at most ${max}`);

const GiftSchema = z
  .object({
    address: AddressSchema,
    usd: amount(MAX_GIFT.usd).optional(),
    tokens: amount(MAX_GIFT.tokens).optional(),
  })
  .refine(({ usd, tokens }) => usd !== undefined || tokens !== undefined, "needs usd, tokens or both");

type Gift = z.infer<typeof GiftSchema>;
/** Resolves once the gift is mined. Rejects with `conflict` if this chain's token grants are exhausted. */
export type Faucet = (gift: Gift) => Promise<void>;

/** Longer than the longest contract. */
const MAX_MOVE_SECONDS = 400 * 86_400;
const SEEN_TIMEOUT_MS = 20_000;

/** Forward, by seconds or to a time in seconds. */
const MoveSchema = z.union([
  z.object({ advanceSeconds: z.int().min(1).max(MAX_MOVE_SECONDS) }),
  z.object({ to: z.iso.datetime({ offset: true }).transform((text) => Math.floor(Date.parse(text) / 1000)) }),
]);

const ScriptSchema = z.discriminatedUnion("role", [
  z.object({
    role: z.literal("client"),
    title: z.string().min(1).max(200).default("Say hello to the sandbox"),
    price: amount(MAX_PRICE).default("50"),
    plan: z.enum(["approve", "dispute", "nothing"]).default("approve"),
  }),
  z.object({
    role: z.literal("worker"),
    contractId: AddressSchema,
    plan: z.enum(["deliver", "withdraw", "nothing"]).default("deliver"),
  }),
  z.object({
    role: z.literal("backup-agents"),
    contractId: AddressSchema,
    /** One vote per criterion; all three Backup Agents vote alike. */
    votes: z.array(z.enum(OUTCOMES)).min(1).max(MAX_CRITERIA),
  }),
]);

export type Script = z.infer<typeof ScriptSchema>;

interface SandboxNetwork {
  rpcUrl: string;
  deployment: Deployment;
  baseUrl: string;
}

export type Sandbox = ReturnType<typeof createSandbox>;

export function createSandbox(at: SandboxNetwork) {
  const faucet = createFaucet(at);
  const clock = createClock(at);
  const plays = createPlays({ baseUrl: at.baseUrl, faucet });
  const router = new Hono();
  const text = readFileSync(join(ROOT, "docs/sandbox.md"), "utf8");

  router.get("/sandbox", (c) =>
    c.req.header("accept")?.includes("text/html") === true
      ? c.html(pageOf(text))
      : c.body(text, 200, { "Content-Type": "text/markdown; charset=utf-8" }),
  );

  router.post("/sandbox/faucet", async (c) => {
    const isForm = c.req.header("content-type")?.startsWith("application/x-www-form-urlencoded") === true;
    const body: Promise<unknown> = isForm ? c.req.parseBody() : c.req.json();
    const gift = parse(GiftSchema, await body.catch(() => undefined));
    await faucet(gift);
    return isForm ? c.redirect(`/agents/${gift.address}`, 303) : c.json({ data: gift });
  });

  router.get("/sandbox/clock", async (c) => c.json({ data: { now: isoTime(await clock.now()) } }));

  router.post("/sandbox/clock", async (c) => {
    const move = parse(MoveSchema, await c.req.json().catch(() => undefined));
    return c.json({ data: { now: isoTime(await clock.move(move)) } });
  });

  router.post("/sandbox/counterparties", async (c) => {
    const script = parse(ScriptSchema, await c.req.json().catch(() => undefined));
    return c.json({ data: await plays.begin(script) }, 201);
  });

  router.get("/sandbox/counterparties/:id", (c) => {
    const play = plays.get(c.req.param("id"));
    if (play === undefined) throw new AppError("not_found", { message: "Counterparty not found." });
    return c.json({ data: play });
  });

  return {
    routes: router,
    /** Stakes a standing jury, once the service is ready. After a failure, the next play that needs it retries. */
    start: () => void plays.prepareJury().catch(() => undefined),
    stop: () => plays.stop(),
  };
}

/** For people with a browser wallet: test money without a terminal. */
function pageOf(text: string) {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Sandbox · Working Contracts</title>
    <link rel="icon" href="${ASSETS.icon.path}" type="image/svg+xml">
    <link rel="stylesheet" href="${ASSETS.style.path}">
  </head>
  <body>
    <main id="main">
      <p><a href="/">Contracts</a></p>
      <h1>Sandbox</h1>
      <form class="panel act" method="post" action="/sandbox/faucet">
        <label>Your address <input name="address" required pattern="0x[0-9a-fA-F]{40}"></label>
        <input type="hidden" name="usd" value="1000">
        <input type="hidden" name="tokens" value="1000">
        <button>Get 1,000 dollars and 1,000 protocol tokens</button>
      </form>
      <pre tabindex="0">${text}</pre>
    </main>
  </body>
</html>`;
}

function parse<T>(schema: z.ZodType<T>, body: unknown): T {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  throw invalidInput(result.error.issues);
}

/** The local chain's clock. It can be advanced, so that deadlines and voting windows pass at once. */
function createClock({ rpcUrl, deployment, baseUrl }: SandboxNetwork) {
  const { chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const client = createTestClient({ mode: "anvil", chain, transport: http(rpcUrl) }).extend(publicActions);
  /** Seconds, by the newest block. */
  const now = async (): Promise<number> => Number((await client.getBlock({ blockTag: "latest" })).timestamp);
  const inTurn = createConcurrencyLimit(1);

  const advance = async (move: z.infer<typeof MoveSchema>): Promise<number> => {
    const before = await now();
    const seconds = "to" in move ? move.to - before : move.advanceSeconds;
    if (seconds < 1 || seconds > MAX_MOVE_SECONDS) {
      throw new AppError("invalid_request", {
        message: `The clock only moves forward, by at most ${MAX_MOVE_SECONDS / 86_400} days at a time. It is ${isoTime(before)}.`,
      });
    }
    await client.increaseTime({ seconds });
    await client.mine({ blocks: 1 });
    return now();
  };

  return {
    now,
    /** Resolves to the time reached once the service has it. Rejects if the time is not ahead, or too far ahead. */
    async move(move: z.infer<typeof MoveSchema>): Promise<number> {
      const reached = await inTurn(() => advance(move));
      const isSeen = async (): Promise<boolean> => {
        const network = (await (await fetch(`${baseUrl}/v1/network`)).json()) as { data: { time: string } };
        return Date.parse(network.data.time) >= reached * 1000;
      };
      await until("the service has the new time", isSeen, { timeoutMs: SEEN_TIMEOUT_MS });
      return reached;
    },
  };
}

/** Mints test money. Gifts are sent one after another, because they all come from one account. */
export function createFaucet({ rpcUrl, deployment }: Pick<SandboxNetwork, "rpcUrl" | "deployment">): Faucet {
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const owner = createSigningClient({ rpcUrl, chain, account: localAccount(0) });
  const inTurn = createConcurrencyLimit(1);

  // Tokens first: they can run out, and then nothing is given.
  const send = async ({ address, usd, tokens }: Gift): Promise<`0x${string}`[]> => {
    const hashes: `0x${string}`[] = [];
    if (tokens !== undefined) {
      const args = [address, parseEther(tokens)] as const;
      const token = { address: deployment.protocolToken, abi: protocolTokenAbi } as const;
      hashes.push(await owner.writeContract({ ...token, functionName: "grant", args }).catch(explain));
    }
    if (usd !== undefined) {
      const { address: asset, decimals } = deployment.asset;
      const args = [address, parseUnits(usd, decimals)] as const;
      hashes.push(await owner.writeContract({ address: asset, abi: testUsdAbi, functionName: "mint", args }));
    }
    return hashes;
  };

  return async (gift) => {
    for (const hash of await inTurn(() => send(gift))) {
      const { status } = await publicClient.waitForTransactionReceipt({ hash });
      if (status !== "success") throw new Error(`The transaction ${hash} of the gift reverted.`);
    }
  };
}

function explain(error: unknown): never {
  const reverted =
    error instanceof BaseError ? error.walk((cause) => cause instanceof ContractFunctionRevertedError) : null;
  if ((reverted as ContractFunctionRevertedError | null)?.data?.errorName === "GrantsExhausted") {
    throw new AppError("conflict", {
      message:
        "All tokens that can be granted on this chain have been granted. Start over with npm start -- --reset.",
      cause: error,
    });
  }
  throw error;
}
