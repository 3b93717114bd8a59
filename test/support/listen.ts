import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";

/** Has the server listen on a free port. */
export async function listen(server: Server, host = "127.0.0.1"): Promise<{ port: number; url: string }> {
  server.listen(0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://${host}:${port}` };
}
