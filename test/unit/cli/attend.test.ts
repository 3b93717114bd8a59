import { attend } from "@working-contracts/cli/commands/mcp";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "setInterval"] }));
afterEach(() => void vi.useRealTimers());

it("the MCP server opens votes each minute, and never twice at a time", async () => {
  let finish = () => {};
  const openVotes = vi.fn(() => new Promise<string[]>((resolve) => (finish = () => resolve([]))));
  const stop = attend({ openVotes, shareDeliveries: async () => {} }, { progress: () => {} });
  await vi.advanceTimersByTimeAsync(600_000);
  expect(openVotes).toHaveBeenCalledTimes(1);
  finish();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(openVotes).toHaveBeenCalledTimes(2);
  stop();
  finish();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(openVotes).toHaveBeenCalledTimes(2);
});
