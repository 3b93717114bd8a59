import { factoryAbi } from "@working-contracts/protocol/abi";
import type { Deployment } from "@working-contracts/protocol/deployment";
import type { Parameters } from "@working-contracts/protocol/parameters";
import type { PublicClient } from "viem";

/** Spares the node; short compared with the day for which the factory still accepts former parameters. */
const FRESH_FOR_MS = 5_000;

export type ParameterReader = () => Promise<Parameters>;

/**
 * Reads the parameters of future Working Contracts from the factory, at most once every few seconds; concurrent
 * callers share one read. Rejects if the node does not respond; the next call retries.
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
