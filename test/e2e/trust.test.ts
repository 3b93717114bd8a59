/** An operator that holds the keys of the relayer and the owner attacks. The results are the table of docs/trust.md. */
import { readFileSync } from "node:fs";
import {
  delegationAbi,
  escrowAbi,
  protocolTokenAbi,
  registryAbi,
  relayAbi,
} from "@working-contracts/protocol/abi";
import { challengeText, FULL_PERMISSION } from "@working-contracts/protocol/challenge-text";
import {
  type Address,
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  keccak256,
  parseAbi,
  parseEther,
  parseEventLogs,
  stringToHex,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createSigningClient } from "../../src/chain/clients.js";
import { localAccount } from "../../tools/local/network.js";
import type { Agent } from "../support/agent.js";
import { mined, walletOf } from "../support/chain.js";
import { created, delivered, disputed, laterThan, matched } from "../support/contracts.js";
import { openWorld, type World } from "../support/world.js";

/** The errors that stop the attacks. */
const errors = parseAbi([
  "error NotParty(address caller, address party)",
  "error NotEligible(address agent, uint256 staked, uint256 required)",
  "error DelegationOutdated(uint40 issuedAt, uint40 revokedAt)",
  "error InvalidDelegationSignature(address agent)",
]);
const noPayment = { validAfter: 0n, validBefore: 0n, nonce: zeroHash, signature: "0x" } as const;
const rows: string[][] = [];
interface Escrow {
  id: Address;
}
let delegations = 0;

let world: World;
/** Holds a key that the Relay's owner made a signer: sends whatever it likes. */
let thief: Awaited<ReturnType<typeof walletOf>>;
let client: Agent;
let worker: Agent;

beforeAll(async () => {
  world = await openWorld();
  const account = privateKeyToAccount(generatePrivateKey());
  thief = await walletOf(world, { account, address: account.address });
  const relay = { address: world.deployment.relay, abi: relayAbi } as const;
  const args = [account.address, true] as const;
  await mined(world, await owner().writeContract({ ...relay, functionName: "setSigner", args }));
});
afterAll(async () => {
  console.log(table());
  await world.close();
});

beforeEach(async () => {
  [client, worker] = [await world.newAgent({ usd: "5000" }), await world.newAgent({ usd: "5000" })];
});

const owner = () =>
  createSigningClient({
    rpcUrl: world.info.rpcUrl,
    chain: world.publicClient.chain,
    account: localAccount(0),
  });

function table(): string {
  const head = [
    "Attack",
    "Agent that never acted through the operator",
    "Agent that delegated",
    "After it revoked",
  ];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

/** Relays a call with the stolen key. The result is the error that stopped it, or "succeeds". */
async function relayed(target: Address, data: Hex): Promise<string> {
  const hash = await thief.writeContract({
    address: world.deployment.relay,
    abi: relayAbi,
    functionName: "execute",
    args: [[{ target, gasLimit: 400_000, data }]],
    gas: 1_000_000n,
  });
  const { logs } = await world.publicClient.waitForTransactionReceipt({ hash });
  const [failed] = parseEventLogs({ abi: relayAbi, eventName: "OperationFailed", logs });
  return failed === undefined
    ? "succeeds"
    : decodeErrorResult({ abi: errors, data: failed.args.reason }).errorName;
}

async function revoke(agent: Agent): Promise<void> {
  const wallet = await walletOf(world, agent);
  const delegation = { address: world.deployment.delegation, abi: delegationAbi } as const;
  const args = [agent.address, world.deployment.relay] as const;
  await mined(world, await wallet.writeContract({ ...delegation, functionName: "revoke", args }));
}

/** Delegates as a sign-in does; the result is the call that registers it. */
async function delegationOf(agent: Agent): Promise<Hex> {
  const { domain, relay, factory, chainId } = world.deployment;
  // Later than a revocation in the same second.
  const issuedAt = (await world.chainNow()) + ++delegations;
  const fields = { nonce: keccak256(generatePrivateKey()), issuedAt, expiresAt: issuedAt + 300 };
  const delegation = { agent: agent.address, operator: relay, ...FULL_PERMISSION, ...fields };
  const message = challengeText({ domain, factory, chainId, ...delegation });
  const signature = await agent.account.signMessage({ message });
  const args = [delegation, signature] as const;
  return encodeFunctionData({ abi: delegationAbi, functionName: "register", args });
}

const call = (functionName: "approve" | "withdraw" | "cancel"): Hex =>
  encodeFunctionData({ abi: escrowAbi, functionName });
const garbage = encodeFunctionData({
  abi: escrowAbi,
  functionName: "deliver",
  args: [keccak256(stringToHex("garbage")), zeroHash, 0],
});

/** Each needs an escrow of its own, because a success ends the state that it needs. */
const ATTACKS = {
  "cancel in the Client's name": {
    prepare: async () => ({
      ...(await created<Escrow>(world, client)),
      victim: client,
      data: call("cancel"),
    }),
  },
  "deliver garbage in the Worker's name": {
    prepare: async () => ({
      ...(await matched<Escrow>(world, { client, worker })),
      victim: worker,
      data: garbage,
    }),
  },
  "withdraw in the Worker's name": {
    prepare: async () => ({
      ...(await matched<Escrow>(world, { client, worker })),
      victim: worker,
      data: call("withdraw"),
    }),
  },
} as const;

describe("an operator with a stolen Relay key", () => {
  test.each(Object.entries(ATTACKS))("can %s only while the agent delegates", async (name, { prepare }) => {
    const { id, victim, data } = await prepare();
    const never = await relayed(id, data);
    const register = await delegationOf(victim);
    expect(await relayed(world.deployment.delegation, register)).toBe("succeeds");
    const delegated = await relayed(id, data);
    const next = await prepare();
    await revoke(victim);
    const revoked = await relayed(next.id, data);
    const replayed = await relayed(world.deployment.delegation, register);
    rows.push([name, `\`${never}\``, delegated, `\`${revoked}\`; replay of the delegation \`${replayed}\``]);
    expect([never, delegated, revoked, replayed]).toEqual([
      "NotParty",
      "succeeds",
      "NotParty",
      "DelegationOutdated",
    ]);
  });

  test("can approve in the Client's name only while it delegates", async () => {
    const [first, second] = [
      await delivered<Escrow>(world, { client, worker }),
      await delivered<Escrow>(world, { client, worker }),
    ];
    const never = await relayed(first.id, call("approve"));
    expect(await relayed(world.deployment.delegation, await delegationOf(client))).toBe("succeeds");
    const delegated = await relayed(first.id, call("approve"));
    await revoke(client);
    const revoked = await relayed(second.id, call("approve"));
    rows.push(["approve in the Client's name", `\`${never}\``, delegated, `\`${revoked}\``]);
    expect([never, delegated, revoked]).toEqual(["NotParty", "succeeds", "NotParty"]);
  });

  test("cannot forge a delegation", async () => {
    const forged = await delegationOf({ ...worker, account: privateKeyToAccount(generatePrivateKey()) });
    const result = await relayed(world.deployment.delegation, forged);
    rows.push(["register a delegation that the agent did not sign", `\`${result}\``, "", `\`${result}\``]);
    expect(result).toBe("InvalidDelegationSignature");
  });
});

describe("an operator with the token owner's key", () => {
  test("cannot pack the jury of a contract that is already matched", async () => {
    const { id } = await matched<Escrow>(world, { client, worker });
    const { address } = thief.account;
    const { protocolToken, registry } = world.deployment;
    const amount = parseEther("1000");
    const token = { address: protocolToken, abi: protocolTokenAbi } as const;
    await mined(
      world,
      await owner().writeContract({ ...token, functionName: "grant", args: [address, amount] }),
    );
    await mined(
      world,
      await thief.writeContract({ ...token, functionName: "approve", args: [registry, amount] }),
    );
    const stake = { address: registry, abi: registryAbi, functionName: "stake" } as const;
    await mined(world, await thief.writeContract({ ...stake, args: [address, amount, noPayment] }));
    await laterThan(world, new Date((await world.chainNow()) * 1000).toISOString());
    await worker.post(`/v1/contracts/${id}/delivery`, { delivery: "ipfs://output" });
    await client.pay(`/v1/contracts/${id}/dispute`);

    const vote = {
      abi: [...escrowAbi, ...errors],
      functionName: "vote",
      args: [address, keccak256("0x01"), noPayment],
    } as const;
    await expect(
      world.publicClient.simulateContract({ address: id, ...vote, account: thief.account }),
    ).rejects.toThrow("NotEligible");
    const later = await disputed<Escrow>(world, { client, worker });
    await expect(
      world.publicClient.simulateContract({ address: later.id, ...vote, account: thief.account }),
    ).rejects.not.toThrow("NotEligible");
    rows.push(["pack the jury of a matched contract", "`NotEligible`", "`NotEligible`", "`NotEligible`"]);
  });
});

test("docs/trust.md shows these results", () => {
  const text = readFileSync(new URL("../../docs/trust.md", import.meta.url), "utf8");
  for (const row of table().split("\n")) expect(text).toContain(row);
});
