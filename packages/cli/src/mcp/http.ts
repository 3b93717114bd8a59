/** Streamable HTTP for MCP clients on this machine. */
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { UsageError } from "../errors.js";

const PATH = "/mcp";
/** Limit for the owner's sessions, and separately for all others: beyond it, the least recently used one is closed. */
const MAX_SESSIONS = 64;

/** `createServer` is called for each session. */
export interface HttpOptions {
  /** On 127.0.0.1; 0 for any free one. */
  port: number;
  /** Calls with it in `Authorization: Bearer` get the owner's server; without one, everyone gets the public server. */
  key: string | undefined;
  createServer(isOwner: boolean): McpServer;
}

interface Session {
  transport: StreamableHTTPServerTransport;
  isOwner: boolean;
}

/** Serves until `close`. Refuses web pages: an `Origin`, or another `Host` (DNS rebinding). Throws UsageError if the port is taken. */
export async function serveHttp(options: HttpOptions): Promise<{ url: string; close(): Promise<void> }> {
  /** By id, the most recently used last. */
  const sessions = new Map<string, Session>();
  const http = createServer((request, response) => {
    handle(request, response).catch(() => refuse(response, 500, "Internal error"));
  });
  http.listen(options.port, "127.0.0.1");
  await once(http, "listening").catch((error: Error) => {
    throw new UsageError(`--http ${options.port}: ${error.message}`);
  });
  const { port } = http.address() as AddressInfo;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host = "", origin, authorization } = request.headers;
    // `localhost` can be `::1`, where another user of the machine could take the key.
    if (host !== `127.0.0.1:${port}` || origin !== undefined)
      return refuse(response, 403, `Use http://127.0.0.1:${port}${PATH}; web pages cannot`);
    if (request.url !== PATH) return refuse(response, 404, `Only ${PATH} is served`);
    const isOwner = authorization !== undefined;
    if (isOwner && !isKey(authorization, options.key)) {
      response.setHeader("WWW-Authenticate", "Bearer");
      return refuse(response, 401, "Wrong key: send the one in WC_MCP_KEY as Authorization: Bearer");
    }
    const id = String(request.headers["mcp-session-id"] ?? "");
    const session = id === "" ? await newSession(isOwner) : sessions.get(id);
    if (session === undefined || session.isOwner !== isOwner)
      return refuse(response, 404, "No such session; initialize a new one");
    if (sessions.delete(id)) sessions.set(id, session);
    // A call whose response was lost must count as abandoned, so that it is resumed and not paid for twice.
    response.once("close", () => {
      if (request.method === "POST" && !response.writableFinished) void session.transport.close();
    });
    await session.transport.handleRequest(request as never, response);
  }

  async function newSession(isOwner: boolean): Promise<Session> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        sessions.set(id, { transport, isOwner });
        const alike = [...sessions.values()].filter((session) => session.isOwner === isOwner);
        if (alike.length > MAX_SESSIONS) void alike[0]?.transport.close();
      },
    });
    transport.onclose = () => void sessions.delete(transport.sessionId ?? "");
    await options.createServer(isOwner).connect(transport as never);
    return { transport, isOwner };
  }

  return {
    url: `http://127.0.0.1:${port}${PATH}`,
    async close() {
      await Promise.all([...sessions.values()].map(({ transport }) => transport.close()));
      http.close();
      http.closeAllConnections();
    },
  };
}

function isKey(authorization: string, key: string | undefined): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return key !== undefined && timingSafeEqual(digest(authorization), digest(`Bearer ${key}`));
}

function refuse(response: ServerResponse, status: number, message: string): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }));
}
