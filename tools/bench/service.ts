/** The measured service: counts its SQL statements and HTTP requests to the node, and reports them when asked. */
import pg from "pg";

const counts = { sql: 0, rpc: 0 };
const { query } = pg.Client.prototype;
pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  counts.sql += 1;
  return (query as (...all: unknown[]) => unknown).apply(this, args);
} as never;

const { fetch } = globalThis;
globalThis.fetch = (input, init) => {
  const url = input instanceof Request ? input.url : String(input);
  if (url.startsWith(process.env.RPC_URL ?? "")) counts.rpc += 1;
  return fetch(input, init);
};

process.on("message", () => process.send?.(counts));
// Alone, the channel must not keep the service running.
process.channel?.unref();

await import("../../src/commands/serve.js");
