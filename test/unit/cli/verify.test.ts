import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "@working-contracts/cli/main";
import { afterEach, beforeEach, expect, it } from "vitest";
import { NETWORK } from "../client/fake-service.js";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "verify-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

it("verify signs in to no service, although there is a key", async () => {
  const requests: string[] = [];
  const data = { ...NETWORK, domain: "localhost", time: new Date().toISOString() };
  const service = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    response.end(JSON.stringify({ data }));
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  const { port } = service.address() as AddressInfo;
  const deployment = join(dir, "deployment.json");
  const network = { ...NETWORK, networkName: "base-sepolia", startBlock: 0 };
  writeFileSync(deployment, JSON.stringify(network));

  const env = { WC_PRIVATE_KEY: "17".repeat(32), WC_CONFIG_DIR: dir };
  // Nothing that is a node listens there.
  const node = ["--rpc-url", "http://127.0.0.1:1", "--deployment", deployment];
  const url = ["--url", `http://127.0.0.1:${port}`, "--patience", "0s"];
  const print = () => {};
  const id = `0x${"11".repeat(20)}`;
  const code = await run([...url, ...node, "verify", id], { env, cwd: dir, stdout: print, stderr: print });
  service.close();
  expect(code).not.toBe(2);
  expect(requests).toEqual([]);
});
