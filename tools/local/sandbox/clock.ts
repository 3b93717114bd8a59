/** The local chain's clock. It can be advanced, so that deadlines and voting windows pass at once. */

import type { Deployment } from "@working-contracts/protocol/deployment";
import { createTestClient, http, publicActions } from "viem";
import { createChainClients } from "../../../src/chain/clients.js";
import { AppError } from "../../../src/errors.js";
import { until } from "../../../src/indexer/supervision/processes.js";

/** Forward, by seconds or to a time in seconds. */
export type Move = { advanceSeconds: number } | { to: number };

export interface SandboxClock {
  /** Seconds, by the newest block. */
  now(): Promise<number>;
  /**
   * Mines a block at the new time, waits until the service has it, and returns the time reached (seconds).
   * Rejects with `invalid_request` if the time is not ahead, or too far ahead.
   */
  move(move: Move): Promise<number>;
}

/** Longer than the longest contract. */
export const MAX_MOVE_SECONDS = 400 * 86_400;
const SEEN_TIMEOUT_MS = 20_000;

export function createClock({
  rpcUrl,
  deployment,
  baseUrl,
}: {
  rpcUrl: string;
  deployment: Deployment;
  baseUrl: string;
}): SandboxClock {
  const { chain } = createChainClients({ rpcUrl, chainId: deployment.chainId });
  const client = createTestClient({ mode: "anvil", chain, transport: http(rpcUrl) }).extend(publicActions);
  const now = async (): Promise<number> => Number((await client.getBlock({ blockTag: "latest" })).timestamp);
  let last: Promise<unknown> = Promise.resolve();

  const advance = async (move: Move): Promise<number> => {
    const before = await now();
    const seconds = "to" in move ? move.to - before : move.advanceSeconds;
    if (seconds < 1 || seconds > MAX_MOVE_SECONDS) {
      const time = new Date(before * 1000).toISOString();
      throw new AppError("invalid_request", {
        message: `The clock only moves forward, by at most ${MAX_MOVE_SECONDS / 86_400} days at a time. It is ${time}.`,
      });
    }
    await client.increaseTime({ seconds });
    await client.mine({ blocks: 1 });
    return now();
  };

  return {
    now,
    async move(move) {
      const turn = last.then(() => advance(move));
      last = turn.catch(() => undefined);
      const reached = await turn;
      const isSeen = async (): Promise<boolean> => {
        const network = (await (await fetch(`${baseUrl}/v1/network`)).json()) as { data: { time: string } };
        return Date.parse(network.data.time) >= reached * 1000;
      };
      await until("the service has the new time", isSeen, { timeoutMs: SEEN_TIMEOUT_MS });
      return reached;
    },
  };
}
