import type { SubmissionStore } from "@working-contracts/client/index";
import { afterEach, expect, it, vi } from "vitest";

afterEach(() => vi.unstubAllGlobals());

/** Not by its name: only browsers have the types that it needs. */
const SCRIPT = new URL("../../../src/pages/wallet/account.ts", import.meta.url).pathname;
const FACTORY = `0x${"22".repeat(20)}`;
const KEY = `votes/${FACTORY}`;
const [first, second] = [`0x${"31".repeat(20)}`, `0x${"32".repeat(20)}`] as const;

/** The storage of two tabs of one browser, whose calls `fail` lets throw. */
async function tabs(fail: () => void = () => {}) {
  const storage = Object.defineProperty({}, "setItem", {
    value(key: string, value: string) {
      fail();
      Object.assign(storage, { [key]: value });
    },
  });
  vi.stubGlobal("location", { hostname: "localhost" });
  vi.stubGlobal("localStorage", storage);
  const { submittedBy }: { submittedBy(address: string): SubmissionStore } = await import(SCRIPT);
  return [submittedBy("0xA1"), submittedBy("0xa1"), submittedBy("0xa2"), storage] as const;
}

it("keeps what each tab adds, by agent and factory", async () => {
  const [tab, other, stranger, storage] = await tabs();
  await tab.add(KEY, first);
  await other.add(KEY, second);
  expect(await tab.read(KEY)).toEqual([first, second]);
  expect(Object.keys(storage)[0]).toBe(`working-contracts 0xa1 votes-${FACTORY} ${first}`);
  expect([await stranger.read(KEY), await tab.read(KEY.replace("22", "23"))]).toEqual([[], []]);
});

it("refuses no vote if it is full or blocked", async () => {
  const [tab] = await tabs(() => {
    throw new DOMException("full", "QuotaExceededError");
  });
  await tab.add(KEY, first);
  expect(await tab.read(KEY)).toEqual([]);
  vi.stubGlobal("localStorage", undefined);
  expect(await tab.read(KEY)).toEqual([]);
});
