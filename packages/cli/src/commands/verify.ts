/** `wcontract verify`: checks every response of the service against the chain. */
import { readFileSync } from "node:fs";
import type { Agent } from "@working-contracts/client/index";
import { parseDeployment } from "@working-contracts/protocol/deployment";
import type { Command } from "commander";
import { type Address, createPublicClient, http } from "viem";
import type { Context } from "../context.js";
import { UsageError } from "../exit-codes.js";
import { plain, table } from "../output.js";
import { plainIfAllowed } from "../references.js";
import { type ApiAnswers, type Comparison, compare } from "../verify/compare.js";
import { readEscrow } from "../verify/read-chain.js";
import { rebuild } from "../verify/rebuild.js";

/** The two sides are read one after the other, so a change in between shows as a difference until the next try. */
const TRIES = 4;
const PAUSE_MS = 1500;

class DifferenceError extends Error {}

export function addVerifyCommand(program: Command, contextOf: (command: Command) => Context): void {
  program
    .command("verify <id>")
    .description(
      "rebuild a contract from the chain alone and compare it with the API; exits with 1 on a difference",
    )
    .action(async (given: string, _: unknown, command: Command) => {
      const context = contextOf(command);
      const id = given.toLowerCase() as Address;
      const rows = await compareUntilEqual(context, id);
      const differences = rows.filter(({ equal }) => !equal).length;
      context.out.result({ id, equal: differences === 0, fields: rows }, () => textOf(rows));
      if (differences > 0)
        throw new DifferenceError(`${differences} of ${rows.length} fields differ from the chain`);
    });
}

async function compareUntilEqual({ settings, agent, out }: Context, id: Address): Promise<Comparison[]> {
  const { rpcUrl, deploymentPath } = settings;
  if (rpcUrl === undefined) throw new UsageError("verify needs --rpc-url or RPC_URL.");
  if (deploymentPath === undefined) throw new UsageError("verify needs --deployment or DEPLOYMENT.");
  const deployment = parseDeployment(readFileSync(deploymentPath, "utf8"), deploymentPath);
  const publicClient = createPublicClient({ transport: http(rpcUrl, { batch: true }), ccipRead: false });
  const reader = await agent();
  for (let attempt = 1; ; attempt++) {
    const escrow = await readEscrow(publicClient, { id, deployment });
    const rows = compare(id, escrow, rebuild(escrow), await ask(reader, id));
    if (attempt === TRIES || rows.every(({ equal }) => equal)) return rows;
    out.progress("differences found: reading both sides again");
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

async function ask(agent: Agent, id: string): Promise<ApiAnswers> {
  const [contract, terms, settlement] = await Promise.all([
    agent.get(id),
    agent.terms(id),
    agent.settlement(id),
  ]);
  const [delivery, supplementaryMaterials] = await Promise.all([
    plainIfAllowed(agent, id, "delivery"),
    plainIfAllowed(agent, id, "supplementaryMaterials"),
  ]);
  return { contract, terms, settlement, delivery, supplementaryMaterials };
}

function textOf(rows: readonly Comparison[]): string {
  const cell = (value: unknown): string => {
    const text = plain(typeof value === "string" ? value : JSON.stringify(value)).replaceAll("\n", " ");
    return text.length > 44 ? `${text.slice(0, 41)}...` : text;
  };
  return table(
    ["", "field", "chain", "api"],
    rows.map(({ field, chain, api, equal }) => [equal ? "=" : "DIFFERS", field, cell(chain), cell(api)]),
  );
}
