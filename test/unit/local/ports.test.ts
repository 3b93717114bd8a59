import { createServer, type Server } from "node:net";
import { afterEach, expect, it } from "vitest";
import { freePort, listenOnFreePort } from "../../../tools/local/ports.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

function listen(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    servers.push(server);
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(port));
  });
}

it("takes another port if the wanted one is in use", async () => {
  const wanted = await listen(await freePort());
  const { port } = await listenOnFreePort({ wanted }, listen);
  expect(port).not.toBe(wanted);
});
