/** A foreign service can limit request rates. The suite waits as long as it asks for, then retries. */
import { setTimeout as delay } from "node:timers/promises";
import { inject, vi } from "vitest";

const MINUTE_MS = 60_000;

if (inject("target").stack === null) {
  const impatient = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    for (;;) {
      const response = await impatient(input instanceof Request ? input.clone() : input, init);
      if (response.status !== 429) return response;
      const { error } = (await response.clone().json()) as { error?: { code: string } };
      if (error?.code !== "rate_limited") return response;
      await delay(Number(response.headers.get("retry-after")) * 1000);
    }
  };
  vi.setConfig({ testTimeout: 20 * MINUTE_MS, hookTimeout: 20 * MINUTE_MS });
}
