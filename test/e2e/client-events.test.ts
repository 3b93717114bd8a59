/** The client follows the event log through broken streams, and verifies webhooks; a contract wallet is its signer. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import {
  type Agent,
  connect,
  contractWallet,
  type Event,
  RefusedToSign,
  verifyWebhook,
} from "@working-contracts/client/index";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { byWallClock } from "../support/chain-time.js";
import { draftOf, newAgent } from "../support/client-agents.js";
import { useWorld } from "../support/world.js";

/** Returns the magic value of ERC-1271 for every signature. */
const ACCEPTS_ALL = "0x631626ba7e60e01b5f5260205ff3";

const world = await useWorld();

async function post(agent: Agent): Promise<string> {
  return (await agent.create(await draftOf(agent))).id;
}

/** Posts and cancels, and returns the events that the agent's own iterator yields for it. */
async function followed(agent: Agent, onInterruption: (reason: string) => void): Promise<Event[]> {
  const id = await post(agent);
  const events: Event[] = [];
  for await (const event of agent.events({ contractId: id, after: "0", onInterruption })) {
    events.push(event);
    if (event.type === "contract.created") await agent.cancel(id);
    if (event.type === "payout.paid") break;
  }
  const { data } = await agent.call("GET /v1/events", { query: { contractId: id, after: "0" } });
  expect(events).toEqual(data);
  return events;
}

describe("the event iterator", () => {
  it("resumes after a stream that breaks, and yields each event once", async () => {
    let streams = 0;
    const reasons: string[] = [];
    const agent = await newAgent(world, {
      async fetch(input, init) {
        const response = await fetch(input, init);
        if (!String(input).includes("/events/stream") || response.body === null) return response;
        streams++;
        if (streams > 1) return response;
        const [first] = [response.body.getReader()];
        const body = new ReadableStream({
          async pull(controller) {
            const { value } = await first.read();
            if (value === undefined) return controller.error(new Error("The connection broke"));
            controller.enqueue(value);
            if (new TextDecoder().decode(value).includes("data: ")) await first.cancel();
          },
        });
        return new Response(body, response);
      },
    });
    const events = await followed(agent, (reason) => reasons.push(reason));
    expect(events.map(({ type }) => type)).toContain("contract.cancelled");
    expect(streams).toBeGreaterThan(1);
    expect(reasons).toContain("The connection broke");
  });

  it("polls if streams cannot be opened", async () => {
    const reasons: string[] = [];
    const agent = await newAgent(world, {
      async fetch(input, init) {
        if (String(input).includes("/events/stream")) throw new TypeError("No streams here");
        return fetch(input, init);
      },
    });
    const events = await followed(agent, (reason) => reasons.push(reason));
    expect(events.at(-1)?.type).toBe("payout.paid");
    expect(reasons).toEqual(["No streams here", "No streams here"]);
  });
});

describe("a webhook", () => {
  it("is verified with its secret, refused if it was changed, and replayed", async () => {
    const received: { headers: IncomingHttpHeaders; body: string }[] = [];
    const server = createServer(async (request, response) => {
      received.push({ headers: request.headers, body: await text(request) });
      response.writeHead(204).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const agent = await newAgent(world);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { id, secret } = await agent.webhooks.create({ url, types: ["contract.created"] });
    const contractId = await post(agent);
    await expect.poll(() => received.length).toBe(1);
    const [message] = received as [(typeof received)[number]];

    const verify = (change: Partial<typeof message>, key = secret) =>
      byWallClock(() => verifyWebhook(key, { ...message, ...change }));
    const event = await verify({});
    expect(event).toMatchObject({ type: "contract.created", contractId });
    await expect(verify({ body: message.body.replace("created", "settled") })).rejects.toThrow("not signed");
    await expect(verify({}, `whsec_${btoa("another secret of 32 characters..")}`)).rejects.toThrow(
      "not signed",
    );
    const old = { ...message.headers, "webhook-timestamp": "1" };
    await expect(verify({ headers: old })).rejects.toThrow("not now");

    await agent.webhooks.replay(id, { eventId: event.id });
    await expect.poll(() => received.length).toBe(2);
    expect(received[1]?.body).toBe(message.body);
    await agent.webhooks.update(id, { disabled: true });
    expect(await agent.webhooks.get(id)).toMatchObject({ status: "disabled" });
    await agent.webhooks.remove(id);
    expect(await agent.webhooks.list()).toEqual([]);
    server.close();
  });
});

describe("a contract wallet", () => {
  it("signs in and pays by ERC-1271, and sees the quote first", async () => {
    const owner = privateKeyToAccount(generatePrivateKey());
    const { address } = privateKeyToAccount(generatePrivateKey());
    await world.testClient.setCode({ address, bytecode: ACCEPTS_ALL });
    const steps: string[] = [];
    const account = contractWallet(address, (hash) => owner.sign({ hash }));
    const agent = await newAgent(world, { account, onProgress: ({ step }) => steps.push(step) });
    const draft = await draftOf(agent);
    const quote = await agent.dryRun((dry) => dry.create(draft));
    expect(quote).toMatchObject({ decimal: "50.0", currency: "stablecoin" });
    expect(steps).toEqual([]);
    await post(agent);
    expect(steps).toEqual(["quoted", "signing", "sent", "paid"]);
    expect(await world.usdOf(address)).toBe(150_000_000n);
  });

  it("signs nothing while it is not deployed (ERC-6492)", async () => {
    const account = contractWallet(`0x${"12".repeat(20)}`, async () => `0x00${"6492".repeat(16)}`);
    await expect(connect({ baseUrl: world.url, account })).rejects.toBeInstanceOf(RefusedToSign);
  });
});
