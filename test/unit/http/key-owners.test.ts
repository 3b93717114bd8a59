import { expect, it } from "vitest";
import { createKey, hashKey, isWellFormedKey } from "../../../src/http/key-owners.js";

it("makes keys of a fixed length whose hash is the SHA-256 of the text", () => {
  const keys = new Set<string>();
  for (let i = 0; i < 200; i++) {
    const { apiKey, hash } = createKey("live");
    keys.add(apiKey);
    expect(apiKey).toMatch(/^wc_live_[0-9A-Za-z]{49}$/);
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(hash).toBe(hashKey(apiKey));
    expect(isWellFormedKey(apiKey, "live")).toBe(true);
    expect(isWellFormedKey(apiKey, "test")).toBe(false);
  }
  expect(keys.size).toBe(200);
});

it("detects every single wrong character, swap and cut", () => {
  const { apiKey } = createKey("test");
  for (let i = 0; i < apiKey.length; i++) {
    const wrong = apiKey.slice(0, i) + (apiKey[i] === "x" ? "y" : "x") + apiKey.slice(i + 1);
    expect(isWellFormedKey(wrong, "test"), `character ${i}`).toBe(false);
    expect(isWellFormedKey(apiKey.slice(0, i), "test")).toBe(false);
  }
  expect(isWellFormedKey(`${apiKey}0`, "test")).toBe(false);
  expect(isWellFormedKey(apiKey.replace("wc_test_", "wc_live_"), "live")).toBe(false);
  expect(isWellFormedKey(apiKey.toUpperCase(), "test")).toBe(false);
});
