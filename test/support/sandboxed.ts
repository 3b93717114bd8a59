/** A second service on a test file's stack with the sandbox, as `npm start` runs it. */
import { afterAll } from "vitest";
import { freePort } from "../../tools/local/ports.js";
import { createSandbox, type Sandbox } from "../../tools/local/sandbox/sandbox.js";
import { startApi } from "./stack.js";
import type { World } from "./world.js";

export async function useSandboxed({ info, deployment }: World): Promise<{ url: string; sandbox: Sandbox }> {
  const port = await freePort();
  const sandbox = createSandbox({ rpcUrl: info.rpcUrl, deployment, baseUrl: `http://127.0.0.1:${port}` });
  const service = await startApi(info, { routes: sandbox.routes }, port);
  afterAll(async () => {
    sandbox.stop();
    await service.stop();
  });
  return { url: service.url, sandbox };
}
