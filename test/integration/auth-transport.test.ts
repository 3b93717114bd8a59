/** Behaviour that only a real socket shows: large bodies and chunked ones. */
import { request } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { Readable } from "node:stream";
import { serve } from "@hono/node-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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

describe("over a socket", () => {
  it("reads bodies with a length and chunked bodies alike", async () => {
    const body = '{"budgetOrPrice":50.00}';
    const whole = await fetch(`${url}/v1/test/1/echo`, { method: "POST", headers, body });
    expect(whole.status).toBe(200);
    const chunks = Readable.toWeb(Readable.from([Buffer.from(body.slice(0, 5)), Buffer.from(body.slice(5))]));
    const init = { method: "POST", headers, body: chunks, duplex: "half" } as unknown as RequestInit;
    const chunked = await fetch(`${url}/v1/test/1/echo`, init);
    expect(chunked.status).toBe(200);
    expect(await chunked.json()).toEqual(await whole.json());
  });

  it("returns 413 for a body of many megabytes, announced or not", async () => {
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
});
