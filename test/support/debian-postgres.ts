/** A Postgres of the machine's own packages: only those contain `pg_dump`. */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createDatabase } from "../../src/db/client.js";
import { freePort } from "../../tools/local/ports.js";
import { installPackage } from "./debian.js";

const INSTALLED = "/usr/lib/postgresql";
const TOOLS = ["initdb", "pg_ctl", "postgres", "pg_dump", "pg_restore"];
const findTools = () =>
  (existsSync(INSTALLED) ? readdirSync(INSTALLED) : [])
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(INSTALLED, version, "bin"))
    .find((path) => TOOLS.every((tool) => existsSync(join(path, tool))));

/** The folder of its programs. Undefined without the package, which is installed only in CI: it would start a server for good. */
export function postgresTools(): string | undefined {
  if (process.env.CI && findTools() === undefined) installPackage("postgresql");
  return findTools();
}

export type DebianPostgres = Awaited<ReturnType<typeof startDebianPostgres>>;

/** Starts a server with these databases on a free port. */
export async function startDebianPostgres(bin: string, databases: readonly string[]) {
  const dir = mkdtempSync(join(tmpdir(), "postgres-"));
  const data = join(dir, "data");
  const port = await freePort();
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  // Postgres refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  const options = { cwd: dir, ...user };
  /** Runs one of its programs as the user of the server, in `dir`; returns the output. */
  const run = (tool: string, args: readonly string[]): string =>
    execFileSync(join(bin, tool), args, { ...options, encoding: "utf8", stdio: "pipe" });
  const urlOf = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`;
  chmodSync(dir, 0o755);
  mkdirSync(data);
  if (user.uid !== undefined) for (const path of [dir, data]) chownSync(path, user.uid, user.gid);
  run("initdb", ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync", data]);
  const flags = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=200`;
  const start = ["-w", "-D", data, "-l", join(dir, "log"), "-o", flags, "start"];
  execFileSync(join(bin, "pg_ctl"), start, { ...options, stdio: "ignore" });
  const { pool } = createDatabase(urlOf("postgres"), { maxConnections: 1 });
  for (const name of databases) await pool.query(`create database ${name}`);
  await pool.end();
  return {
    /** For files of a test. */
    dir,
    urlOf,
    run,
    /** Stops the server and removes `dir`. */
    stop(): void {
      if (existsSync(join(data, "postmaster.pid"))) run("pg_ctl", ["-D", data, "-m", "fast", "stop"]);
      rmSync(dir, { recursive: true });
    },
  };
}
