/** An operator that holds the keys of the relayer and the owner attacks. The results are the table of docs/trust.md. */
import { readFileSync } from "node:fs";
import {
  delegationAbi,
  escrowAbi,
  protocolTokenAbi,
  registryAbi,
  relayAbi,
} from "@working-contracts/protocol/abi";
import { challengeText, FULL_PERMISSION, type Permission } from "@working-contracts/protocol/challenge-text";
import { actionTypedData } from "@working-contracts/protocol/signed-action";
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
  "error InvalidActionSignature(address agent)",
  "error WrongStatus(uint8 actual, uint8 expected)",
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
    "Agent that signs each action",
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

/** Signs in as an agent does; the result is the call that registers what it leaves to the operator. */
async function delegationOf(agent: Agent, permission: Permission = FULL_PERMISSION): Promise<Hex> {
  const { domain, relay, factory, chainId } = world.deployment;
  // Later than a revocation in the same second.
  const issuedAt = (await world.chainNow()) + ++delegations;
  const fields = { nonce: keccak256(generatePrivateKey()), issuedAt, expiresAt: issuedAt + 300 };
  const delegation = { agent: agent.address, operator: relay, ...permission, ...fields };
  const message = challengeText({ domain, factory, chainId, ...delegation });
  const signature = await agent.account.signMessage({ message });
  const args = [delegation, signature] as const;
  return encodeFunctionData({ abi: delegationAbi, functionName: "register", args });
}

/** The thief registers the strict sign-in as well, and attacks. */
async function attackedAfterStrictSignIn(id: Address, victim: Agent, data: Hex): Promise<string> {
  const register = await delegationOf(victim, { actions: 0, until: 0 });
  expect(await relayed(world.deployment.delegation, register)).toBe("succeeds");
  return relayed(id, data);
}

/** The Client's approval, as it signs it for anyone to carry. */
async function approvalOf(contract: Address, agent: Agent): Promise<Hex> {
  const deadline = (await world.chainNow()) + 600;
  const approve = call("approve");
  const { chainId } = world.deployment;
  const signature = await agent.account.signTypedData(
    actionTypedData({ chainId, contract, agent: agent.address, call: approve, nonce: 0n, deadline }),
  );
  const args = [agent.address, deadline, signature, approve] as const;
  return encodeFunctionData({ abi: escrowAbi, functionName: "withSignature", args });
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
    const strict = await attackedAfterStrictSignIn(next.id, victim, data);
    const replay = `\`${revoked}\`; replay of the delegation \`${replayed}\``;
    rows.push([name, `\`${never}\``, delegated, replay, `\`${strict}\``]);
    expect([never, delegated, revoked, replayed, strict]).toEqual([
      "NotParty",
      "succeeds",
      "NotParty",
      "DelegationOutdated",
      "NotParty",
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
    const strict = await attackedAfterStrictSignIn(second.id, client, call("approve"));
    rows.push(["approve in the Client's name", `\`${never}\``, delegated, `\`${revoked}\``, `\`${strict}\``]);
    expect([never, delegated, revoked, strict]).toEqual(["NotParty", "succeeds", "NotParty", "NotParty"]);
  });

  test("cannot carry a signature to another contract, nor use it again", async () => {
    const escrow = await delivered<Escrow>(world, { client, worker });
    const other = await delivered<Escrow>(world, { client, worker });
    const signed = await approvalOf(escrow.id, client);
    const elsewhere = await relayed(other.id, signed);
    expect(await relayed(escrow.id, signed)).toBe("succeeds");
    const again = await relayed(escrow.id, signed);
    rows.push(["carry its signature to another contract", "", "", "", `\`${elsewhere}\``]);
    rows.push(["use its signature again", "", "", "", `\`${again}\``]);
    expect([elsewhere, again]).toEqual(["InvalidActionSignature", "WrongStatus"]);
  });

  test("cannot forge a delegation", async () => {
    const forged = await delegationOf({ ...worker, account: privateKeyToAccount(generatePrivateKey()) });
    const result = await relayed(world.deployment.delegation, forged);
    const name = "register a delegation that the agent did not sign";
    rows.push([name, `\`${result}\``, "", `\`${result}\``, `\`${result}\``]);
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
    rows.push(["pack the jury of a matched contract", ...Array(4).fill("`NotEligible`")]);
  });
});

test("docs/trust.md shows these results", () => {
  const text = readFileSync(new URL("../../docs/trust.md", import.meta.url), "utf8");
  for (const row of table().split("\n")) expect(text).toContain(row);
});
