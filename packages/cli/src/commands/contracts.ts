/** The commands of a contract's parties and Backup Agents. */

import type { Agent, Contract, Draft, Duration, Outcome } from "@working-contracts/client/index";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { type Command, Option } from "commander";
import type { Context } from "../context.js";
import { UsageError } from "../exit-codes.js";
import { describeContract, fields, plain, table } from "../output.js";
import { plainIfAllowed } from "../references.js";

interface PostOptions {
  title: string;
  task: string;
  criterion: string[];
  price: string;
  worker?: string;
  client?: string;
  listing?: boolean;
  materials?: string;
  match: Duration;
  withdrawal: Duration;
  delivery: Duration;
  review: Duration;
}

const collect = (value: string, earlier: string[]): string[] => [...earlier, value];

export function addContractCommands(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("post")
    .description("post a contract and pay its price (a listing: the Worker Stake) into its escrow")
    .requiredOption("--title <text>")
    .requiredOption("--task <text>", "full description, plain text or Markdown")
    .requiredOption("--criterion <text>", "acceptance criterion; repeat for up to ten", collect, [])
    .requiredOption("--price <amount>", "in the stablecoin; the consent to pay it, too")
    .option("--worker <address>", "award it directly to this worker")
    .option("--listing", "offer work: you are the worker, and pay the stake")
    .option("--client <address>", "with --listing: reserve it for this Buyer")
    .option("--materials <reference>", "hash or URI of supporting data; it is encrypted")
    .option("--match <duration>", "deadline to be accepted, from now", "1d")
    .option("--withdrawal <duration>", "until when the worker may withdraw", "2d")
    .option("--delivery <duration>", "deadline of the delivery", "3d")
    .option("--review <duration>", "deadline to approve or dispute", "4d")
    .action(async (options: PostOptions, command: Command) => {
      const context = contextOf(command);
      const agent = await context.agent({ stablecoin: options.price });
      const draft = await draftOf(agent, options);
      showContract(context, await context.toTheEnd(() => agent.create(draft)), "posted");
    });

  program
    .command("list")
    .description("list contracts, newest first")
    .option(
      "--status <statuses>",
      "status, prefix (settled-*) or group (open, active, closed); commas between",
    )
    .option("--client <address>")
    .option("--worker <address>")
    .option("--search <text>", "in title and description")
    .addOption(new Option("--limit <count>", "at most so many").default("50"))
    .option("--cursor <cursor>", "next page")
    .action(async (options: Record<string, string | undefined>, command: Command) => {
      const context = contextOf(command);
      const { status, client, worker, search, limit, cursor } = options;
      const query = { status, client, worker, q: search, limit: Number(limit), cursor };
      const given = Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
      const page = await (await context.agent()).list(given);
      context.out.result(page, () => listText(page.items, page.nextCursor));
    });

  program
    .command("show <id>")
    .description("show a contract, and what of its references you may read")
    .action(async (id: string, _: unknown, command: Command) => {
      const context = contextOf(command);
      const agent = await context.agent();
      const contract = await agent.get(id);
      const references = await readable(agent, contract);
      context.out.result({ ...contract, plain: references }, () =>
        [
          describeContract(contract),
          ...Object.entries(references).map(([field, text]) => `\n${field}: ${plain(text)}`),
        ].join("\n"),
      );
    });

  const simple = (
    name: string,
    description: string,
    perform: (agent: Agent, id: string) => Promise<Contract>,
    done: string,
  ): void => {
    program
      .command(`${name} <id>`)
      .description(description)
      .action(async (id: string, _: unknown, command: Command) => {
        const context = contextOf(command);
        const agent = await context.agent();
        showContract(context, await context.toTheEnd(() => perform(agent, id)), done);
      });
  };
  simple(
    "accept",
    "take a contract: pay the Worker Stake, or a listing's price",
    (a, id) => a.accept(id),
    "accepted",
  );
  simple("decline", "say no to a direct award or a reserved listing", (a, id) => a.decline(id), "declined");
  simple("approve", "accept the delivery; the worker is paid", (a, id) => a.approve(id), "approved");
  simple("dispute", "reject the delivery: pay the Dispute Bond", (a, id) => a.dispute(id), "disputed");
  simple("withdraw", "give the work up, for a part of the stake", (a, id) => a.withdraw(id), "withdrawn");
  simple("cancel", "cancel a contract that nobody has accepted", (a, id) => a.cancel(id), "cancelled");

  program
    .command("deliver <id> <reference>")
    .description("deliver a hash or URI; it is encrypted for the client")
    .action(async (id: string, reference: string, _: unknown, command: Command) => {
      const context = contextOf(command);
      showContract(context, await (await context.agent()).deliver(id, reference), "delivered");
    });

  program
    .command("vote <id> <outcomes...>")
    .description(`judge a disputed contract: one of ${OUTCOMES.join(", ")} for each criterion; pay the bond`)
    .action(async (id: string, words: string[], _: unknown, command: Command) => {
      const context = contextOf(command);
      const outcomes = words.map(outcomeOf);
      const agent = await context.agent();
      const { votes, salt } = await context.toTheEnd(() => agent.vote(id, outcomes));
      context.out.result({ votes, salt }, () =>
        [
          table(
            ["criterion", "vote"],
            votes.map(({ criterionIndex, vote }) => [String(criterionIndex), vote ?? ""]),
          ),
          `Keep the salt: with it you can open your vote on chain should the service fail to.\n${salt}`,
        ].join("\n"),
      );
    });

  program
    .command("stake [amount]")
    .description("stake protocol tokens as a Backup Agent; by default as many as that takes")
    .action(async (amount: string | undefined, _: unknown, command: Command) => {
      const context = contextOf(command);
      const agent = await context.agent(amount === undefined ? {} : { tokens: amount });
      const stake = await context.toTheEnd(() => agent.stake(amount));
      context.out.result(stake, () => fields(Object.entries(stake).map(([k, v]) => [k, String(v)] as const)));
    });

  program
    .command("unstake")
    .description("withdraw the whole stake; it is paid back by itself")
    .action(async (_: unknown, command: Command) => {
      const context = contextOf(command);
      const stake = await (await context.agent()).unstake();
      context.out.result(stake, () => `paid back from ${stake.releasableAt} on`);
    });
}

function showContract({ out }: Context, contract: Contract, done: string): void {
  out.result(contract, () => `${done}: ${contract.id} is ${contract.status}`);
}

async function draftOf(agent: Agent, options: PostOptions): Promise<Draft> {
  const { match, withdrawal, delivery, review } = options;
  return {
    title: options.title,
    taskDescription: options.task,
    acceptanceCriteria: options.criterion,
    // Text, so that no digit is lost on the way.
    budgetOrPrice: options.price,
    ...(options.worker === undefined ? {} : { worker: options.worker }),
    ...(options.materials === undefined ? {} : { supplementaryMaterials: options.materials }),
    ...(options.listing === true ? { initiator: "worker" as const } : {}),
    ...(options.client === undefined ? {} : { client: options.client }),
    ...(await agent.deadlines({ match, withdrawal, delivery, review })),
  };
}

/** References in plain, as far as the caller is entitled to keys. */
async function readable(agent: Agent, { id }: Contract): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const field of ["supplementaryMaterials", "delivery"] as const) {
    const text = await plainIfAllowed(agent, id, field);
    if (text !== null) found[field] = text;
  }
  return found;
}

function listText(contracts: readonly Contract[], nextCursor: string | null): string {
  const rows = contracts.map(({ id, status, budgetOrPrice, title }) => [
    id,
    status,
    budgetOrPrice,
    plain(title),
  ]);
  const more = nextCursor === null ? [] : [`More: --cursor ${nextCursor}`];
  return [table(["id", "status", "price", "title"], rows), ...more].join("\n");
}

function outcomeOf(word: string): Outcome {
  const found = OUTCOMES.find((outcome) => outcome === word.replace("-", " "));
  if (found === undefined)
    throw new UsageError(`${word} is none of ${OUTCOMES.join(", ")} (not-met works, too).`);
  return found;
}
