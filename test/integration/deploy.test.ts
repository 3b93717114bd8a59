import { join } from "node:path";
import { factoryAbi, protocolTokenAbi, relayAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import { parseEther, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createChainClients, createSigningClient } from "../../src/chain/clients.js";
import { deployProtocol } from "../../src/chain/deploy.js";
import { verifyDeployment, writeDeployment } from "../../src/chain/deployment.js";
import { localAccount } from "../../tools/local/network.js";
import { until } from "../../tools/local/processes.js";
import { createFaucet } from "../../tools/local/sandbox/sandbox.js";
import { RESET, type RpcRule, startRpcProxy } from "../faults/support/rpc-proxy.js";
import { pauseBlocks, resumeBlocks } from "../support/blocks.js";
import { runOperator } from "../support/programs.js";
import { startTestChain } from "../support/test-chain.js";

const deployer = localAccount(0);
const owner = localAccount(3).address;
const signer = localAccount(4).address;
const stranger = localAccount(5).address;
let node: Awaited<ReturnType<typeof startTestChain>>;
let deployment: Deployment;

const deploy = (more: Partial<Parameters<typeof deployProtocol>[0]> = {}) =>
  deployProtocol({
    walletClient: createSigningClient({ rpcUrl: node.rpcUrl, chain: node.chain, account: deployer }),
    publicClient: node.publicClient,
    owner,
    treasury: localAccount(6).address,
    reviewer: localAccount(7).address,
    signers: [signer],
    domain: "contracts.example",
    ...more,
  });

/** Takes each transaction, and resets the connection instead of saying so. */
const withoutResponse: RpcRule = async ({ method }, forward) => {
  const answer = await forward();
  return method === "eth_sendRawTransaction" ? RESET : answer;
};

beforeAll(async () => {
  node = await startTestChain();
  deployment = await deploy({ parameters: { payoutHold: 3600 } });
});
afterAll(() => node?.stop());

describe("a deployment", () => {
  it("sends again the transactions that the node has lost", async () => {
    const { testClient } = node;
    await pauseBlocks(testClient);
    const second = deploy({ resendAfterMs: 1_000 });
    const waiting = async () =>
      Object.values((await testClient.getTxpoolContent()).pending).flatMap((byNonce) =>
        Object.values(byNonce),
      );
    await until("all contracts are pending", async () => (await waiting()).length === 5, {
      timeoutMs: 60_000,
    });
    for (const { hash } of await waiting()) await testClient.dropTransaction({ hash });
    await resumeBlocks(testClient);
    expect((await second).relay).not.toBe(deployment.relay);
  });

  it("needs no response from the node to what it sends", async () => {
    const proxy = await startRpcProxy(node.rpcUrl);
    proxy.setRule(withoutResponse);
    const { chain } = node;
    const walletClient = createSigningClient({ rpcUrl: proxy.url, chain, account: deployer });
    const second = await deploy({ walletClient });
    await proxy.stop();
    expect(second.relay).not.toBe(deployment.relay);
    expect(second.startBlock).toBeGreaterThan(deployment.startBlock);
  });

  it("waits for a node that does not have the newest block yet", async () => {
    const proxy = await startRpcProxy(node.rpcUrl);
    let reads = 0;
    proxy.setRule(async ({ method, params }, forward) => {
      if (method === "eth_fillTransaction") return { error: { code: -32601, message: "unknown method" } };
      // As of a plain call with data, to an address without code.
      if (method === "eth_estimateGas" && (params[0] as { to?: string }).to) return { result: toHex(22_000) };
      if (method === "eth_call" && reads++ === 0) return { result: "0x" };
      return forward();
    });
    const { chain } = node;
    const walletClient = createSigningClient({ rpcUrl: proxy.url, chain, account: deployer });
    const { publicClient } = createChainClients({ rpcUrl: proxy.url, chainId: chain.id });
    const second = await deploy({ walletClient, publicClient }).finally(proxy.stop);
    expect(reads).toBeGreaterThan(1);
    expect(second.relay).not.toBe(deployment.relay);
  });

  it("has the given parameters, gives factory and token to the owner at once, and the Relay when the owner accepts it", async () => {
    const { publicClient } = node;
    const factory = { address: deployment.factory, abi: factoryAbi } as const;
    const token = { address: deployment.protocolToken, abi: protocolTokenAbi } as const;
    const relay = { address: deployment.relay, abi: relayAbi } as const;
    const owners = [
      publicClient.readContract({ ...factory, functionName: "owner" }),
      publicClient.readContract({ ...token, functionName: "owner" }),
      publicClient.readContract({ ...relay, functionName: "pendingOwner" }),
    ];
    expect(await Promise.all(owners)).toEqual([owner, owner, owner]);
    const parameters = await publicClient.readContract({ ...factory, functionName: "parameters" });
    expect(parameters).toMatchObject({ payoutHold: 3600, protocolFee: 500 });
  });

  it("rejects a token that does not have 6 decimals", async () => {
    const nonce = () => node.publicClient.getTransactionCount({ address: deployer.address });
    const before = await nonce();
    // The protocol token has 18 decimals. It has everything else that the description of an asset needs, except a
    // version.
    await expect(deploy({ asset: deployment.protocolToken })).rejects.toThrow();
    expect(await nonce()).toBe(before);
  });

  it("has a limited number of tokens to grant, and the faucet reports when all are granted", async () => {
    const { address } = localAccount(0);
    const faucet = createFaucet({
      rpcUrl: node.rpcUrl,
      deployment: await deploy({ owner: address, grantDelay: 0 }),
    });
    await faucet({ address, tokens: "1000000" });
    await expect(faucet({ address, usd: "1", tokens: "1" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("npm start -- --reset"),
    });
    await faucet({ address, usd: "1" });
  });

  it("announces a grant for seven days before anyone can mint it", async () => {
    const account = localAccount(0);
    const announcing = await deploy({ owner: account.address });
    const path = join(node.dir, "announcing.json");
    writeDeployment(path, announcing);
    const settings = {
      RPC_URL: node.rpcUrl,
      DEPLOYMENT: path,
      OWNER_PRIVATE_KEY: toHex(account.getHdKey().privateKey as Uint8Array),
    };
    const balance = () =>
      node.publicClient.readContract({
        address: announcing.protocolToken,
        abi: protocolTokenAbi,
        functionName: "balanceOf",
        args: [stranger],
      });
    const nonce = await node.publicClient.getTransactionCount(account);
    const proxy = await startRpcProxy(node.rpcUrl);
    proxy.setRule(withoutResponse);
    const granted = await runOperator(["grant", stranger, "12.5"], { ...settings, RPC_URL: proxy.url });
    await proxy.stop();
    expect(granted.stdout).toContain("mint-grant 1");
    expect(granted.stderr).toContain(`the transaction with nonce ${nonce} of ${account.address}.`);
    const early = await runOperator(["mint-grant", "1"], settings);
    expect([early.code, early.stderr]).toEqual([1, expect.stringContaining("not due yet")]);
    expect(await balance()).toBe(0n);

    await node.testClient.increaseTime({ seconds: 7 * 86_400 });
    await node.testClient.mine({ blocks: 1 });
    expect((await runOperator(["mint-grant", "1"], settings)).stdout).toContain("Grant 1 is minted");
    expect(await balance()).toBe(parseEther("12.5"));
  });

  it("is not accepted with its parts mixed up", async () => {
    const { publicClient } = node;
    const check = (changed: Partial<Deployment>) =>
      verifyDeployment({ publicClient, deployment: { ...deployment, ...changed } });
    const other = await deploy();
    await expect(check({ delegation: other.delegation })).rejects.toThrow("`delegation` must be the Relay");
    await expect(check({ domain: "elsewhere.example" })).rejects.toThrow(
      "delegation.domain is contracts.example, not elsewhere.example",
    );
  });
});
