/** An operator that has turned malicious: it relays what it likes, and reads the database with the master key. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { delegationAbi, escrowAbi, registryAbi, relayAbi } from "@working-contracts/protocol/abi";
import { challengeText, FULL_PERMISSION, type Permission } from "@working-contracts/protocol/signatures";
import { compactDecrypt } from "jose";
import {
  type Address,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseEventLogs,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect } from "vitest";
import { deliveryOf, encryptWithStoredKey, readReferenceKey } from "../../src/features/references/vault.js";
import { encodeBatch } from "../../src/relayer/transaction.js";
import { ROOT } from "../../src/root.js";
import { createConcurrencyLimit } from "../../src/scheduling.js";
import type { Agent } from "./agent.js";
import { mined, ownersWallet, setSignerCall, walletOf } from "./chain.js";
import type { World } from "./world.js";

const MASTER_KEY = `0x${"11".repeat(32)}` as const;
/** The errors that stop attacks. */
const errors = [...escrowAbi, ...registryAbi, ...delegationAbi];

export async function openOperator(world: World) {
  const { relay, domain, factory, chainId } = world.deployment;
  const account = privateKeyToAccount(generatePrivateKey());
  const wallet = await walletOf(world, { account, address: account.address });
  const owner = ownersWallet(world);
  await mined(world, await owner.sendTransaction(setSignerCall(relay, account.address, true)));
  let delegations = 0;
  const inTurn = createConcurrencyLimit(1);
  /** A stored delivery, and what opens it. */
  const deliveryIn = async (contractId: string) => {
    const { rows } = await world.pool.query<{ encrypted: string; worker: string }>(
      "select encrypted, worker from app.delivery where contract_id = $1",
      [contractId],
    );
    const [{ encrypted, worker } = { encrypted: "", worker: "" }] = rows;
    const field = deliveryOf(worker);
    return { contractId, field, masterKey: MASTER_KEY, masterKeysOld: [], encrypted };
  };

  return {
    /** Owner of Relay, factory and token. */
    owner,
    wallet,

    /** Relays a call. The result is the error that stopped it, or "succeeds". */
    async relayed(target: Address, data: Hex): Promise<string> {
      const batch = encodeBatch([{ target, gasLimit: 400_000, data }]);
      const hash = await inTurn(() => wallet.sendTransaction({ to: relay, data: batch, gas: 1_000_000n }));
      const { logs } = await world.publicClient.waitForTransactionReceipt({ hash });
      const [failed] = parseEventLogs({ abi: relayAbi, eventName: "OperationFailed", logs });
      if (failed === undefined) return "succeeds";
      return `\`${decodeErrorResult({ abi: errors, data: failed.args.reason }).errorName}\``;
    },

    /** Signs in as an agent does; the result is the call that registers what it leaves to an operator, by default this one. */
    async delegationOf(
      agent: Pick<Agent, "address" | "account">,
      permission: Permission = FULL_PERMISSION,
      { secondsAhead = 0, operator = relay }: { secondsAhead?: number; operator?: Address } = {},
    ): Promise<Hex> {
      // Later than a revocation in the same second.
      const issuedAt = (await world.chainNow()) + secondsAhead + ++delegations;
      const fields = { nonce: keccak256(generatePrivateKey()), issuedAt, expiresAt: issuedAt + 300 };
      const granted = { agent: agent.address, operator, ...permission, ...fields };
      const message = challengeText({ domain, factory, chainId, ...granted });
      const signature = await agent.account.signMessage({ message });
      return encodeFunctionData({ abi: delegationAbi, functionName: "register", args: [granted, signature] });
    },

    /** Decrypts a stored delivery. */
    async readDelivery(id: string): Promise<string> {
      const { encrypted, ...input } = await deliveryIn(id);
      const key = await readReferenceKey(world.db, input);
      const { plaintext } = await compactDecrypt(encrypted, key as Uint8Array);
      return new TextDecoder().decode(plaintext);
    },

    /** Puts another delivery in the place of a stored one. */
    async replaceDelivery(id: string, reference: string): Promise<void> {
      const input = await deliveryIn(id);
      const encrypted = await world.db.transaction((tx) => encryptWithStoredKey(tx, { ...input, reference }));
      await world.pool.query("update app.delivery set encrypted = $2 where contract_id = $1", [
        id,
        encrypted,
      ]);
    },
  };
}

/** A Markdown table. */
export function markdownOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** docs/trust.md shows the rows of this table, and no others. */
export function expectShown(table: string): void {
  const text = readFileSync(join(ROOT, "docs/trust.md"), "utf8");
  const [head, ...rows] = table.split("\n");
  const [shown] = text.split(`${head}\n`)[1]?.split("\n\n") ?? [];
  expect(shown?.split("\n").sort()).toEqual(rows.sort());
}
