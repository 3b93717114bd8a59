/** Deploys the protocol to RPC_URL and writes deployments/<chainId>.json. Sends nothing if a setting is wrong. */
import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { boundsOf, PARAMETER_NAMES } from "@working-contracts/protocol/terms";
import { createPublicClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { createChainClients, createSigningClient } from "../src/chain/clients.js";
import { deployProtocol } from "../src/chain/deploy.js";
import { NETWORKS, type NetworkName, networkFaults, writeDeployment } from "../src/chain/deployment.js";
import { httpUrl, privateKey } from "../src/config.js";
import { refuse as refuseError } from "../src/logger.js";
import { ROOT } from "../src/root.js";
import { compileContracts } from "./local/foundry.js";

const TEST_ASSET = "TestUSD";
/** Seats of a panel. Unlike by the specification's default, none, they are drawn; docs/trust.md says why. */
const DRAWN_PANEL = { baRecruitCount: 5 };
const USAGE = `
Settings, as environment variables:
  RPC_URL               the chain's JSON-RPC endpoint
  DEPLOYER_PRIVATE_KEY  pays for the deployment
  NETWORK               ${Object.keys(NETWORKS).join(" or ")}: the chain must be that network, with its native USDC
  ASSET                 without NETWORK: address of the stablecoin (6 decimals, EIP-3009),
                        or "${TEST_ASSET}" to deploy a test token
  SIGNERS               addresses that may send the Relay's batches, separated by commas
  DOMAIN                name of the service in sign-in messages, such as contracts.example.com
  OWNER                 owns factory, Relay and protocol token          (the deployer; required on base)
  TREASURY              receives fees                                   (the deployer; required on base)
  REVIEWER              may release held payouts early                  (optional: the owner)
  PARAMETERS            JSON object that overrides default parameters   (optional; panels of
                        ${DRAWN_PANEL.baRecruitCount} are drawn unless it sets baRecruitCount, to 0 for votes open to all)
  DEPLOYMENT            file to write                                   (optional: deployments/<chain id>.json)`;

const address = z
  .string("is required")
  .regex(/^0x(?!0{40})[0-9a-fA-F]{40}$/, "must be an address other than zero")
  .transform((text) => text as `0x${string}`);

const SettingsSchema = z
  .object({
    RPC_URL: httpUrl,
    DEPLOYER_PRIVATE_KEY: privateKey,
    NETWORK: z
      .enum(Object.keys(NETWORKS) as NetworkName[], `must be ${Object.keys(NETWORKS).join(" or ")}`)
      .optional(),
    ASSET: z.union([z.literal(TEST_ASSET), address], "must be an address or TestUSD").optional(),
    SIGNERS: z
      .string("is required")
      .transform((list) => list.split(",").map((text) => text.trim()))
      .pipe(z.array(address)),
    // Clients compare it with the host of the service's URL, and the contracts keep it.
    DOMAIN: z
      .string("is required")
      .refine(isHost, "must be a host in lower case, such as contracts.example.com: no https://, no path"),
    TREASURY: address.optional(),
    OWNER: address.optional(),
    REVIEWER: address.optional(),
    PARAMETERS: z
      .string()
      .default("{}")
      .transform((text, context) => {
        try {
          return JSON.parse(text) as unknown;
        } catch {
          context.addIssue("must be JSON");
          return z.NEVER;
        }
      })
      .pipe(z.partialRecord(z.enum(PARAMETER_NAMES), z.number().int()))
      .superRefine((parameters, context) => {
        for (const name of PARAMETER_NAMES) {
          const { min, max } = boundsOf(name);
          const value = parameters[name] ?? min;
          if (value < min || value > max) context.addIssue(`${name} must be from ${min} to ${max}`);
        }
      }),
    DEPLOYMENT: z.string().optional(),
  })
  .refine(({ NETWORK, ASSET }) => (NETWORK === undefined) !== (ASSET === undefined), {
    path: ["NETWORK"],
    message: "give either NETWORK, which names its own stablecoin, or ASSET",
  })
  .superRefine(({ NETWORK, ...given }, context) => {
    // Otherwise the deployer's key, which a command line had, would hold both for good.
    for (const name of ["OWNER", "TREASURY"] as const)
      if (NETWORK === "base" && given[name] === undefined)
        context.addIssue({ code: "custom", path: [name], message: "is required on base" });
  });

const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ""));
const settings = SettingsSchema.safeParse(given);
if (!settings.success) {
  for (const issue of settings.error.issues) console.error(`${String(issue.path[0])}: ${issue.message}`);
  console.error(USAGE);
  process.exit(1);
}

const { data } = settings;
const { RPC_URL: rpcUrl, NETWORK: network, SIGNERS: signers, DOMAIN: domain, PARAMETERS: parameters } = data;
const node = createPublicClient({ transport: http(rpcUrl) });
const account = privateKeyToAccount(data.DEPLOYER_PRIVATE_KEY);
const chainId = await node.getChainId().catch(() => refuse(["RPC_URL: the node does not respond."]));
const path = resolve(data.DEPLOYMENT ?? join(ROOT, "deployments", `${chainId}.json`));
if (existsSync(path) && !process.argv.includes("--again")) {
  refuse([
    `${path} already exists: the protocol is deployed on chain ${chainId}. Use --again to deploy it again.`,
  ]);
}
// An error of the node's client names its URL, which can hold a key.
await deploy().catch(refuseError);

async function deploy(): Promise<void> {
  const faults = network === undefined ? [] : await networkFaults(node, network);
  if ((await node.getBalance({ address: account.address })) === 0n) {
    faults.push(`The deployer ${account.address} has nothing to pay gas with on chain ${chainId}.`);
  }
  try {
    mkdirSync(dirname(path), { recursive: true });
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    faults.push(`DEPLOYMENT: cannot write ${path} (${(error as Error).message})`);
  }
  if (faults.length > 0) refuse(faults);

  await compileContracts(console.log);
  const { publicClient, chain } = createChainClients({ rpcUrl, chainId });
  const owner = data.OWNER ?? account.address;
  const asset = network === undefined ? data.ASSET : NETWORKS[network].asset.address;
  const deployment = await deployProtocol({
    walletClient: createSigningClient({ rpcUrl, chain, account }),
    publicClient,
    owner,
    treasury: data.TREASURY ?? account.address,
    reviewer: data.REVIEWER ?? owner,
    signers,
    domain,
    asset: asset === TEST_ASSET ? undefined : asset,
    parameters: { ...DRAWN_PANEL, ...parameters },
  });
  writeDeployment(path, deployment);
  console.log(`Deployed and verified on chain ${chainId}: ${path}`);
  if (owner.toLowerCase() !== account.address.toLowerCase()) {
    console.log(`${owner} must still call acceptOwnership() on the Relay ${deployment.relay}.`);
  }
  console.log('No Backup Agent can vote yet: see "Before you open" in docs/deployment.md.');
}

function isHost(text: string): boolean {
  return URL.canParse(`https://${text}`) && new URL(`https://${text}`).host === text;
}

function refuse(lines: readonly string[]): never {
  for (const line of lines) console.error(line);
  process.exit(1);
}
