/** Requests that cost the service more than their sender: each is refused before it does. */
import { connect } from "node:net";
import { expect, it } from "vitest";
import { useWorld } from "../support/world.js";

const world = await useWorld();
const { hostname, port } = new URL(world.url);
const HEALTH = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n";

/** Sends text at once, and returns all that the service sends until it closes the connection, or until `isDone`. */
function exchange(text: string, isDone: (received: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(text));
    const end = () => {
      socket.destroy();
      resolve(received);
    };
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      received += chunk;
      if (isDone(received)) end();
    });
    socket.on("error", () => {}).on("close", end);
  });
}

const responsesIn = (received: string): number => received.split("HTTP/1.1 200").length - 1;

it("hundreds of requests at once on one connection close it; a few are answered", async () => {
  const answered = await exchange(HEALTH.repeat(10), (received) => responsesIn(received) === 10);
  expect(responsesIn(answered)).toBe(10);
  expect(responsesIn(await exchange(HEALTH.repeat(500)))).toBeLessThanOrEqual(16);
});

it("a body in very many pieces is refused", async () => {
  const path = `/v1/agents/0x${"52".repeat(20)}/challenge`;
  const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const inPieces = (count: number) => `${head}${"1\r\n \r\n".repeat(count - 1)}2\r\n{}\r\n0\r\n\r\n`;
  expect(await exchange(inPieces(1_000), (received) => received.includes("\r\n\r\n"))).toContain(" 200 ");
  expect(await exchange(inPieces(20_000))).toMatch(/ 413 .*payload_too_large/s);
});

it.each([
  ["Host header", (long: string) => `GET /health HTTP/1.1\r\nHost: ${long}\r\n\r\n`],
  ["absolute URL", (long: string) => `GET http://${long}/health HTTP/1.1\r\nHost: a\r\n\r\n`],
])("an %s as long as a header can be is refused before it is parsed", async (_name, requestOf) => {
  const canParse = await exchange(requestOf("a".repeat(200)), (received) => received.includes("\r\n\r\n"));
  expect(canParse).toContain(" 200 ");
  const refused = await exchange(requestOf(`${"a".repeat(30_000)}%E4%B8%80`));
  expect(refused).toMatch(/^HTTP\/1.1 400 .*invalid_request.*longer than 8192 characters/s);
});
