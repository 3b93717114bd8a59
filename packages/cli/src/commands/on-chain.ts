/** `wcontract on-chain`: each action with a transaction of one's own, without the service. */
import type { Checkpoint, onChain } from "@working-contracts/client/index";
import type { Hex } from "@working-contracts/protocol/types";
import type { Command } from "commander";
import type { Context } from "../context.js";
import { UsageError } from "../errors.js";
import { readNamed } from "../files.js";
import { outcomeOf } from "./contracts.js";

type OnChain = Awaited<ReturnType<typeof onChain>>;

const ACTIONS: Record<
  string,
  [description: string, act: (own: OnChain, ...args: string[]) => Promise<string | null>]
> = {
  "accept <id>": ["pay the Worker Stake, or the price of a listing", (own, id) => own.accept(id)],
  "decline <id>": ["decline a direct award or a reserved listing", (own, id) => own.decline(id)],
  "cancel <id>": ["cancel a contract that no one has accepted", (own, id) => own.cancel(id)],
  "withdraw <id>": ["abandon the work, at the cost of part of the stake", (own, id) => own.withdraw(id)],
  "approve <id>": ["accept the delivery; the worker is paid", (own, id) => own.approve(id)],
  "dispute <id>": ["reject the delivery: pay the Dispute Bond", (own, id) => own.dispute(id)],
  "draw <id>": ["draw the panel of a dispute", (own, id) => own.draw(id)],
  "open-vote <id> [salt]": [
    "open your sealed vote, once voting has ended and for a day; an entrusted one needs its salt",
    (own, id, salt) => own.openVote(id, salt as Hex | undefined),
  ],
  "tally <id>": ["count the votes of a dispute", (own, id) => own.tally(id)],
  "settle <id>": ["pay the parties of an ended contract", (own, id) => own.settle(id)],
  "claim <id>": [
    "claim your bond, your share of slashed bonds and your reward for a vote",
    (own, id) => own.claim(id),
  ],
  "claim-deferred <id>": [
    "claim a payout that the token refused to transfer",
    (own, id) => own.claimDeferred(id),
  ],
  unstake: ["start to withdraw your whole stake", (own) => own.unstake()],
  "withdraw-stake": ["pay out your stake, 48 hours later", (own) => own.withdrawStake()],
  revoke: ["revoke everything that you left to the operator", (own) => own.revoke()],
  "cancel-signatures [contract]": [
    "invalidate your unused signed actions: for a contract, or without one for your stake",
    (own, id) => own.cancelSignatures(id),
  ],
};

interface DeliverOptions {
  checkpoints?: string;
  outcomes?: string[];
}

/** Checkpoints as the service returns them, one or a list, or the hashes of all. Throws UsageError on anything else. */
export function checkpointsIn(path: string): (Checkpoint | Hex)[] {
  const text = readNamed(path).trim();
  const lines = text.split("\n");
  if (lines.every((line) => /^0x[0-9a-f]{64}$/.test(line))) return lines as Hex[];
  try {
    const parsed = JSON.parse(text);
    // A checkpoint, too, has `data`: its metrics.
    const found = [isCheckpoint(parsed) || Array.isArray(parsed) ? parsed : parsed.data].flat();
    if (found.every(isCheckpoint) && !parsed.nextCursor) return found;
  } catch {}
  throw new UsageError(`${path} contains neither all checkpoints as JSON nor one hash per line.`);
}

const isCheckpoint = (one: Partial<Checkpoint> | undefined): boolean =>
  one?.contractId !== undefined && one.merkleRoot !== undefined;

/** Adds `on-chain` and its commands, which throw UsageError without a node. */
export function addOnChainCommands(program: Command, contextOf: (command: Command) => Context): void {
  const group = program
    .command("on-chain")
    .description("act with your own transactions, without the service: needs gas and an RPC URL");
  const run = async (
    context: Context,
    act: (own: OnChain) => Promise<string | null>,
    consent?: { tokens: string },
  ): Promise<void> => {
    const own = await context.onChain(consent);
    const hash = await context.untilOutcome(() => act(own));
    context.out.result({ transactionHash: hash }, () => hash ?? "done already");
  };
  for (const [usage, [description, act]] of Object.entries(ACTIONS)) {
    group
      .command(usage)
      .description(description)
      .action(function (this: Command, ...given: unknown[]) {
        const args = given.filter((one) => typeof one === "string");
        return run(contextOf(this), (own) => act(own, ...args));
      });
  }
  group
    .command("deliver <id> <reference>")
    .description("commit to a reference; give it to the Client in another way")
    .option(
      "--checkpoints <file>",
      "all that you submitted: their JSON, or one hash a line, as the MCP server keeps them",
    )
    .option("--outcomes <outcomes...>", "one for each criterion, if criteria are computed")
    .action((id: string, reference: string, options: DeliverOptions, command: Command) =>
      run(contextOf(command), (own) =>
        own.deliver(id, reference, {
          checkpoints: options.checkpoints === undefined ? [] : checkpointsIn(options.checkpoints),
          outcomes: (options.outcomes ?? []).map(outcomeOf),
        }),
      ),
    );
  group
    .command("vote <id> <outcomes...>")
    .description("vote on a disputed contract and pay the bond; open the vote once voting has ended")
    .action((id: string, words: string[], _: unknown, command: Command) =>
      run(contextOf(command), (own) => own.vote(id, words.map(outcomeOf))),
    );
  group
    .command("stake <amount>")
    .description("stake protocol tokens as a Backup Agent")
    .action((amount: string, _: unknown, command: Command) =>
      run(contextOf(command), (own) => own.stake(amount), { tokens: amount }),
    );
  group
    .command("register")
    .description(
      "sign and register a delegation that leaves nothing to the operator, or everything with `--operator all`",
    )
    .action((_: unknown, command: Command) => {
      const context = contextOf(command);
      return run(context, (own) => own.register(context.settings.operator));
    });
}
