/** Commands for a contract's parties and Backup Agents. */
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { secondsOf } from "@working-contracts/client/connect";
import { ifAllowed } from "@working-contracts/client/errors";
import {
  type Agent,
  ConnectionError,
  type Contract,
  type Draft,
  type Duration,
  type Outcome,
  type ReferenceField,
  ServiceError,
  type Settlement,
  type StatusPattern,
  UnreadableReference,
} from "@working-contracts/client/index";
import { toHex } from "@working-contracts/protocol/hex";
import { OUTCOMES } from "@working-contracts/protocol/outcomes";
import { STATUSES, type Status } from "@working-contracts/protocol/status";
import { type Command, Option } from "commander";
import type { Context } from "../context.js";
import { exitCodeOf, UsageError } from "../errors.js";
import { readNamed } from "../files.js";
import { contractOf, definedOf } from "../mcp/results.js";
import { describeContract, fields, indented, oneLine, pasted, plain, table } from "../terminal.js";

type ContextOf = (command: Command) => Context;

type PostOptions = Record<"title" | "task" | "price", string> &
  Record<"match" | "withdrawal" | "delivery" | "review", Duration> &
  Partial<Record<"worker" | "client" | "materials", string> & Record<"listing" | "onChain", boolean>> & {
    criterion: string[];
  };

/** Actions that need only the contract, with their past participle. */
const ACTIONS = [
  ["accept", "accept a contract: pay the Worker Stake, or the price of a listing", "accepted"],
  ["decline", "decline a direct award or a reserved listing", "declined"],
  ["approve", "accept the delivery; the worker is paid", "approved"],
  ["dispute", "reject the delivery: pay the Dispute Bond", "disputed"],
  ["withdraw", "abandon the work, at the cost of part of the stake", "withdrawn"],
  ["cancel", "cancel a contract that no one has accepted", "cancelled"],
] as const;

const POLL_MS = 500;
const collect = (value: string, earlier: string[]): string[] => [...earlier, value];

/** Adds the commands that need the service: to post, find, perform, judge and settle contracts. */
export function addContractCommands(program: Command, contextOf: ContextOf): void {
  for (const add of [addPost, addReads, addActions, addVotes, addStakes, addWaits]) add(program, contextOf);
}

function addPost(program: Command, contextOf: ContextOf): void {
  program
    .command("post")
    .description("post a contract and pay its price (for a listing: the Worker Stake) into its escrow")
    .requiredOption("--title <text>")
    .requiredOption("--task <text>", "full description, plain text or Markdown")
    .requiredOption(
      "--criterion <text>",
      "acceptance criterion; repeat the option for up to ten",
      collect,
      [],
    )
    .requiredOption("--price <amount>", "price in the stablecoin; also authorizes paying it")
    .option("--worker <address>", "award it directly to this worker")
    .option("--listing", "offer work: you are the worker and pay the stake")
    .option("--client <address>", "with --listing: reserve it for this Buyer")
    .option("--materials <reference>", "hash or URI of supporting data; it is encrypted")
    .option("--on-chain", "send your own transaction after the quote; needs gas and an RPC URL")
    .option("--match <duration>", "time from now to accept", "1d")
    .option("--withdrawal <duration>", "time from now in which the worker may withdraw", "2d")
    .option("--delivery <duration>", "time from now to deliver", "3d")
    .option("--review <duration>", "time from now to approve or dispute", "4d")
    .action(async (options: PostOptions, command: Command) => {
      const context = contextOf(command);
      const agent = await context.agent({ stablecoin: options.price });
      const draft = await draftOf(agent, options);
      if (options.onChain === true) return postAlone(context, agent, draft);
      showContract(context, await context.untilOutcome(() => agent.create(draft)), "posted");
    });
}

function addReads(program: Command, contextOf: ContextOf): void {
  program
    .command("list")
    .description("list contracts, newest first")
    .option(
      "--status <statuses>",
      "comma-separated statuses, prefixes (settled-*) or groups (open, active, closed)",
    )
    .option("--client <address>")
    .option("--worker <address>")
    .option("--search <text>", "words that title or description must have")
    .addOption(new Option("--limit <count>", "maximum number of contracts").default("50"))
    .option("--cursor <cursor>", "cursor of the next page")
    .action(async (options: Record<string, string | undefined>, command: Command) => {
      const context = contextOf(command);
      const { status, client, worker, search, limit, cursor } = options;
      const query = { status, client, worker, q: search, limit: Number(limit), cursor };
      const page = await (await context.agent()).list(definedOf(query));
      context.out.result(page, () => listText(page.items, page.nextCursor));
    });
  program
    .command("show <id>")
    .description("show a contract and the references that you may read")
    .option("--copy <file>", "read the delivery from a copy that its party sent you, not from the service")
    .action(async (id: string, { copy }: { copy?: string }, command: Command) => {
      const context = contextOf(command);
      if (copy !== undefined) {
        const agent = await context.reader({ isAlone: true });
        const delivery = await agent.readReference(id, "delivery", { copy: readNamed(copy) });
        return context.out.result({ id, plain: { delivery } }, () => `delivery: ${indented(delivery ?? "")}`);
      }
      const agent = await context.agent();
      const contract = await contractOf(agent, id);
      const { references, unopened } = await readable(agent, contract);
      context.out.result({ ...contract, plain: references, unopened }, () =>
        [
          describeContract(contract),
          ...Object.entries(references).map(([field, text]) => `\n${field}: ${indented(text)}`),
          ...(unopened === undefined ? [] : [`\ndelivery: ${oneLine(unopened)}`]),
        ].join("\n"),
      );
    });
}

function addActions(program: Command, contextOf: ContextOf): void {
  for (const [name, description, done] of ACTIONS) {
    program
      .command(`${name} <id>`)
      .description(description)
      .action(async (id: string, _: unknown, command: Command) => {
        const context = contextOf(command);
        const agent = await context.agent();
        showContract(context, { ...(await context.untilOutcome(() => agent[name](id))), id }, done);
      });
  }
  program
    .command("deliver <id> <reference>")
    .description("deliver a hash or URI, sealed to the client's key if it has published one")
    .option("--sealed", "refuse to deliver if the service could read the reference")
    .option("--no-sealed", "do not seal it")
    .action(async (id: string, reference: string, { sealed }: { sealed?: boolean }, command: Command) => {
      const context = contextOf(command);
      const options = sealed === undefined ? {} : { seal: sealed };
      const delivered = await (await context.agent()).deliver(id, reference, options);
      showContract(context, { ...delivered, id }, "delivered");
    });
  program
    .command("share <id>")
    .description("share a sealed delivery with the Backup Agents of its dispute")
    .option("--follow", "continue with those who ask later, in all your disputes")
    .option("--save <folder>", "keep a copy for each, to send to it if the service withholds the share")
    .action(
      async (id: string, { follow = false, save }: { follow?: boolean; save?: string }, command: Command) => {
        const context = contextOf(command);
        const agent = await context.agent();
        const onFailure = ({ message }: Error) => context.out.progress(`not shared: ${message}`);
        const onShare = (contract: string, recipient: string, copy: string): void => {
          if (save === undefined) return;
          mkdirSync(save, { recursive: true });
          writeFileSync(join(save, `${contract}-${recipient}.json`), copy);
        };
        const shared = await agent.shareDelivery(id, { onFailure, onShare });
        context.out.result({ shared }, () => `shared with ${shared.length} Backup Agents`);
        if (follow) await agent.shareDeliveries({ onFailure, onShare });
      },
    );
}

function addVotes(program: Command, contextOf: ContextOf): void {
  program
    .command("vote <id> <outcomes...>")
    .description(
      `vote on a disputed contract: ${OUTCOMES.join(", ")} for each criterion; pay the bond, wait until voting has ended, and open the vote`,
    )
    .option("--entrust", "let the service open your vote; it can read it before the tally")
    .option("--no-wait", "do not wait: open it later, with open-votes")
    .action(
      async (
        id: string,
        words: string[],
        options: { entrust?: boolean; wait: boolean },
        command: Command,
      ) => {
        const { entrust = false, wait } = options;
        const context = contextOf(command);
        const outcomes = words.map(outcomeOf);
        const agent = await context.agent();
        const own = entrust ? { entrust, salt: toHex(randomBytes(32)) } : {};
        const opening = `wcontract on-chain open-vote ${id} ${own.salt}`;
        // Before the payment: whatever becomes of the response, only this salt opens the vote.
        if (entrust)
          context.out.progress(`if this command casts the vote, you can open it with:\n${opening}`);
        const { votes, salt } = await context
          .untilOutcome(() => agent.vote(id, outcomes, own))
          .catch((error) => {
            const canBeCast = error.payment !== undefined || [3, 5].includes(exitCodeOf(error));
            const advice = "If you have voted, only you can open the vote: run `wcontract open-votes`.";
            if (canBeCast && !entrust) error.hint = [error.hint, advice].filter(Boolean).join(" ");
            throw error;
          });
        context.out.result({ votes, salt }, () =>
          [
            table(
              ["criterion", "vote"],
              votes.map(({ criterionIndex, vote }) => [String(criterionIndex), vote ?? ""]),
            ),
            entrust
              ? `The service opens it. If it has not done so an hour after voting ends, open it yourself, within a day of that end:\n${opening}`
              : "Only you can open it, within a day of the end of voting.",
          ].join("\n"),
        );
        if (entrust) return;
        if (!wait)
          return context.out.progress(
            "Run `wcontract open-votes` then, or now: it waits for the end of voting.",
          );
        context.out.progress(
          "waiting until voting has ended, to open the vote; if this command is interrupted, run `wcontract open-votes`",
        );
        const opened = await agent
          .openVotes({ id, onFailure: reportTo(context) })
          .catch(({ message }: Error) => {
            throw new Error(`voted, but not opened: ${message}. Run \`wcontract open-votes\``);
          });
        context.out.progress(opened.length === 0 ? "nothing was left to open" : "opened the vote");
      },
    );
  program
    .command("open-votes")
    .description("wait until voting has ended, then open each of your sealed votes")
    .option("--now", "open only those that can be opened now")
    .action(async ({ now = false }: { now?: boolean }, command: Command) => {
      const context = contextOf(command);
      let failure: Error | undefined;
      // With a node, nothing that the service answers may keep a vote closed.
      const agent = await context.agent().catch(async (error: Error) => {
        if (context.settings.rpcUrl === undefined) throw error;
        failure = error;
        const reader = await context.reader({ isAlone: true }).catch(() => Promise.reject(error));
        context.out.progress(`not signed in: ${error.message}`);
        return reader;
      });
      const onOpened = (id: string) => context.out.progress(`opened the vote on ${id}`);
      const opened = await agent.openVotes({ wait: !now, onOpened, onFailure: reportTo(context) });
      // The service may know of other votes.
      if (now && failure !== undefined) throw failure;
      context.out.result({ opened }, () => `${opened.length} votes opened`);
    });
}

const reportTo =
  ({ out }: Context) =>
  ({ message }: Error, id?: string): void =>
    out.progress(id === undefined ? message : `${id}: ${message}`);

function addStakes(program: Command, contextOf: ContextOf): void {
  program
    .command("stake [amount]")
    .description("stake protocol tokens as a Backup Agent; by default the required amount")
    .action(async (amount: string | undefined, _: unknown, command: Command) => {
      const context = contextOf(command);
      const agent = await context.agent(amount === undefined ? {} : { tokens: amount });
      const stake = await context.untilOutcome(() => agent.stake(amount));
      context.out.result(stake, () => fields(Object.entries(stake).map(([k, v]) => [k, String(v)] as const)));
    });
  program
    .command("unstake")
    .description("withdraw the whole stake; the service pays it out after the delay")
    .action(async (_: unknown, command: Command) => {
      const context = contextOf(command);
      const stake = await (await context.agent()).unstake();
      context.out.result(stake, () => `releasable at ${stake.releasableAt}`);
    });
}

function addWaits(program: Command, contextOf: ContextOf): void {
  program
    .command("watch <id>")
    .description("wait until a contract has a status; print each change to stderr")
    .option("--until <statuses>", "comma-separated statuses or prefixes", "settled-*,cancelled-*")
    .option("--timeout <duration>", "maximum time to wait", "30d")
    .action(async (id: string, { until, timeout }: { until: string; timeout: string }, command: Command) => {
      const pattern = statusPattern(until);
      const { out, agent } = contextOf(command);
      const contract = await (await agent()).waitFor(id, pattern, {
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

/** Posts with a transaction of one's own, and waits a while until the service shows the contract. */
async function postAlone(context: Context, agent: Agent, draft: Draft): Promise<void> {
  const { out, settings } = context;
  const planned = await agent.dryRun(({ create }) => create(draft));
  if (planned?.terms === undefined) throw new Error("The service quoted no contract.");
  const { payTo: id, terms } = planned;
  const own = await context.onChain({ stablecoin: String(draft.budgetOrPrice) });
  const transactionHash = await context.untilOutcome(() => own.create(terms));
  out.progress(`created ${id} by ${transactionHash}`);
  const find = () =>
    agent.get(id).catch((error: Error) => {
      if (error instanceof ServiceError && error.code === "not_found") return null;
      throw error;
    });
  const contract = await agent
    .waitUntil(find, (found) => found !== null, { timeoutMs: settings.patienceMs })
    .catch(() => null);
  if (contract !== null) return showContract(context, { ...contract, id }, "posted");
  out.result({ id, transactionHash }, () => `posted: ${id}, which the service does not show yet`);
}

/** With the id that was acted on: the service can name another contract. */
function showContract({ out }: Context, contract: Contract, done: string): void {
  out.result(contract, () => `${done}: ${contract.id} is ${contract.status}`);
}

async function draftOf(agent: Agent, options: PostOptions): Promise<Draft> {
  const { match, withdrawal, delivery, review } = options;
  return {
    title: options.title,
    taskDescription: options.task,
    acceptanceCriteria: options.criterion,
    // A string, because a JSON number could lose digits.
    budgetOrPrice: options.price,
    ...definedOf({
      worker: options.worker,
      client: options.client,
      supplementaryMaterials: options.materials,
    }),
    ...(options.listing === true && { initiator: "worker" as const }),
    ...(await agent.deadlines({ match, withdrawal, delivery, review })),
  };
}

/** Decrypts the references for which the caller is entitled to a key, and says why a delivery cannot be opened. */
async function readable(agent: Agent, { id, delivery, client }: Contract) {
  const references: Record<string, string> = {};
  const read = async (field: ReferenceField): Promise<void> => {
    const text = await ifAllowed(() => agent.readReference(id, field));
    if (text !== null) references[field] = text;
    else if (field === "delivery" && delivery !== null && client === agent.address)
      throw new UnreadableReference(
        "The delivery cannot be opened: it was not sealed to you, or is withheld",
      );
  };
  await read("supplementaryMaterials");
  const failure = await read("delivery").catch((error: Error) => {
    // The service can have a break. A fault of the delivery must not hide the contract.
    if (error instanceof ServiceError || error instanceof ConnectionError) throw error;
    return error;
  });
  // A node that cannot say, too, must not cost a Dispute Bond.
  const advice =
    failure instanceof UnreadableReference
      ? "Try again; if it still cannot be opened and you are the Client, dispute it before the review deadline"
      : "This does not mean that the delivery is bad: try again, or use another node";
  return { references, unopened: failure ? `${failure.message}. ${advice}` : undefined };
}

function listText(contracts: readonly Contract[], nextCursor: string | null): string {
  const rows = contracts.map((one) => [
    pasted(one.id) ?? "(no address)",
    one.status,
    one.budgetOrPrice,
    plain(one.title),
  ]);
  const cursor = pasted(nextCursor);
  const more = cursor === undefined ? [] : [`Next page: --cursor ${cursor}`];
  return [table(["id", "status", "price", "title"], rows), ...more].join("\n");
}

function settlementText({ status, ending, legs }: Settlement): string {
  const rows = legs.map(({ name, to, address, amount, state }) => [name, to, address ?? "", amount, state]);
  return `${status}, ended by ${ending}\n${table(["payment", "to", "address", "amount", "state"], rows)}`;
}

/** Accepts `not-met`, which a shell takes without quotes. Throws UsageError for any other word. */
export function outcomeOf(word: string): Outcome {
  const found = OUTCOMES.find((outcome) => outcome === word.replace("-", " "));
  if (found === undefined)
    throw new UsageError(`${word} is not an outcome. Use one of ${OUTCOMES.join(", ")} (or not-met).`);
  return found;
}

/** Statuses and prefixes, separated by commas. Throws UsageError if no contract can have one: waiting would never end. */
export function statusPattern(text: string): StatusPattern {
  return text.split(",").map((one) => {
    const prefix = one.endsWith("*") ? one.slice(0, -1) : null;
    if (STATUSES.some((status) => (prefix === null ? status === one : status.startsWith(prefix))))
      return one as Status;
    throw new UsageError(
      `${one} is no status. Use one of ${STATUSES.join(", ")}, or a prefix such as settled-*.`,
    );
  });
}
