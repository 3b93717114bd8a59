import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { statusPattern } from "@working-contracts/cli/commands/contracts";
import { createContext } from "@working-contracts/cli/context";
import { UsageError } from "@working-contracts/cli/errors";
import { readSettings } from "@working-contracts/cli/settings";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

const LOCAL = {
  baseUrl: "http://127.0.0.1:4000",
  rpcUrl: "http://127.0.0.1:8545",
  deploymentPath: "/deployment.json",
};

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "settings-"));
  mkdirSync(join(cwd, ".local"));
  write(LOCAL);
});
afterEach(() => rmSync(cwd, { recursive: true }));

const write = (network: object) => writeFileSync(join(cwd, ".local/network.json"), JSON.stringify(network));
const read = (env: Record<string, string> = {}, options: Parameters<typeof readSettings>[0] = {}) =>
  readSettings(options, { env, cwd });

describe("the local network's node and deployment", () => {
  const ofLocal = { rpcUrl: LOCAL.rpcUrl, deploymentPath: LOCAL.deploymentPath };

  it("are used with its own service", () => {
    expect(read()).toMatchObject({ url: LOCAL.baseUrl, ...ofLocal });
    expect(read({ WC_URL: `${LOCAL.baseUrl}/` })).toMatchObject({ url: LOCAL.baseUrl, ...ofLocal });
  });

  it("are not used with another service", () => {
    const env = { WC_URL: "https://contracts.example.com" };
    const none = { rpcUrl: undefined, deploymentPath: undefined };
    expect(read(env)).toMatchObject(none);
    const given = { rpcUrl: "https://node.example.com", deployment: "other.json" };
    expect(read(env, given)).toMatchObject({
      rpcUrl: "https://node.example.com",
      deploymentPath: "other.json",
    });
  });

  it("are not used with a service whose URL contains a password, which is not repeated", () => {
    const env = { WC_URL: "https://user:s3cret@contracts.example.com" };
    expect(() => read(env)).toThrow(/^(?!.*s3cret).*must not contain a name/);
  });

  it("are not used with each other if the user names another node", () => {
    const env = { RPC_URL: "https://node.example.com" };
    const other = { rpcUrl: env.RPC_URL, deploymentPath: undefined };
    expect(read(env)).toMatchObject({ url: LOCAL.baseUrl, ...other });
    for (const RPC_URL of [LOCAL.rpcUrl, `${LOCAL.rpcUrl}/`, "http://localhost:8545"]) {
      const same = { ...ofLocal, rpcUrl: RPC_URL };
      expect(read({ RPC_URL })).toMatchObject(same);
    }
  });

  it("are used with a service that listens at all addresses", () => {
    write({ ...LOCAL, baseUrl: "http://0.0.0.0:4000" });
    const settings = { url: LOCAL.baseUrl, ...ofLocal, ignored: undefined };
    expect(read()).toMatchObject(settings);
  });
});

it.each([
  ["--url or WC_URL", { WC_URL: "foo" }],
  ["--url or WC_URL", { WC_URL: "localhost:3000" }],
  ["--rpc-url or RPC_URL", { RPC_URL: "ws://secret@node.example.com" }],
])("a wrong %s is named, and not repeated", (name, env) => {
  const error = new UsageError(`${name} must be a URL that starts with http:// or https://.`);
  expect(() => read(env)).toThrow(error);
});

it("a status to wait for is one that a contract can have", () => {
  expect(statusPattern("matched,settled-*")).toEqual(["matched", "settled-*"]);
  for (const text of ["matchd", "setled-*", "matched,", ""])
    expect(() => statusPattern(text)).toThrow(UsageError);
});

describe("a stranger's network.json", () => {
  const EVIL = "https://evil.example.com";
  const none = { rpcUrl: undefined, deploymentPath: undefined };
  const reason = (why: string) =>
    `ignored ${join(cwd, ".local/network.json")}: ${why}; pass --url and --rpc-url`;

  it.each([
    ["baseUrl", { ...LOCAL, baseUrl: EVIL, rpcUrl: EVIL }],
    ["rpcUrl", { ...LOCAL, rpcUrl: EVIL }],
  ])("names no other machine by its %s", (_, network) => {
    write(network);
    const ignored = reason("it names another machine");
    const settings = { url: "http://127.0.0.1:3000", ...none, ignored };
    expect(read()).toMatchObject(settings);
    expect(read({ WC_URL: LOCAL.baseUrl })).toMatchObject({ url: LOCAL.baseUrl, ...none, ignored });
  });

  it.each(["null", "{", ""])("is not used if it is %o", (text) => {
    writeFileSync(join(cwd, ".local/network.json"), text);
    const ignored = reason("it cannot be read");
    expect(read()).toMatchObject({ url: "http://127.0.0.1:3000", ...none, ignored });
  });

  it("is not mentioned if a valid one would not be used either", () => {
    write({ ...LOCAL, rpcUrl: EVIL });
    const rpcUrl = "https://node.example.com";
    for (const options of [{ url: LOCAL.baseUrl, rpcUrl }, { url: "https://contracts.example.com" }])
      expect(read({}, options)).toMatchObject({ url: options.url, ignored: undefined });
  });

  it("is not used if it belongs to another user", () => {
    const user = (process.getuid?.() ?? 0) + 1;
    vi.spyOn(process, "getuid").mockReturnValue(user);
    const settings = read();
    vi.restoreAllMocks();
    const ignored = reason("it belongs to another user");
    expect(settings).toMatchObject({ url: "http://127.0.0.1:3000", ...none, ignored });
  });

  it("is reported by the command that ignores it", async () => {
    write({ ...LOCAL, rpcUrl: EVIL });
    const stderr = vi.fn();
    void createContext({}, { env: {}, cwd, stdout: () => {}, stderr });
    expect(stderr.mock.calls).toEqual([[`${reason("it names another machine")}\n`]]);
  });
});

it("an empty variable counts as absent", () => {
  const names = [
    ...["WC_URL", "WC_CONFIG_DIR", "XDG_CONFIG_HOME", "WC_KEYSTORE", "WC_PRIVATE_KEY", "WC_PASSWORD"],
    ...["WC_PASSWORD_FILE", "WC_MCP_KEY", "WC_DOMAIN", "WC_CLOCK", "WC_OPERATOR", "RPC_URL"],
    ...["DEPLOYMENT", "DATA_DIR"],
  ];
  const empty = Object.fromEntries(names.map((name) => [name, ""]));
  expect(read(empty)).toEqual(read());
});
