/** Behaviour that only a real socket shows: a body is refused before all of it has arrived. */
import { request } from "node:http";
import type { Server } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../support/listen.js";
import { AUTHORIZED, JSON_TYPE, testApp } from "../unit/http/fixtures.js";

let server: Server;
let url: string;

beforeAll(async () => {
  server = createAdaptorServer({ fetch: testApp().app.fetch }) as Server;
  ({ url } = await listen(server));
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
