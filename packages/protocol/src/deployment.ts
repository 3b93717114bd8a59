/** The protocol's addresses on one chain: the content of `deployments/<chainId>.json`. */
import { z } from "zod";

const AddressSchema = z
  .string()
  .regex(/^0x[0-9a-fA-F]{40}$/, "not an address")
  .transform((address) => address.toLowerCase() as `0x${string}`);

const DeploymentSchema = z.object({
  chainId: z.number().int().positive(),
  /** The chain's short name in x402 version 1, or its CAIP-2 name if it has none. */
  networkName: z.string().min(1),
  /** Block of the first deployment. No protocol event is older. */
  startBlock: z.number().int().nonnegative(),
  /** Of that block: another chain can have the same id and, if it was reset, the same addresses. */
  startBlockHash: z
    .string()
    .regex(/^0x[0-9a-f]{64}$/, "not a block hash")
    .transform((hash) => hash as `0x${string}`)
    .optional(),
  /** Name of the service in every sign-in challenge. */
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

/** The content of a deployment file. Its addresses are in lower case. */
export type Deployment = z.infer<typeof DeploymentSchema>;

/** Parses the text of a deployment file. Throws an error with one line per fault, each naming `path`. */
export function parseDeployment(text: string, path: string): Deployment {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${path}: not valid JSON (${(cause as Error).message})`, { cause });
  }
  const result = DeploymentSchema.safeParse(json);
  if (!result.success) {
    const faults = result.error.issues.map((issue) => `${path}: ${issue.path.join(".")}: ${issue.message}`);
    throw new Error(faults.join("\n"));
  }
  return result.data;
}
