/**
 * The cost of 1,000 event streams on the running local service: memory, latency of a call, delay of an event to all.
 */
import { get, type IncomingMessage } from "node:http";
import { signIn } from "../test/support/agent.js";
import { connect } from "./demo/network.js";
import { expectOk, freshKey } from "./demo/stories.js";

const STREAMS = 1_000;
/** The service's limit per address. */
const PER_AGENT = 10;
const HOUR = 3_600;
const IDLE_MS = 20_000;
const PRICE = "50";

const network = await connect();
const {
  baseUrl: url,
  deployment: { chainId },
} = network;

const before = await memory();
const idleCall = await callDelay();
const startedAt = performance.now();
const streams: Stream[] = [];
for (let i = 0; i < STREAMS / PER_AGENT; i++) {
  const { apiKey } = await signIn({ url, chainId });
  streams.push(...(await Promise.all(Array.from({ length: PER_AGENT }, () => open(apiKey)))));
}
const openedMs = performance.now() - startedAt;

await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
const after = await memory();
const busyCall = await callDelay();

const client = await signIn({ url, chainId });
await network.sandbox.give({ address: client.address, usd: PRICE });
const heard = Promise.all(streams.map((stream) => stream.next("contract.created")));
const now = await network.now();
const at = (hours: number) => new Date((now + hours * HOUR) * 1000).toISOString();
const created = expectOk(
  await client.pay("/v1/contracts", {
    idempotencyKey: freshKey(),
    title: "Measured",
    taskDescription: "Measured",
    acceptanceCriteria: ["Measured"],
    contractType: "fixed",
    awardMethod: "open_tender",
    budgetOrPrice: PRICE,
    matchDeadline: at(2),
    withdrawalDeadline: at(3),
    deliveryDeadline: at(4),
    reviewDeadline: at(5),
  }),
);
const answeredAt = performance.now();
const times = (await heard).map((time) => time - answeredAt);
const isAlive = streams.filter(({ isOpen }) => isOpen()).length;
for (const stream of streams) stream.close();
expectOk(await client.post(`/v1/contracts/${created.id}/cancel`));

console.log(`Streams open                        ${isAlive} of ${STREAMS}, opened in ${seconds(openedMs)}`);
console.log(`Memory of the service               ${mib(before)} before, ${mib(after)} with them`);
console.log(
  `GET /v1/protocol, median            ${idleCall.toFixed(1)} ms before, ${busyCall.toFixed(1)} ms with them`,
);
console.log(
  `An event, after the call's response first ${Math.min(...times).toFixed(0)} ms, last ${Math.max(...times).toFixed(0)} ms`,
);
if (isAlive < STREAMS) process.exit(1);

interface Stream {
  /** When the next event of the type arrives (`performance.now()`). */
  next(type: string): Promise<number>;
  isOpen(): boolean;
  close(): void;
}

async function open(key: string): Promise<Stream> {
  const request = get(`${url}/v1/events/stream`, { headers: { authorization: `Bearer ${key}` } });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on("response", resolve);
    request.on("error", reject);
  });
  if (response.statusCode !== 200) throw new Error(`A stream was refused: ${response.statusCode}`);
  let isOpen = true;
  let listen = (_text: string): void => {};
  response.setEncoding("utf8");
  response.on("data", (text: string) => listen(text));
  response.on("close", () => {
    isOpen = false;
  });
  return {
    next: (type) =>
      new Promise((resolve) => {
        listen = (text) => {
          if (text.includes(`event: ${type}\n`)) resolve(performance.now());
        };
      }),
    isOpen: () => isOpen,
    close: () => request.destroy(),
  };
}

async function memory(): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]);
}

async function callDelay(): Promise<number> {
  const delays: number[] = [];
  for (let i = 0; i < 50; i++) {
    const calledAt = performance.now();
    await (await fetch(`${url}/v1/protocol`)).text();
    delays.push(performance.now() - calledAt);
  }
  return delays.sort((a, b) => a - b)[25] as number;
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
