/** The operator's command line: actions that the API does not offer. */
import { complaintList, complaintResolve } from "./operator/complaints.js";
import { grant } from "./operator/grant.js";
import { rotate } from "./operator/master-key.js";
import { OperatorError } from "./operator/settings.js";

const USAGE = `Usage: npm run operator -- <command>

  complaint list [--status pending|upheld|dismissed] [--contract <id>] [--limit <number>]
  complaint resolve <complaint id> upheld|dismissed [--note "..."]
  master-key rotate
  grant <address> <tokens>

Settings, as environment variables:
  DATABASE_URL     the service's database          (optional while npm start is running on this machine)
  MASTER_KEY       the new master key              (master-key rotate)
  MASTER_KEYS_OLD  earlier ones, comma-separated   (master-key rotate)
  OWNER_PRIVATE_KEY, RPC_URL, DEPLOYMENT
                   key of the protocol token's owner, the chain and its deployment file (grant; set all three,
                   or none while npm start is running on this machine)

To rotate the master key without downtime:
  1. Add the new key to MASTER_KEYS_OLD and restart every process, so that all of them can read it.
  2. Restart every process with MASTER_KEY=<new> and MASTER_KEYS_OLD=<old>.
  3. Run master-key rotate with the same settings. If it is interrupted, repeat it until it reports nothing left.
  4. Restart without MASTER_KEYS_OLD, and destroy the old key.`;

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = {
  "complaint list": complaintList,
  "complaint resolve": complaintResolve,
  "master-key rotate": rotate,
  grant,
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
  const isUsage = (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS") === true;
  console.error(error instanceof OperatorError || isUsage ? (error as Error).message : error);
  process.exitCode = 1;
}
