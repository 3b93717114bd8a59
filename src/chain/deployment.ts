/** Where the protocol lives on one chain: the file `deployments/<chainId>.json`. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";

const AddressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "not an address")
  .transform((address) => address.toLowerCase() as `0x${string}`);

export const DeploymentSchema = z.object({
  chainId: z.number().int().positive(),
  /** Short name of the chain as x402 version 1 knows it, or its CAIP-2 name where there is none. */
  networkName: z.string().min(1),
  /** Block of the first deployed contract: nothing of the protocol happened before it. */
  startBlock: z.number().int().nonnegative(),
  /** Name of the service as it stands in every sign-in challenge. */
  domain: z.string().min(1),
  factory: AddressSchema,
  implementation: AddressSchema,
  relay: AddressSchema,
  delegation: AddressSchema,
  registry: AddressSchema,
  protocolToken: AddressSchema,
  asset: z.object({
    address: AddressSchema,
    name: z.string().min(1),
    version: z.string().min(1),
    decimals: z.number().int().nonnegative(),
    symbol: z.string().min(1),
  }),
});

export type Deployment = z.infer<typeof DeploymentSchema>;

/** Reads a deployment file; throws one line per fault, naming the file. */
export function readDeployment(path: string): Deployment {
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new Error(`${path}: cannot be read as JSON (${(cause as Error).message})`, { cause });
  }
  const result = DeploymentSchema.safeParse(json);
  if (!result.success) {
    const faults = result.error.issues.map((issue) => `${path}: ${issue.path.join(".")}: ${issue.message}`);
    throw new Error(faults.join("\n"));
  }
  return result.data;
}

/** Writes a deployment file whole or not at all. */
export function writeDeployment(path: string, deployment: Deployment): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.tmp`, `${JSON.stringify(deployment, null, 2)}\n`);
  renameSync(`${path}.tmp`, path);
}
