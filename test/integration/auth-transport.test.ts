/** Behaviour that only a real socket shows: a body is refused before all of it has arrived. */
import { request } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { serve } from "@hono/node-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AUTHORIZED, JSON_TYPE, testApp } from "../unit/http/fixtures.js";

let server: Server;
let url: string;

beforeAll(async () => {
  const { app } = testApp();
  await new Promise<void>((resolve) => {
    server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 }, () => resolve()) as Server;
  });
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const headers = { ...AUTHORIZED, ...JSON_TYPE };

test("returns 413 for a body that is too large before all of it has arrived, announced or not", async () => {
  for (const transfer of [{ "Content-Length": String(20_000_000) }, {}]) {
    const answer = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
      const outgoing = request(`${url}/v1/test/1/echo`, {
        method: "POST",
        headers: { ...headers, ...transfer },
      });
      outgoing.on("response", async (response) => {
        let text = "";
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode, text });
      });
      // Once it has responded, the server can close the connection while the body is still being sent.
      outgoing.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE" && error.code !== "ECONNRESET") reject(error);
      });
      outgoing.write(Buffer.alloc(300_000, "x"));
    });
    expect(answer.status).toBe(413);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { code: "payload_too_large" } });
  }
  const after = await fetch(`${url}/health`);
  expect(after.status).toBe(200);
});
