/** A second service on a test's stack with the sandbox, as `npm start` runs it. */
import { parseConfig } from "../../src/config.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { freePort } from "../../tools/local/ports.js";
import { createSandbox } from "../../tools/local/sandbox/sandbox.js";
import type { World } from "./world.js";

export async function openSandboxed({
  info,
  deployment,
}: World): Promise<{ url: string; stop(): Promise<void> }> {
  const { rpcUrl, databaseUrl, deploymentPath } = info;
  const port = await freePort();
  const sandbox = createSandbox({ rpcUrl, deployment, baseUrl: `http://127.0.0.1:${port}` });
  const config = parseConfig({
    DATABASE_URL: databaseUrl,
    RPC_URL: rpcUrl,
    DEPLOYMENT: deploymentPath,
    MASTER_KEY: "11".repeat(32),
    ROLES: "api",
    PORT: String(port),
  });
  const service = await createService(config, { logger: createLogger("silent"), routes: sandbox.routes });
  return {
    url: service.url,
    async stop() {
      sandbox.stop();
      await service.stop();
    },
  };
}
