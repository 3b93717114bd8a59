/** Requests that no HTTP client would send, as bytes on a socket. */
import { connect } from "node:net";

export interface RawAnswer {
  status: number;
  headers: Map<string, string>;
  body: string;
}

/** Writes the bytes, then reads until the server closes or a whole response with `content-length` has arrived. */
export function sendRaw(url: string, request: string | Buffer): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port || 80) });
    const chunks: Buffer[] = [];
    const finish = (): void => {
      socket.destroy();
      const answer = parseAnswer(Buffer.concat(chunks));
      if (answer === null) reject(new Error(`No response to ${request.toString().slice(0, 200)}`));
      else resolve(answer);
    };
    socket.setTimeout(60_000, finish);
    socket.once("error", (error) => (chunks.length > 0 ? finish() : reject(error)));
    socket.once("close", finish);
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const answer = parseAnswer(Buffer.concat(chunks));
      const length = answer?.headers.get("content-length");
      if (answer !== null && length !== undefined && Buffer.byteLength(answer.body) >= Number(length))
        finish();
    });
    socket.write(request);
  });
}

function parseAnswer(bytes: Buffer): RawAnswer | null {
  const text = bytes.toString("utf8");
  const end = text.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = text.slice(0, Math.max(end, 0)).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1]);
  if (end < 0 || Number.isNaN(status)) return null;
  const headers = new Map(
    lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  return { status, headers, body: text.slice(end + 4) };
}
