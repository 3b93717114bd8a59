/** The operator's commands: what the service keeps out of its API. */
import { complaintList, complaintResolve } from "./operator/complaints.js";
import { rotate } from "./operator/master-key.js";
import { OperatorError } from "./operator/settings.js";

const USAGE = `Usage: npm run operator -- <command>

  complaint list [--status pending|upheld|dismissed] [--contract <id>] [--limit <number>]
  complaint resolve <complaint id> upheld|dismissed [--note "..."]
  master-key rotate

Settings, as environment variables:
  DATABASE_URL     the service's database          (optional where npm start is running on this machine)
  MASTER_KEY       master key from now on          (master-key rotate)
  MASTER_KEYS_OLD  earlier ones, separated by commas (master-key rotate)

To rotate the master key without an outage:
  1. Restart every process with the new key added to MASTER_KEYS_OLD: from here on it can be read.
  2. Restart every process with MASTER_KEY=<new> and MASTER_KEYS_OLD=<old>.
  3. Run master-key rotate with the same settings, again where it was stopped, until it reports nothing left.
  4. Restart without MASTER_KEYS_OLD, and destroy the old key.`;

const COMMANDS: Record<string, (args: string[]) => Promise<void>> = {
  "complaint list": complaintList,
  "complaint resolve": complaintResolve,
  "master-key rotate": rotate,
};

const [group = "", verb = "", ...args] = process.argv.slice(2);
const command = Object.hasOwn(COMMANDS, `${group} ${verb}`) ? COMMANDS[`${group} ${verb}`] : undefined;
if (command === undefined) {
  console.error(USAGE);
  process.exit(1);
}
try {
  await command(args);
} catch (error) {
  const isUsage = (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS") === true;
  console.error(error instanceof OperatorError || isUsage ? (error as Error).message : error);
  process.exitCode = 1;
}
