/** A node that responds over HTTP as a test says. */
import { createServer, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { listen } from "../../support/listen.js";

export interface AskedCall {
  id: number;
  method: string;
}

/** Responds to a request's calls; `calls` holds one if the request was not a batch. */
export type Answer = (response: ServerResponse, calls: AskedCall[]) => void;

export interface FakeNode {
  url: string;
  /** Number of requests received. */
  requests(): number;
  stop(): Promise<void>;
}

export async function startFakeNode(answer: Answer): Promise<FakeNode> {
  let requests = 0;
  const server = createServer(async (request, response) => {
    requests++;
    answer(response, [JSON.parse(await text(request))].flat());
  });
  const { url } = await listen(server);
  return {
    url,
    requests: () => requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
