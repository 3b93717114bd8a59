/** A proxy between one process and the chain's node. It responds as a rule says: late, wrongly, or not at all. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { json } from "node:stream/consumers";
import { listenOnOwnPort } from "./own-port.js";

export interface RpcCall {
  id: number;
  method: string;
  params: unknown[];
}

/** A JSON-RPC response without its id, and the HTTP status, by default 200. */
export type RpcAnswer = ({ result: unknown } | { error: { code: number; message: string } }) & {
  status?: number;
};

/** Resets the connection instead of responding. */
export const RESET = Symbol("reset");
/** Responds with HTTP 500. */
export const BROKEN = Symbol("broken");

/** Decides one call; `forward` sends it to the node. A rule that waits delays the call. */
export type RpcRule = (
  call: RpcCall,
  forward: () => Promise<RpcAnswer>,
) => Promise<RpcAnswer | typeof RESET | typeof BROKEN>;

export async function startRpcProxy(target: string) {
  let rule: RpcRule | null = null;

  const forward = async (call: RpcCall): Promise<RpcAnswer> => {
    const answer = await fetch(target, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", ...call }),
    });
    return (await answer.json()) as RpcAnswer;
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await json(request)) as RpcCall | RpcCall[];
    const calls = Array.isArray(body) ? body : [body];
    const answers = await Promise.all(
      calls.map((call) => (rule === null ? forward(call) : rule(call, () => forward(call)))),
    );
    if (answers.includes(RESET)) response.socket?.resetAndDestroy();
    else if (answers.includes(BROKEN)) response.writeHead(500).end("the node is broken");
    else {
      const bodies = (answers as RpcAnswer[]).map(({ status, ...one }, index) => ({
        ...one,
        jsonrpc: "2.0",
        id: calls[index]?.id,
      }));
      const { status = 200 } = (answers as RpcAnswer[]).find(({ status }) => status !== undefined) ?? {};
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(Array.isArray(body) ? bodies : bodies[0]));
    }
  };

  const server = createServer((request, response) => {
    // The node might be down as well.
    answer(request, response).catch(() => response.destroy());
  });
  const { port, refuse, stop } = await listenOnOwnPort(server, { cut: () => server.closeAllConnections() });

  return {
    url: `http://127.0.0.1:${port}`,
    /** Null lets everything through. */
    setRule(next: RpcRule | null): void {
      rule = next;
    },
    refuse,
    stop,
  };
}
