/** A DNS server of test domains. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

/**
 * Answers each IPv4 query, after `delayMs`, with the next of `answers`, and IPv6 queries with nothing. An answer can be
 * several addresses, separated by commas.
 */
export async function startNameServer(answers: readonly string[], { delayMs = 0 } = {}) {
  const socket = createSocket("udp4");
  let asked = 0;
  socket.on("message", async (query, from) => {
    const end = query.indexOf(0, 12) + 5;
    const question = query.subarray(12, end);
    const isV4 = question.readUInt16BE(question.length - 4) === 1;
    const answer = isV4 ? answers[Math.min(asked++, answers.length - 1)] : undefined;
    const addresses = answer === undefined ? [] : answer.split(",");
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(0x8180, 2);
    header.writeUInt16BE(addresses.length, 6);
    const records = addresses.map((address) =>
      Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split(".").map(Number)]),
    );
    await delay(delayMs);
    socket.send(Buffer.concat([header, question, ...records]), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked: () => asked,
    close: () => void socket.close(),
  };
}
