import { factoryAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Parameters } from "@working-contracts/protocol/types";
import type { PublicClient } from "viem";

/** Long enough to spare the node, short against the day for which the factory still takes former parameters. */
const FRESH_FOR_MS = 5_000;

export type ParameterReader = () => Promise<Parameters>;

/**
 * Reads the parameters of future Working Contracts from the factory, at most once every few seconds; concurrent
 * callers share one read. Rejects where the node does not answer, and tries again at the next call.
 */
export function createParameterReader(
  { publicClient, deployment }: { publicClient: Pick<PublicClient, "readContract">; deployment: Deployment },
  { freshForMs = FRESH_FOR_MS, now = () => performance.now() } = {},
): ParameterReader {
  let latest: { value: Promise<Parameters>; readAt: number } | undefined;
  return () => {
    if (latest === undefined || now() - latest.readAt >= freshForMs) {
      const value = publicClient.readContract({
        address: deployment.factory,
        abi: factoryAbi,
        functionName: "parameters",
      });
      const reading = { value, readAt: now() };
      latest = reading;
      value.catch(() => {
        if (latest === reading) latest = undefined;
      });
    }
    return latest.value;
  };
}
