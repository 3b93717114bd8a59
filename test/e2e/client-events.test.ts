/** The client verifies webhooks. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { verifyWebhook } from "@working-contracts/client/index";
import { expect, test } from "vitest";
import { byWallClock } from "../support/chain-time.js";
import { draftOf, newAgent } from "../support/client-agents.js";
import { listen } from "../support/listen.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();

test("a webhook is verified with its secret, refused if it was changed, and replayed", async () => {
  const received: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    response.writeHead(204).end();
  });
  const url = `${(await listen(server)).url}/`;
  const agent = await newAgent(world);
  const { id, secret } = await agent.webhooks.create({ url, types: ["contract.created"] });
  const { id: contractId } = await agent.create(await draftOf(agent));
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
