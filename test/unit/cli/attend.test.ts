import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attend, keepingSalts } from "@working-contracts/cli/commands/mcp";
import { type Agent, RefusedToSign } from "@working-contracts/client/index";
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

it("the MCP server keeps the salt of an entrusted vote before it is cast", async () => {
  const dir = mkdtempSync(join(tmpdir(), "salts-"));
  const kept = () => readFileSync(join(dir, "vote-salts.txt"), "utf8");
  const agent = keepingSalts({ vote: async () => kept() } as never as Agent, dir);
  await expect(agent.vote("0x1", ["met"])).rejects.toThrow("ENOENT");
  expect(await agent.vote("0x2", ["met"], { entrust: true, salt: "0x5a" })).toBe("0x2 0x5a\n");
  rmSync(dir, { recursive: true });
});

it("the MCP server shares deliveries again after a failure, but not without a node", async () => {
  const shareDeliveries = vi.fn(async () => {});
  shareDeliveries.mockRejectedValueOnce(new TypeError("data is null"));
  shareDeliveries.mockRejectedValueOnce(new RefusedToSign("quote", "it costs money"));
  shareDeliveries.mockRejectedValueOnce(new RefusedToSign("delivery", "connect with `node`"));
  const progress = vi.fn();
  const stop = attend({ openVotes: async () => [], shareDeliveries }, { progress });
  await vi.advanceTimersByTimeAsync(600_000);
  stop();
  expect(shareDeliveries).toHaveBeenCalledTimes(3);
  expect(progress).toHaveBeenCalledTimes(3);
});
