/** Commands that wait for a contract and for its payout. */

import { secondsOf } from "@working-contracts/client/connect";
import { claimOnChain, type Settlement, settleOnChain } from "@working-contracts/client/index";
import type { Command } from "commander";
import type { Context } from "../context.js";
import { ownTransactions } from "../context.js";
import { table } from "../terminal.js";

const POLL_MS = 500;

interface WaitOptions {
  until: string;
  timeout: string;
}

export function addFollowCommands(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("watch <id>")
    .description("wait until a contract has a status; print each change to stderr")
    .option("--until <statuses>", "comma-separated statuses or prefixes", "settled-*,cancelled-*")
    .option("--timeout <duration>", "maximum time to wait", "30d")
    .action(async (id: string, { until, timeout }: WaitOptions, command: Command) => {
      const { out, agent } = contextOf(command);
      const contract = await (await agent()).waitFor(id, until.split(","), {
        timeoutMs: secondsOf(timeout) * 1000,
        intervalMs: POLL_MS,
        onChange: ({ status }) => out.progress(`${id} is ${status}`),
      });
      out.result(contract, () => contract.status);
    });

  program
    .command("settle <id>")
    .description(
      "wait until an ended contract is paid out; with --on-chain, settle it yourself without the service",
    )
    .option("--on-chain", "send settle() yourself; needs gas and an RPC URL")
    .option("--claim", "with --on-chain: also claim your own jury payout")
    .option("--timeout <duration>", "maximum time to wait", "5m")
    .action(async (id: string, options: SettleOptions, command: Command) => {
      const context = contextOf(command);
      if (options.onChain === true) return settleAlone(context, { id, options });
      const agent = await context.agent();
      const settlement = await agent.waitForPayout(id, {
        timeoutMs: secondsOf(options.timeout) * 1000,
        intervalMs: POLL_MS,
        onChange: ({ status }) => context.out.progress(`${id} is ${status}`),
      });
      context.out.result(settlement, () => settlementText(settlement));
    });
}

interface SettleOptions {
  onChain?: boolean;
  claim?: boolean;
  timeout: string;
}

/** Needs the chain alone: no service, and no sign-in. */
async function settleAlone(
  { settings, out }: Context,
  { id, options }: { id: string; options: SettleOptions },
): Promise<void> {
  const own = await ownTransactions(settings);
  const settledBy = await settleOnChain(id, own);
  out.progress(settledBy === null ? `${id} is settled already` : `settled by ${settledBy}`);
  const claimedBy = options.claim === true ? await claimOnChain(id, own.account.address, own) : null;
  if (claimedBy !== null) out.progress(`claimed by ${claimedBy}`);
  const hashes = [settledBy, claimedBy].filter((hash) => hash !== null);
  out.result({ id, settledBy, claimedBy }, () => [`${id} is settled`, ...hashes].join("\n"));
}

function settlementText({ status, ending, legs }: Settlement): string {
  const rows = legs.map(({ name, to, address, amount, state }) => [name, to, address ?? "", amount, state]);
  return `${status}, ended by ${ending}\n${table(["payment", "to", "address", "amount", "state"], rows)}`;
}
