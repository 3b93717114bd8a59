/** A local chain: anvil, with its state saved to disk by this module. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { BaseLogger } from "pino";
import {
  type Address,
  type BaseError,
  createTestClient,
  type Hex,
  http,
  keccak256,
  publicActions,
  stringToHex,
  type TestClient,
} from "viem";
import { createChainClients, rpcTransport } from "../../src/chain/clients.js";
import { createLoop } from "../../src/scheduling.js";
import { foundryBinary } from "./foundry.js";
import { type PartOptions, supervise, until } from "./processes.js";

/** Base Sepolia's id: the oldest x402 clients know a fixed list of networks, and this test network is on it. */
export const LOCAL_CHAIN_ID = 84_532;
const BLOCK_GAS_LIMIT = 60_000_000;
/** Readable blocks, also for reorganizations; each costs memory. Anvil keeps 1,500 if blocks are two seconds apart. */
const KEPT_STATES = 200;
const WATCH_INTERVAL_MS = 500;
const CLOCK_TOLERANCE_SECONDS = 5;
/** Maximum share of time spent saving: a long chain's state is large. */
const SAVE_SHARE = 0.1;
/** Longer than any string that Node can hold. */
const MAX_STATE_BYTES = 1024 * 1024 * 1024;

interface ChainOptions extends PartOptions {
  dir: string;
  port: number;
  /** Default: LOCAL_CHAIN_ID. */
  chainId?: number;
  /** Seconds between blocks. */
  blockTime: number;
  /** Mines each transaction at once, too. */
  instant?: boolean | undefined;
  /** Keeps the chain through restarts; without it every start is a new chain. */
  persistent: boolean;
}

export type LocalChain = Awaited<ReturnType<typeof startChain>>;

/**
 * Starts anvil. Its state is saved after every block that holds a transaction, so a killed chain loses at most the last
 * second or two. The relayer sends lost transactions again, as after a reorg.
 */
export async function startChain(options: ChainOptions) {
  const { dir, port, persistent, chainId = LOCAL_CHAIN_ID } = options;
  mkdirSync(dir, { recursive: true });
  const files = {
    state: join(dir, "state.json.gz"),
    head: join(dir, "head.json"),
    unpacked: join(dir, "state.json"),
    /** Anvil writes it once it has bound its port: before, another clone's chain can respond there. */
    bound: join(dir, "anvil.json"),
  };
  const isOwn = () => existsSync(files.bound);
  const isContinued = persistent && existsSync(files.state);
  const rpcUrl = `http://127.0.0.1:${port}`;
  const client = createTestClient({
    mode: "anvil",
    // A long chain's state takes long to dump, and is large.
    transport: rpcTransport(rpcUrl, { retryCount: 0, timeout: 120_000, maxResponseBytes: MAX_STATE_BYTES }),
  });

  const supervised = await supervise({
    ...options,
    name: "The local chain",
    async plan() {
      rmSync(files.bound, { force: true });
      const restore = persistent && existsSync(files.state);
      if (restore) writeFileSync(files.unpacked, gunzipSync(readFileSync(files.state)));
      return {
        command: foundryBinary("anvil"),
        args: [
          ...["--host", "127.0.0.1", "--port", String(port), "--chain-id", String(chainId)],
          ...["--block-time", String(options.blockTime), "--gas-limit", String(BLOCK_GAS_LIMIT)],
          ...["--mnemonic", MNEMONIC, "--prune-history", String(KEPT_STATES)],
          ...["--no-request-size-limit", "--quiet", "--config-out", files.bound],
          ...(options.instant ? ["--mixed-mining"] : []),
          ...(restore ? ["--load-state", files.unpacked] : []),
        ],
      };
    },
    async ready(signal) {
      const isUp = async () => isOwn() && (await client.extend(publicActions).getChainId()) === chainId;
      await until("the local chain responds", isUp, { timeoutMs: 60_000, signal });
      if (persistent) await catchUp(client, files.head);
    },
  });
  const saver = persistent ? keepState(client, files, { isOwn, report: options.report }) : undefined;
  return {
    ...supervised,
    rpcUrl,
    wsRpcUrl: `ws://127.0.0.1:${port}`,
    /** Whether the chain of an earlier run continues. */
    isContinued,
    save: async () => saver?.save(),
    async stop(): Promise<void> {
      await saver?.stop();
      await supervised.stop();
    },
  };
}

/** Anvil's well-known test accounts: their keys are public. */
export const MNEMONIC = "test test test test test test test test test test test junk";

/** The newest block, and how far its time was ahead of this machine's clock: tests and the demo advance it. */
interface SavedHead {
  number: number;
  secondsAhead: number;
}

/** Restores the chain's lead over this machine's clock and its height, so that readers see neither go back. */
async function catchUp(client: TestClient, headFile: string): Promise<void> {
  if (!existsSync(headFile)) return;
  const last = JSON.parse(readFileSync(headFile, "utf8")) as SavedHead;
  if (last.secondsAhead > CLOCK_TOLERANCE_SECONDS) await client.increaseTime({ seconds: last.secondsAhead });
  const current = Number(await client.extend(publicActions).getBlockNumber({ cacheTime: 0 }));
  if (last.number > current) await client.mine({ blocks: last.number - current });
}

function keepState(
  client: TestClient,
  files: { state: string; head: string },
  { isOwn, report }: { isOwn: () => boolean; report: (line: string) => void },
) {
  const reader = client.extend(publicActions);
  let seen = 0n;
  let pauseUntil = 0;
  let isDirty = true;

  const noteHead = ({ number, timestamp }: { number: bigint; timestamp: bigint }): void => {
    const secondsAhead = Number(timestamp) - Math.floor(Date.now() / 1000);
    replace(files.head, JSON.stringify({ number: Number(number), secondsAhead } satisfies SavedHead));
  };
  const save = async (): Promise<void> => {
    if (!isOwn()) return;
    const startedAt = Date.now();
    const dump = await client.dumpState();
    replace(files.state, Buffer.from(dump.slice(2), "hex"));
    noteHead(await reader.getBlock());
    isDirty = false;
    pauseUntil = Date.now() + (Date.now() - startedAt) / SAVE_SHARE;
  };
  const look = async (): Promise<void> => {
    const block = await reader.getBlock().catch(() => null);
    // An unreachable chain is being restarted; its supervisor reports that.
    if (block === null || !isOwn()) return;
    const head = block.number;
    const from = seen === 0n || head < seen ? head : seen + 1n;
    for (let number = from; number <= head && !isDirty; number++) {
      isDirty = (await reader.getBlockTransactionCount({ blockNumber: number })) > 0;
    }
    if (head !== seen) noteHead(block);
    seen = head;
    if (isDirty && Date.now() >= pauseUntil) await save();
  };

  const reasonOf = (error: BaseError): string => error.shortMessage ?? String(error);
  const warn = ({ error, failures }: { error: BaseError; failures: number }): void => {
    if (failures === 1) report(`The local chain's state cannot be saved: ${reasonOf(error)}`);
  };
  const watching = createLoop({
    name: "chain state",
    logger: { warn: warn as BaseLogger["warn"] },
    intervalMs: WATCH_INTERVAL_MS,
    maxBackoffMs: WATCH_INTERVAL_MS,
    round: look,
  });
  watching.start();

  return {
    save,
    async stop(): Promise<void> {
      await watching.stop();
      await save().catch((error: BaseError) =>
        report(`The local chain's state was not saved: ${reasonOf(error)}`),
      );
    },
  };
}

/** Writes a temporary file and renames it: a reader finds either the old or the new content, complete. */
function replace(path: string, content: Buffer | string): void {
  writeFileSync(`${path}.tmp`, content);
  renameSync(`${path}.tmp`, path);
}

/** USDC on Base Sepolia, whose id the local chain has. */
export const LOCAL_STABLECOIN = {
  address: "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
  name: "USDC",
  symbol: "USDC",
  version: "2",
} as const;

/** Storage slots of OpenZeppelin's ERC-20. */
const NAME_SLOT = "0x3";
const SYMBOL_SLOT = "0x4";
const TEST_NAME = "Test USD";
const TEST_VERSION = "2";

/** Puts the test token's code, with the given name and version, at `token.address`. */
export async function placeStablecoin(
  { rpcUrl, chainId }: { rpcUrl: string; chainId: number },
  token: { address: Address; name: string; symbol: string; version: string },
): Promise<Address> {
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  const testClient = createTestClient({ mode: "anvil", chain, transport: http(rpcUrl) });
  const path = new URL("../../src/chain/bytecode.json", import.meta.url);
  const { bytecode } = JSON.parse(readFileSync(path, "utf8")) as { bytecode: { TestUSD: Hex } };
  // A creation that is called and not sent returns the code that it would deploy.
  const { data: code = "0x" } = await publicClient.call({ data: bytecode.TestUSD });

  const renamed = [
    [hashOf(TEST_NAME), hashOf(token.name)],
    [hashOf(TEST_VERSION), hashOf(token.version)],
    [shortString(TEST_NAME, 1), shortString(token.name, 1)],
    [shortString(TEST_VERSION, 1), shortString(token.version, 1)],
  ].reduce<string>((hex, [from = "", to = ""]) => hex.replaceAll(from, to), code) as Hex;
  await testClient.setCode({ address: token.address, bytecode: renamed });
  for (const [index, text] of [
    [NAME_SLOT, token.name],
    [SYMBOL_SLOT, token.symbol],
  ] as const) {
    await testClient.setStorageAt({ address: token.address, index, value: `0x${shortString(text, 2)}` });
  }
  return token.address;
}

/** An immutable of the EIP-712 domain, as the bytecode contains it. */
const hashOf = (text: string): string => keccak256(stringToHex(text)).slice(2);

/** A string under 32 bytes: the text, then `unit` times its length in the last byte (storage 2, ShortString 1). */
function shortString(text: string, unit: number): string {
  const length = (text.length * unit).toString(16).padStart(2, "0");
  return `${stringToHex(text).slice(2).padEnd(62, "0")}${length}`;
}
