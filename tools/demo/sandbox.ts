/** The running local network's sandbox, over its HTTP API (docs/sandbox.md). */
import type { Address } from "viem";
import type { Play } from "../local/sandbox/plays.js";

export interface Sandbox {
  /** Decimals: "100.0". */
  give(gift: { address: Address; usd?: string; tokens?: string }): Promise<void>;
  /** Seconds; resolves once the service has the new time. */
  moveClockTo(timestamp: number): Promise<void>;
  /** Starts a counterparty; throws if it cannot play. */
  play(script: Record<string, unknown>): Promise<Play>;
  /** Resolves once the counterparty has played its part; throws with its steps if it failed. */
  ended(play: Play): Promise<void>;
}

const POLL_MS = 500;
const PATIENCE_MS = 60_000;

export function createSandbox(baseUrl: string): Sandbox {
  const call = async <T>(path: string, body?: unknown): Promise<T> => {
    const response = await fetch(`${baseUrl}/sandbox/${path}`, {
      ...(body !== undefined && {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    const answer = (await response.json()) as { data: T; error?: { message: string } };
    if (!response.ok) throw new Error(`Sandbox, ${path}: ${answer.error?.message ?? response.status}`);
    return answer.data;
  };
  const willing = (play: Play): Play => {
    if (play.state === "failed") throw new Error(`the sandbox's ${play.role}: ${play.steps.join("; ")}`);
    return play;
  };

  return {
    give: async (gift) => void (await call("faucet", gift)),
    moveClockTo: async (timestamp) =>
      void (await call("clock", { to: new Date(timestamp * 1000).toISOString() })),
    play: async (script) => willing(await call("counterparties", script)),
    async ended({ id }) {
      const giveUpAt = performance.now() + PATIENCE_MS;
      for (;;) {
        const play = willing(await call<Play>(`counterparties/${id}`));
        if (play.state === "done") return;
        if (performance.now() > giveUpAt)
          throw new Error(`the sandbox's ${play.role} is still busy: ${play.steps.join("; ")}`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    },
  };
}
