/** Settings that only the database, the chain or the machine can refuse: each start ends with one line. */
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, expect, test } from "vitest";
import { writeDeployment } from "../../src/chain/deployment.js";
import { ConfigError, parseConfig } from "../../src/config.js";
import { requireFreePort } from "../../src/indexer/supervision/indexer.js";
import { createLogger } from "../../src/logger.js";
import { createService } from "../../src/main.js";
import { listen } from "../support/listen.js";
import { runOperator, runProgram } from "../support/programs.js";
import { serviceEnvironment } from "../support/stack.js";
import { useWorld } from "../support/world.js";

const STRANGER = generatePrivateKey();
const EMPTY = "0x000000000000000000000000000000000000dead";
const folder = join(tmpdir(), `wrong settings ${process.pid}`);
const busy = createServer();
const { port: busyPort } = await listen(busy);
const world = await useWorld();
await world.pool.query("create role without_rights login password 'no-rights'");
afterAll(async () => {
  busy.close();
  rmSync(folder, { recursive: true, force: true });
  await world.pool.query("drop role without_rights");
});

let files = 0;
/** The deployment with other content, in a separate file whose path has a space. */
function deploymentWith(changes: object): string {
  const path = join(folder, `deployment-${files++}.json`);
  writeDeployment(path, { ...world.deployment, ...changes });
  return path;
}

const OTHER_HASH = `0x${"11".repeat(32)}`;

function databaseWith(changes: Partial<Record<"username" | "password" | "pathname", string>>): string {
  return Object.assign(new URL(world.info.databaseUrl), changes).href;
}

type Fault = [what: string, settings: () => Record<string, string>, line: () => string];

const OTHER_CHAIN: Fault = [
  "another chain",
  () => ({ DEPLOYMENT: deploymentWith({ chainId: 1 }) }),
  () => `DEPLOYMENT: is for chain 1, but the node at RPC_URL serves chain ${world.chainId}`,
];
/** Contracts of the same deployer have the same addresses on it. */
const RESET_CHAIN: Fault = [
  "a chain that was reset",
  () => ({ DEPLOYMENT: deploymentWith({ startBlockHash: OTHER_HASH }) }),
  () => {
    const { startBlock, startBlockHash } = world.deployment;
    return `DEPLOYMENT: block ${startBlock} has the hash ${OTHER_HASH}, but ${startBlockHash} at the node of RPC_URL: it serves another chain with the same id`;
  },
];
const UNKNOWN_DATABASE: Fault = [
  "an unknown database",
  () => ({ DATABASE_URL: databaseWith({ pathname: "/none" }) }),
  () => 'DATABASE_URL: cannot connect to the database (database "none" does not exist)',
];
const NO_NODE: Fault = [
  "no node",
  () => ({ RPC_URL: "http://127.0.0.1:1" }),
  () => "RPC_URL: the node does not respond, or does not serve Ethereum JSON-RPC",
];

test.each<Fault>([
  [
    "a port in use",
    () => ({ PORT: String(busyPort) }),
    () => `PORT: ${busyPort} is in use; stop the program that listens there, or choose another port`,
  ],
  [
    "an address of another machine",
    () => ({ HOST: "192.0.2.1" }),
    () => "HOST: 192.0.2.1 is not an address of this machine",
  ],
  OTHER_CHAIN,
  RESET_CHAIN,
  [
    "another deployment",
    () => ({ DEPLOYMENT: deploymentWith({ relay: EMPTY }) }),
    () =>
      `DEPLOYMENT: chain ${world.chainId} has no contract at ${EMPTY}; use the file that was written for this chain`,
  ],
  [
    "a signer that the Relay does not allow",
    () => ({ RELAYER_PRIVATE_KEYS: STRANGER }),
    () =>
      `RELAYER_PRIVATE_KEYS: the Relay ${world.deployment.relay} does not allow the signer ${privateKeyToAddress(STRANGER)}; its owner must call setSigner`,
  ],
  UNKNOWN_DATABASE,
  [
    "a database user without rights",
    () => ({ DATABASE_URL: databaseWith({ username: "without_rights", password: "no-rights" }) }),
    () => "DATABASE_URL: the user needs the right to create schemas, and to own the schema app",
  ],
])("a start with %s ends with a line that says so", async (_, settings, line) => {
  const config = parseConfig({ ...serviceEnvironment(world.info, 0), ...settings() });
  const fault = await createService(config, { logger: createLogger("silent") }).catch(
    (error: Error) => error,
  );
  expect(fault).toBeInstanceOf(ConfigError);
  expect((fault as Error).message).toBe(line());
});

test("a start with one signer of several that the Relay does not allow raises an alarm and serves the others", async () => {
  const env = serviceEnvironment(world.info, 0);
  const RELAYER_PRIVATE_KEYS = `${env.RELAYER_PRIVATE_KEYS},${STRANGER}`;
  const config = parseConfig({ ...env, RELAYER_PRIVATE_KEYS, ROLES: "relayer" });
  const lines: string[] = [];
  const logger = createLogger("error", { write: (line) => void lines.push(line) });
  const service = await createService(config, { logger });
  await expect.poll(() => lines.join("")).toContain('"alarm":"signer_not_allowed"');
  await service.stop();
});

test("a start of the indexer with a port in use ends with a line that says so", async () => {
  const line = `INDEXER_PORT: ${busyPort} is in use; stop the program that listens there, or choose another port`;
  const started = requireFreePort({ host: "127.0.0.1", port: busyPort }, 0);
  await expect(started).rejects.toThrow(new ConfigError(line));
});

// The others start processes.
test.concurrent.each<Fault>([
  RESET_CHAIN,
  NO_NODE,
  [
    "an address of another machine",
    // Another start block: the index of the stack has an indexer.
    () => ({
      DEPLOYMENT: deploymentWith({
        startBlock: world.deployment.startBlock + 1,
        startBlockHash: undefined,
      }),
      ...{ INDEXER_HOST: "192.0.2.1", INDEXER_PORT: "42069" },
    }),
    () => "INDEXER_PORT: cannot listen on 192.0.2.1:42069 (EADDRNOTAVAIL)",
  ],
])("a start of the indexer with %s ends with a line that says so", async (_, settings, line) => {
  const env = { ...serviceEnvironment(world.info, 0), ...settings() };
  const { code, stderr } = await runProgram("src/commands/indexer.ts", [], env);
  const faults = stderr.replace(/^The index is in the schema onchain_\w+\.\n/, "");
  expect({ code, faults }).toEqual({ code: 1, faults: `${line()}\n` });
});

const DATABASE_LINE = "DATABASE_URL: must be a URL starting with postgres:// or postgresql://";

for (const { args, faults } of [
  {
    args: ["complaint", "list"],
    faults: [
      UNKNOWN_DATABASE,
      [
        "the database of another program",
        () => ({ DATABASE_URL: databaseWith({ pathname: "/postgres" }) }),
        () => "DATABASE_URL: this database has no tables of the service; run npm run migrate first",
      ],
      ["a bad database URL", () => ({ DATABASE_URL: "mysql://x" }), () => DATABASE_LINE],
    ] satisfies Fault[],
  },
  {
    args: ["grant", EMPTY, "1"],
    faults: [
      [
        "a bad node URL",
        () => ({ RPC_URL: "localhost:8545" }),
        () =>
          "RPC_URL: must be a URL starting with http:// or https://\n(or run npm start in another terminal and set none of them)",
      ],
      NO_NODE,
      OTHER_CHAIN,
    ] satisfies Fault[],
  },
])
  test.concurrent.each<Fault>(faults)(
    "an operator's command with %s ends with a line that says so",
    async (_, settings, line) => {
      const env = { ...serviceEnvironment(world.info, 0), OWNER_PRIVATE_KEY: STRANGER, ...settings() };
      const { code, stderr } = await runOperator(args, env);
      expect({ code, stderr }).toEqual({ code: 1, stderr: `${line()}\n` });
    },
  );
