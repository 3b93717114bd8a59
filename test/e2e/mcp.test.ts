/** The MCP server as language models use it: the official client, over stdio, on the real service. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { Contract, Settlement, Stake, Vote } from "@working-contracts/client/index";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "../../src/root.js";
import { clockOptions } from "../support/chain-time.js";
import { openWorld, type World } from "../support/world.js";
import { openMiddle, openUsers, type User, type Users, WC } from "./cli-actors.js";

const READ_TOOLS = [
  "get_contract",
  "get_network",
  "get_profile",
  "get_protocol",
  "get_settlement",
  "get_stake",
  "get_terms",
  "get_workload",
  "list_checkpoints",
  "list_complaints",
  "list_contracts",
  "list_votes",
  "read_reference",
  "wait_for_status",
];
const WRITES = ["--allow-writes", "--max-per-call", "60", "--max-per-day", "120", "--max-stake", "1000"];
const WORK = {
  title: "Summarise a paper",
  taskDescription: "One page.",
  acceptanceCriteria: ["One page", "Names the method"],
  price: "50",
};

/** A tool's error. */
interface Refusal {
  error: string;
  message: string;
  resumeId?: string;
}

interface Model {
  user: User;
  client: Client;
  /** The response's data. Throws if the tool returns an error. */
  call<T = unknown>(tool: string, input?: Record<string, unknown>): Promise<T>;
  refusal(tool: string, input?: Record<string, unknown>): Promise<Refusal>;
  close(): Promise<void>;
}

let world: World;
let users: Users;
const opened: Model[] = [];

beforeAll(async () => {
  world = await openWorld();
  users = openUsers(world);
});
afterAll(async () => {
  await Promise.all(opened.map((model) => model.close()));
  users.close();
  await world.close();
});

async function openModel(args: readonly string[], given?: User): Promise<Model> {
  const user = given ?? (await users.newUser());
  const client = new Client({ name: "a-model", version: "1.0.0" });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [WC, "mcp", ...args],
    env: { ...getDefaultEnvironment(), ...user.env, NODE_OPTIONS: clockOptions() },
    cwd: user.cwd,
    stderr: "pipe",
  });
  await client.connect(transport, { timeout: 100_000 });
  const send = async (tool: string, input: Record<string, unknown>) => {
    const result = await client.callTool({ name: tool, arguments: input }, undefined, { timeout: 100_000 });
    const [{ text = "" } = {}] = result.content as { text?: string }[];
    return { isError: result.isError === true, text };
  };
  const model: Model = {
    user,
    client,
    async call<T>(tool: string, input = {}) {
      const { isError, text } = await send(tool, input);
      if (isError) throw new Error(`${tool}: ${text}`);
      return JSON.parse(text) as T;
    },
    async refusal(tool, input = {}) {
      const { isError, text } = await send(tool, input);
      if (!isError) throw new Error(`${tool} was not refused: ${text}`);
      return JSON.parse(text) as Refusal;
    },
    close: () => client.close(),
  };
  opened.push(model);
  return model;
}

const namesOf = async ({ client }: Model): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name).toSorted();

describe("the tools", () => {
  it("only read, unless writing is allowed", async () => {
    const reader = await openModel([]);
    expect(await namesOf(reader)).toEqual(READ_TOOLS);
    const { tools } = await reader.client.listTools();
    expect(tools.every(({ annotations }) => annotations?.readOnlyHint === true)).toBe(true);

    expect(await reader.call("get_network")).toMatchObject({ you: reader.user.address });
    expect(await reader.call("get_protocol")).toMatchObject({ parameters: { protocolFee: 0.05 } });
    expect(await reader.call("list_contracts", { limit: 1 })).toMatchObject({ items: expect.any(Array) });
    expect(await reader.call("get_stake")).toMatchObject({ staked: "0.0" });
    const unknown = { id: `0x${"00".repeat(20)}` };
    expect(await reader.refusal("get_contract", unknown)).toMatchObject({ error: "not_found" });
    await expect(reader.call("post_contract", WORK)).rejects.toThrow("post_contract");
    expect(await world.usdOf(reader.user.address)).toBe(100_000_000n);
  });

  it("that write are marked as such, and pay nothing unless an amount is allowed", async () => {
    const model = await openModel(["--allow-writes"]);
    const documented = readFileSync(join(ROOT, "docs/mcp.md"), "utf8")
      .split("## Caps")[0]
      ?.match(/(?<=`)[a-z]+_?[a-z_]*(?=`[,.])/g);
    expect(await namesOf(model)).toEqual(documented?.toSorted());
    const { tools } = await model.client.listTools();
    const writing = tools.filter(({ name }) => !READ_TOOLS.includes(name));
    expect(writing.map(({ name }) => name)).toContain("post_contract");
    expect(writing.every(({ annotations }) => annotations?.destructiveHint === true)).toBe(true);
    expect(await model.call("set_profile", { displayName: "Reader" })).toMatchObject({
      displayName: "Reader",
    });
    for (const [tool, input] of [
      ["post_contract", WORK],
      ["stake", {}],
    ] as const) {
      expect(await model.refusal(tool, input)).toMatchObject({ error: "SpendingLimitError" });
    }
    expect(await world.usdOf(model.user.address)).toBe(100_000_000n);
  });
});

describe("a contract by tools", () => {
  it("goes from post to payout, and another through a dispute", async () => {
    const [client, worker, juror] = await Promise.all([
      users.newUser({ usd: "200" }).then((user) => openModel(WRITES, user)),
      openModel(WRITES),
      openModel(WRITES),
    ]);
    await world.grantTokens(juror.user.address, 1000);
    expect(await juror.call<Stake>("stake")).toMatchObject({ staked: "1000.0", eligible: true });

    const { id } = await client.call<Contract>("post_contract", {
      ...WORK,
      supplementaryMaterials: "ipfs://paper",
    });
    const found = await worker.call<{ items: Contract[] }>("list_contracts", {
      status: "open",
      client: client.user.address,
    });
    expect(found.items.map((contract) => contract.id)).toEqual([id]);
    expect(await worker.call("accept_contract", { id })).toMatchObject({ status: "matched" });
    const materials = { id, field: "supplementaryMaterials" };
    expect(await worker.call("read_reference", materials)).toBe("ipfs://paper");
    await worker.call("deliver", { id, reference: "ipfs://summary" });
    expect(await client.call("read_reference", { id, field: "delivery" })).toBe("ipfs://summary");
    await client.call("approve_delivery", { id });
    expect(await worker.call("wait_for_status", { id, status: "settled-*" })).toMatchObject({
      status: "settled-all-met",
    });
    const { legs } = await client.call<Settlement>("get_settlement", { id });
    expect(legs).toContainEqual(
      expect.objectContaining({ name: "worker-pay", address: worker.user.address, amount: "47.5" }),
    );

    const disputed = await client.call<Contract>("post_contract", WORK);
    const at = { id: disputed.id };
    await worker.call("accept_contract", at);
    await worker.call("deliver", { ...at, reference: "ipfs://summary" });
    expect(await client.call("dispute_delivery", at)).toMatchObject({ disputeBond: "2.5" });
    const { votes } = await juror.call<{ votes: Vote[] }>("vote", { ...at, outcomes: ["met", "not met"] });
    expect(votes.map(({ vote }) => vote)).toEqual(["met", "not met"]);
    await world.increaseTime(86_400);
    await expect.poll(() => juror.call("open_votes", {}), { timeout: 60_000 }).toEqual([disputed.id]);

    expect(await worker.call("wait_for_status", { ...at, status: "settled-*" })).toMatchObject({
      status: "settled-partial",
      criteriaMet: ["met", "not met"],
    });
    const { items } = await client.call<{ items: Vote[] }>("list_votes", at);
    expect(items.map(({ bondOutcome }) => bondOutcome)).toEqual(["returned", "returned"]);
  });
});

describe("the caps", () => {
  const caps = (perCall: string, perDay: string) => [
    ...["--allow-writes", "--max-per-call", perCall, "--max-per-day", perDay],
  ];

  /** Contracts to accept, at a stake of 2.5 each. */
  async function newContracts(count: number): Promise<{ id: string }[]> {
    const client = await users.newUser({ usd: String(50 * count) });
    const post = ["post", "--title", "x", "--task", "x", "--criterion", "x", "--price", "50"];
    return Promise.all(Array.from({ length: count }, () => client.json<{ id: string }>(...post)));
  }

  it("reject a payment above the call's or the day's limit before anything is signed, and a new process remembers", async () => {
    const [first, second, third] = (await newContracts(3)) as [
      { id: string },
      { id: string },
      { id: string },
    ];
    let signed = 0;
    const middle = await openMiddle(world, {
      loses: (headers) => {
        if (headers["payment-signature"] !== undefined) signed++;
        return false;
      },
    });
    const user = await users.newUser({ env: { WC_URL: middle.url } });

    const perCall = await openModel(caps("2.49", "100"), user);
    expect(await perCall.refusal("accept_contract", first)).toMatchObject({
      error: "SpendingLimitError",
      message: expect.stringContaining("2.49 per call"),
    });
    await perCall.close();
    expect(signed).toBe(0);

    // Two calls at once, with room for one.
    const perDay = await openModel(caps("2.5", "4.99"), user);
    const outcomes = await Promise.allSettled([
      perDay.call<Contract>("accept_contract", first),
      perDay.call<Contract>("accept_contract", second),
    ]);
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    await perDay.close();
    expect(signed).toBe(1);

    const restarted = await openModel(caps("2.5", "4.99"), user);
    expect(await restarted.refusal("accept_contract", third)).toMatchObject({
      error: "SpendingLimitError",
      message: expect.stringContaining("4.99 per day"),
    });
    await restarted.close();
    expect(signed).toBe(1);
    expect(await world.usdOf(user.address)).toBe(97_500_000n);
    middle.close();
  });

  it("are charged once if a slow call is abandoned and the same one is repeated", async () => {
    const middle = await openMiddle(world, {
      async loses(headers) {
        if (headers["payment-signature"] !== undefined) await delay(8_000);
        return false;
      },
    });
    const user = await users.newUser({ usd: "100", env: { WC_URL: middle.url } });
    const model = await openModel(caps("50", "100"), user);
    const call = { name: "post_contract", arguments: WORK };
    await expect(model.client.callTool(call, undefined, { timeout: 6_000 })).rejects.toThrow("timed out");
    const { id } = await model.call<Contract>("post_contract", WORK);
    expect(await model.call("get_contract", { id })).toMatchObject({ status: "created" });
    await model.close();
    middle.close();
    expect(await world.usdOf(user.address)).toBe(50_000_000n);
  });

  it("are charged once if a response is lost and the same call is resumed", async () => {
    const [contract] = await newContracts(1);
    let lost = 0;
    const middle = await openMiddle(world, {
      loses: (headers) => headers["payment-signature"] !== undefined && lost++ === 0,
    });
    const user = await users.newUser({ env: { WC_URL: middle.url } });
    const model = await openModel(["--patience", "0s", ...caps("2.5", "2.5")], user);
    const { error, resumeId } = await model.refusal("accept_contract", contract);
    expect(error).toBe("OutcomeUnknown");
    expect(await model.call("resume_call", { resumeId })).toMatchObject({ status: "matched" });
    expect((await model.refusal("resume_call", { resumeId })).message).toContain("No unfinished call");
    await model.close();
    middle.close();
    expect(await world.usdOf(user.address)).toBe(97_500_000n);
  });
});
