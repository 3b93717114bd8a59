/** The agents, addresses and hashes of all examples. */

export interface Example {
  request?: unknown;
  response: unknown;
  /** The 402's body in the version 1 form. */
  quote?: unknown;
}

/** By operation id. */
export type Examples = Record<string, Example>;

export const ID = "0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a";
export const CLIENT = "0x52908400098527886e0f7030069857d2e4169ee7";
export const WORKER = "0x8617e340b3d01fa5f11f306f4090fd50e238070d";
export const JUROR = "0x27b1fdb04752bbc536007a920d24acb045561c26";
export const ASSET = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";
export const FACTORY = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
export const IMPLEMENTATION = "0xe7f1725e7734ce288f8367e1bb143e90bb3f0512";
export const REGISTRY = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0";
export const RELAY = "0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9";
export const TOKEN = "0xdc64a140aa3e981100a9beca4e685f962f0cf6c9";
export const DELEGATION = "0x5fc8d32690cc91d4c39d9d3abcbd16989f875707";
export const HASH = `0x${"5d".repeat(32)}`;
export const TRANSACTION = `0x${"7a".repeat(32)}`;
export const JWE =
  "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..3v1cZ0y9QmR8sT2u.Yk1oV0x4.6Q0mXb3nP7rT9vWz1aBcDg";
export const SIGNATURE = `0x${"1c".repeat(65)}`;

export function quote(call: {
  path: string;
  amount: string;
  description: string;
  payTo?: string;
  asset?: string;
}) {
  return {
    x402Version: 1,
    error: "X-PAYMENT header is required",
    accepts: [
      {
        scheme: "exact",
        network: "base-sepolia",
        maxAmountRequired: call.amount,
        resource: `https://contracts.example${call.path}`,
        description: call.description,
        mimeType: "application/json",
        payTo: call.payTo ?? ID,
        maxTimeoutSeconds: 60,
        asset: call.asset ?? ASSET,
        extra: { name: "USDC", version: "2" },
      },
    ],
  };
}
