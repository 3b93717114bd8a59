/**
 * The official x402 facilitator in its own process, wired like its own example (one key, one viem client with
 * defaults). `NONCE_MANAGER=true` adds viem's nonce manager, which the example does not have.
 */
import { serve } from "@hono/node-server";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { Hono } from "hono";
import { createWalletClient, type Hex, http, nonceManager, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";

const { RPC_URL, PRIVATE_KEY, NONCE_MANAGER } = process.env;
const account = privateKeyToAccount(PRIVATE_KEY as Hex, NONCE_MANAGER === "true" ? { nonceManager } : {});
const client = createWalletClient({ account, chain: baseSepolia, transport: http(RPC_URL) }).extend(
  publicActions,
);
const signer = toFacilitatorEvmSigner({ ...client, address: account.address } as never);
const facilitator = new x402Facilitator().register(`eip155:${baseSepolia.id}`, new ExactEvmScheme(signer));

const app = new Hono();
app.post("/verify", async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json();
  return c.json(await facilitator.verify(paymentPayload, paymentRequirements));
});
app.post("/settle", async (c) => {
  const { paymentPayload, paymentRequirements } = await c.req.json();
  try {
    return c.json(await facilitator.settle(paymentPayload, paymentRequirements));
  } catch (error) {
    return c.json({ success: false, errorReason: (error as Error).name }, 500);
  }
});
app.get("/health", (c) => c.text("ok"));
serve({ fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT) });
