/** The operator's command line: actions that the API does not offer. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { protocolTokenAbi } from "@working-contracts/protocol/abi";
import { formatDecimal, parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { visibleJson } from "@working-contracts/protocol/json";
import { isoTime } from "@working-contracts/protocol/time";
import { type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import { encodeFunctionData, parseEventLogs } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createChainClients, createSigningClient } from "../chain/clients.js";
import { sendTransaction } from "../chain/deploy.js";
import { readDeployment, verifyChain } from "../chain/deployment.js";
import { ConfigError, parseDatabaseUrl, parseMasterKeys, parseOwnerSettings } from "../config.js";
import { createDatabase, type Database, hasSqlState, SQLSTATE } from "../db/client.js";
import { referenceKey, webhook } from "../db/schema.js";
import { selected } from "../db/statements.js";
import {
  COMPLAINT_STATUSES,
  type ComplaintRow,
  findComplaints,
  resolveComplaint,
  toComplaint,
} from "../features/complaints/routes.js";
import { describeError } from "../logger.js";
import { type MasterKeys, masterKeyId, unwrapSecret, wrapSecret } from "../master-key.js";
import { ROOT } from "../root.js";

const USAGE = `Usage: npm run operator -- <command>

  complaint list [--status pending|upheld|dismissed] [--contract <id>] [--limit <number>]
  complaint resolve <complaint id> upheld|dismissed [--note "..."]
  master-key rotate
  grant <address> <tokens>          announces the grant; on test networks it is minted at once
  mint-grant <id>                   mints a grant that was announced seven days ago

Settings, as environment variables:
  DATABASE_URL     the service's database          (optional while npm start is running on this machine)
  MASTER_KEY       the new master key              (master-key rotate)
  MASTER_KEYS_OLD  earlier ones, comma-separated   (master-key rotate)
  OWNER_PRIVATE_KEY, RPC_URL, DEPLOYMENT
                   key of the protocol token's owner, the chain and its deployment file (grants; set all three,
                   or none while npm start is running on this machine)

To rotate the master key without downtime (the indexer has none and keeps running):
  1. Add the new key to MASTER_KEYS_OLD and restart every API, relayer and worker, so that all of them can read it.
  2. Restart them with MASTER_KEY=<new> and MASTER_KEYS_OLD=<old>.
  3. Run master-key rotate with the settings of step 2. If it is interrupted, repeat it until it reports nothing left.
  4. Restart them without MASTER_KEYS_OLD, and run master-key rotate again, also without it. The database no longer
     needs the old key once this run says that MASTER_KEYS_OLD is empty and that MASTER_KEY reads every secret. If it
     says "Done", MASTER_KEYS_OLD was still set. Earlier backups still need the old key: keep it apart from them until
     the last one is deleted.
A container gets new settings only when it is recreated: docs/runbook.md has the commands.`;

const LIST_LIMIT = "100";
/** The limit of a complaint's own text. The note is just as public. */
const NOTE_LENGTH = 4_096;

/** The command cannot be carried out; the message is for the operator. */
class OperatorError extends Error {
  override readonly name = "OperatorError";
}

/** `boundTo`: primary key of the table, under the names in the headers of its secrets; `kind` precedes it in errors. */
const WRAPPED_SECRETS = [
  {
    table: referenceKey,
    boundTo: { contractId: referenceKey.contractId, field: referenceKey.field },
    wrapped: referenceKey.wrappedKey,
    kind: "",
  },
  { table: webhook, boundTo: { webhook: webhook.id }, wrapped: webhook.wrappedSecret, kind: "webhook " },
];

const REWRAPPED_AT_ONCE = 200;

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = {
  "complaint list": complaintList,
  "complaint resolve": complaintResolve,
  "master-key rotate": rotateMasterKey,
  grant,
  "mint-grant": mintGrant,
};

const words = process.argv.slice(2);
const length = [2, 1].find((count) => Object.hasOwn(COMMANDS, words.slice(0, count).join(" ")));
const command = length === undefined ? undefined : COMMANDS[words.slice(0, length).join(" ")];
if (command === undefined) {
  console.error(USAGE);
  process.exit(1);
}
try {
  await command(words.slice(length));
} catch (error) {
  console.error(lineOf(error));
  process.exitCode = 1;
}

/** Says what to change; of an error from elsewhere, only what is safe to print. */
function lineOf(error: unknown): string {
  const isUsage = (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS") === true;
  if (error instanceof OperatorError || error instanceof ConfigError || isUsage)
    return (error as Error).message;
  if (hasSqlState(error, SQLSTATE.undefinedTable))
    return "DATABASE_URL: this database has no tables of the service; run npm run migrate first";
  const { name, message } = describeError(error);
  return `${name}: ${message}`;
}

/** `complaint list`: prints one JSON object per line, oldest first. */
async function complaintList(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      status: { type: "string" },
      contract: { type: "string" },
      limit: { type: "string", default: LIST_LIMIT },
    },
  });
  const { contract, limit } = values;
  const status = COMPLAINT_STATUSES.find((known) => known === values.status);
  if (values.status !== undefined && status === undefined) {
    throw new OperatorError(`--status must be one of: ${COMPLAINT_STATUSES.join(", ")}`);
  }
  if (!/^[1-9]\d{0,5}$/.test(limit))
    throw new OperatorError("--limit must be a whole number from 1 to 999999");
  const filter = { status, contractId: contract?.toLowerCase(), limit: Number(limit) };
  const rows = await withDatabase((db) => findComplaints(db, filter));
  for (const row of rows) print(row);
}

/** `complaint resolve <id> upheld|dismissed`: prints the complaint as it is now public. */
async function complaintResolve(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args,
    options: { note: { type: "string" } },
    allowPositionals: true,
  });
  const [id, status, ...rest] = positionals;
  const note = values.note?.trim() || null;
  if (id === undefined || (status !== "upheld" && status !== "dismissed") || rest.length > 0) {
    throw new OperatorError('Usage: complaint resolve <complaint id> upheld|dismissed [--note "..."]');
  }
  if (note !== null && [...note].length > NOTE_LENGTH) {
    throw new OperatorError(`--note must have at most ${NOTE_LENGTH} characters`);
  }
  const { ok, complaint } = await withDatabase((db) => resolveComplaint(db, { id, status, note }));
  if (complaint === undefined) throw new OperatorError(`Complaint not found: ${id}`);
  if (ok) return print(complaint);
  throw new OperatorError(
    `The complaint was ${complaint.status} at ${complaint.resolvedAt?.toISOString()}. A resolution is public and is never replaced.`,
  );
}

function print(row: ComplaintRow): void {
  console.log(visibleJson({ ...toComplaint(row), filedBy: row.filedBy }));
}

/** `grant <address> <tokens>`: grants protocol tokens as the token's owner, and prints when they can be minted. */
async function grant(args: string[]): Promise<void> {
  const { positionals } = parseArgs({ args, allowPositionals: true });
  const [address = "", tokens = "", ...rest] = positionals;
  const amount = parseDecimal(tokens, TOKEN_DECIMALS);
  if (!/^0x[0-9a-fA-F]{40}$/.test(address) || amount === null || amount === 0n || rest.length > 0) {
    throw new OperatorError("Usage: grant <address> <tokens>");
  }
  const to = address.toLowerCase() as `0x${string}`;
  const { publicClient, wallet, token } = await openToken();
  const owner = await publicClient.readContract({ ...token, functionName: "owner" });
  if (owner.toLowerCase() !== wallet.account.address.toLowerCase()) {
    throw new OperatorError(
      `OWNER_PRIVATE_KEY: belongs to ${wallet.account.address}, but the token's owner is ${owner}`,
    );
  }
  const call = { ...token, functionName: "grant", args: [to, amount] } as const;
  await publicClient.simulateContract({ ...call, account: wallet.account });
  const nonce = await publicClient.getTransactionCount({ address: owner, blockTag: "pending" });
  console.error(
    `Sending the transaction with nonce ${nonce} of ${owner}. If no result follows, look it up before you repeat the command: that would be a second grant.`,
  );
  const included = await sendTransaction(
    { walletClient: wallet, publicClient },
    { to: token.address, data: encodeFunctionData(call), nonce },
  );
  const { transactionHash: hash, logs } = await included();
  const [announced] = parseEventLogs({ abi: protocolTokenAbi, eventName: "GrantAnnounced", logs });
  const what = `${formatDecimal(amount, TOKEN_DECIMALS)} protocol tokens (${hash})`;
  if (announced === undefined) return console.log(`${to} has received ${what}.`);
  const { id, mintableAt } = announced.args;
  console.log(`Announced to ${to}: ${what}. From ${isoTime(mintableAt)} on, run mint-grant ${id}.`);
}

/** `mint-grant <id>`: mints an announced grant. */
async function mintGrant(args: string[]): Promise<void> {
  const [id = "", ...rest] = args;
  if (!/^[1-9]\d{0,15}$/.test(id) || rest.length > 0) throw new OperatorError("Usage: mint-grant <id>");
  const { publicClient, wallet, token } = await openToken();
  const call = { ...token, functionName: "mintGrant", args: [BigInt(id)] } as const;
  await publicClient.simulateContract({ ...call, account: wallet.account }).catch(() => {
    throw new OperatorError(`Grant ${id} cannot be minted: it is unknown, already minted, or not due yet.`);
  });
  const hash = await wallet.writeContract(call);
  const { status } = await publicClient.waitForTransactionReceipt({ hash });
  if (status !== "success") throw new OperatorError(`The transaction ${hash} reverted; nothing was minted.`);
  console.log(`Grant ${id} is minted (${hash}).`);
}

async function openToken() {
  const { rpcUrl, deploymentPath, ownerPrivateKey } = ownerSettings();
  const deployment = readDeployment(deploymentPath);
  const { chainId, protocolToken } = deployment;
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  await verifyChain({ publicClient, deployment });
  const wallet = createSigningClient({ rpcUrl, chain, account: privateKeyToAccount(ownerPrivateKey) });
  return { publicClient, wallet, token: { address: protocolToken, abi: protocolTokenAbi } as const };
}

/** The three settings. If none is set, those of the local network that `npm start` runs. */
function ownerSettings() {
  const { RPC_URL, DEPLOYMENT, OWNER_PRIVATE_KEY } = process.env;
  const local = RPC_URL || DEPLOYMENT || OWNER_PRIVATE_KEY ? null : localNetwork();
  try {
    return local ?? parseOwnerSettings(process.env);
  } catch (error) {
    const { message } = error as ConfigError;
    throw new OperatorError(`${message}\n(or run npm start in another terminal and set none of them)`);
  }
}

/** `master-key rotate`: rewraps every key. If some cannot be rewrapped, it fails after rewrapping the others. */
async function rotateMasterKey(args: string[]): Promise<void> {
  if (args.length > 0) throw new OperatorError("master-key rotate takes no arguments");
  const keys = parseMasterKeys(process.env);
  const current = masterKeyId(keys.masterKey);
  const { rewrapped, failed } = await withDatabase((db) => rewrapSecrets(db, keys));
  if (failed.length === 0) {
    if (keys.masterKeysOld.length === 0) {
      throw new OperatorError(
        `MASTER_KEYS_OLD: is empty, so nothing was rotated. MASTER_KEY (id ${current}) reads every secret of this database; earlier backups need the key of their time.`,
      );
    }
    const old = keys.masterKeysOld.map(masterKeyId).filter((id) => id !== current);
    console.log(
      `Done: rewrapped ${rewrapped}, nothing left under another master key than MASTER_KEY (id ${current}).\n` +
        `No longer needed by this database: MASTER_KEYS_OLD (id ${old.join(", ")}).`,
    );
    return;
  }
  throw new OperatorError(
    [
      `${failed.length} keys could not be rewrapped. Keep the master keys that they need:`,
      ...failed.map((line) => `  ${line}`),
    ].join("\n"),
  );
}

/**
 * Rewraps with the current master key what former ones wrapped; `failed` are the secrets that stay as they are, with the
 * reason. It can be stopped, resumed and run twice at once: it changes only what still holds the wrapped value that was read.
 */
async function rewrapSecrets(
  db: Database,
  { masterKey, masterKeysOld }: MasterKeys,
): Promise<{ rewrapped: number; failed: string[] }> {
  const currentId = masterKeyId(masterKey);
  const failed: string[] = [];
  let rewrapped = 0;
  for (const { table, boundTo, wrapped, kind } of WRAPPED_SECRETS) {
    const columns = listed(Object.values(boundTo));
    let last = Object.keys(boundTo).map(() => "");
    for (;;) {
      const { rows } = await db.execute<{ [name: string]: string; before: string; keyId: string }>(sql`
        select ${selected({ before: wrapped, keyId: table.masterKeyId, ...boundTo })} from ${table}
        where ${table.masterKeyId} <> ${currentId} and (${columns}) > (${listed(last)})
        order by ${columns} limit ${REWRAPPED_AT_ONCE}`);
      if (rows.length === 0) break;
      for (const { before, keyId, ...at } of rows) {
        last = Object.values(at);
        const name = kind + last.join(" ");
        const old = masterKeysOld.find((key) => masterKeyId(key) === keyId);
        const secret = old && (await unwrapSecret(before, { masterKey: old, boundTo: at }).catch(() => null));
        if (old === undefined) failed.push(`${name}: no master key with the id ${keyId} was given`);
        else if (!secret) failed.push(`${name}: the wrapped key is damaged`);
        else {
          const after = await wrapSecret(secret, { masterKey, boundTo: at });
          const { rowCount } = await db.execute(sql`
            update ${table} set ${sql.identifier(wrapped.name)} = ${after}, master_key_id = ${currentId}
            where (${columns}) = (${listed(last)}) and ${wrapped} = ${before}`);
          rewrapped += rowCount ?? 0;
        }
      }
      // Webhooks are too few to report progress.
      if (table === referenceKey) console.log(`Rewrapped so far: ${rewrapped}`);
    }
  }
  return { rewrapped, failed };
}

function listed(values: readonly (PgColumn | string)[]): SQL {
  const list = values.map((value) => sql`${value}`);
  return sql.join(list, sql`, `);
}

/**
 * Runs `work` on the service's database and always closes the connection. Statements have no time limit: a repeated or
 * final rotation looks at every secret in one.
 */
export async function withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T> {
  const { db, pool } = createDatabase(databaseUrl(), { maxConnections: 2, statementTimeoutMs: 0 });
  try {
    const connection = await pool.connect().catch(({ message }: Error) => {
      throw new OperatorError(`DATABASE_URL: cannot connect to the database (${message})`);
    });
    connection.release();
    return await work(db);
  } finally {
    await pool.end();
  }
}

/** Addresses of the network that `npm start` runs on this machine; null if none is running. */
function localNetwork(): (ReturnType<typeof parseOwnerSettings> & { databaseUrl: string }) | null {
  const path = join(process.env.DATA_DIR || join(ROOT, ".local"), "network.json");
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** DATABASE_URL, otherwise the database of the local network that `npm start` runs. */
function databaseUrl(): string {
  if (process.env.DATABASE_URL) return parseDatabaseUrl(process.env);
  const local = localNetwork();
  if (local !== null) return local.databaseUrl;
  throw new OperatorError("DATABASE_URL: is required (or run npm start in another terminal first)");
}
