/** People and programs at the command line, each with a separate key, folder and settings. */
import { createServer } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { run as runCommand } from "@working-contracts/cli/main";
import type { Address } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll } from "vitest";
import { ROOT } from "../../src/root.js";
import { listen } from "../support/listen.js";
import { type Finished, newProject, runProcess } from "../support/run-process.js";
import type { World } from "../support/world.js";

/** The program itself. */
export const WC = join(ROOT, "packages/cli/bin/wcontract.mjs");

export interface User {
  /** Lower case. */
  address: Address;
  key: string;
  cwd: string;
  env: Record<string, string>;
  run(...args: string[]): Promise<Finished>;
  /** Runs `wcontract` with `--json` and parses its output. Throws if the command fails. */
  json<T = Record<string, never>>(...args: string[]): Promise<T>;
  /** The same in a separate process. */
  spawn(...args: string[]): Promise<Finished>;
}

/** Creates users for the tests of one file, and removes their files afterwards. */
export function useUsers(world: World) {
  const folders: { dir: string; remove(): void }[] = [];
  afterAll(() => {
    for (const folder of folders) folder.remove();
  });
  const newFolder = (): string => {
    const folder = newProject();
    folders.push(folder);
    return folder.dir;
  };
  return {
    newFolder,
    async newUser({
      usd = "100",
      env: settings = {},
    }: {
      usd?: string;
      env?: Record<string, string>;
    } = {}): Promise<User> {
      const cwd = newFolder();
      const key = generatePrivateKey();
      const { address } = privateKeyToAccount(key);
      if (usd !== "0") await world.fundUsd(address, usd);
      const env = {
        WC_URL: world.url,
        WC_CONFIG_DIR: join(cwd, "config"),
        WC_PRIVATE_KEY: key,
        RPC_URL: world.info.rpcUrl,
        DEPLOYMENT: world.info.deploymentPath,
        ...settings,
      };
      const run = (...args: string[]): Promise<Finished> => runHere(args, { cwd, env });
      return {
        address: address.toLowerCase() as Address,
        key,
        cwd,
        env,
        run,
        async json<T>(...args: string[]) {
          const { code, stdout, stderr } = await run("--json", ...args);
          if (code !== 0) throw new Error(`wcontract ${args.join(" ")}: exit code ${code}\n${stderr}`);
          return JSON.parse(stdout) as T;
        },
        spawn: (...args) => runProcess("node", [WC, ...args], { cwd, env }),
      };
    },
  };
}

async function runHere(
  args: string[],
  place: { cwd: string; env: Record<string, string> },
): Promise<Finished> {
  let stdout = "";
  let stderr = "";
  const code = await runCommand(args, {
    ...place,
    stdout: (text) => {
      stdout += text;
    },
    stderr: (text) => {
      stderr += text;
    },
  });
  return { code, stdout, stderr };
}

/** A proxy between agent and service, or node, that changes data in responses or loses whole responses. */
export async function openMiddle(
  world: World,
  {
    change = () => {},
    loses = () => false,
    to = world.url,
  }: {
    to?: string;
    change?: (path: string, data: Record<string, unknown>) => void;
    loses?: (headers: Record<string, unknown>) => boolean | Promise<boolean>;
  },
) {
  const server = createServer(async (request, response) => {
    const sent = await buffer(request);
    const passed = ["authorization", "content-type", "payment-signature"].flatMap((name) => {
      const value = request.headers[name];
      return typeof value === "string" ? [[name, value] as [string, string]] : [];
    });
    const honest = await fetch(to + request.url, {
      method: request.method ?? "GET",
      headers: passed,
      ...(sent.length > 0 && { body: sent }),
    });
    // A stream has no end to wait for; without it, the client polls.
    if (honest.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      await honest.body?.cancel();
      return void response.destroy();
    }
    const body = (await honest.json()) as { data?: Record<string, unknown> };
    if (await loses(request.headers)) return void response.destroy();
    change(request.url ?? "", body.data ?? body);
    const quote = honest.headers.get("payment-required");
    response
      .writeHead(honest.status, {
        "content-type": "application/json",
        ...(quote !== null && { "payment-required": quote }),
      })
      .end(JSON.stringify(body));
  });
  const { url } = await listen(server);
  return { url, close: () => void server.close() };
}
