/** An HTTP load balancer: each request goes to the next server in turn, streams included. */
import { once } from "node:events";
import { createServer, request } from "node:http";

export type LoadBalancer = Awaited<ReturnType<typeof startLoadBalancer>>;

export async function startLoadBalancer(targets: readonly string[], port: number) {
  const counts = targets.map(() => 0);
  let turn = 0;
  const server = createServer((incoming, answer) => {
    const index = turn++ % targets.length;
    counts[index] = (counts[index] ?? 0) + 1;
    const forwarded = request(new URL(incoming.url ?? "/", targets[index]), {
      method: incoming.method,
      headers: incoming.headers,
    });
    forwarded.on("response", (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    forwarded.on("error", () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()));
    answer.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${port}`,
    /** Requests per server, in the order of `targets`. */
    counts,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
