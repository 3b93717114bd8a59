/** Commands that wait for a contract and for its payout. */

import { secondsOf } from "@working-contracts/client/connect";
import type { Settlement } from "@working-contracts/client/index";
import type { Command } from "commander";
import type { Context } from "../context.js";
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
    .description("wait until an ended contract is paid out")
    .option("--timeout <duration>", "maximum time to wait", "5m")
    .action(async (id: string, { timeout }: { timeout: string }, command: Command) => {
      const context = contextOf(command);
      const agent = await context.agent();
      const settlement = await agent.waitForPayout(id, {
        timeoutMs: secondsOf(timeout) * 1000,
        intervalMs: POLL_MS,
        onChange: ({ status }) => context.out.progress(`${id} is ${status}`),
      });
      context.out.result(settlement, () => settlementText(settlement));
    });
}

function settlementText({ status, ending, legs }: Settlement): string {
  const rows = legs.map(({ name, to, address, amount, state }) => [name, to, address ?? "", amount, state]);
  return `${status}, ended by ${ending}\n${table(["payment", "to", "address", "amount", "state"], rows)}`;
}
