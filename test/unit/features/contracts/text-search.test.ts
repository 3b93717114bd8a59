import { expect, it, vi } from "vitest";
import { toQuery, wordsOf } from "../../../../src/features/contracts/text-search.js";

it.each([
  ["Draw 100% of a_map, of\na Map", ["draw", "100", "of", "a", "map"]],
  ["ÉCLAIR e\u0301clair ﬁne", ["éclair", "fine"]],
  ["翻訳 of 東京都abc", ["翻", "訳", "of", "東", "京", "都", "abc"]],
  ["pay $5 🚀", ["pay", "$", "5", "🚀"]],
  ["\"%_\\';--\u202e", []],
  ["नमस्ते", ["नमस्ते"]],
])("finds the words of %j", (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});

it("counts only the beginning of a long word and of a long text", () => {
  expect(wordsOf("𝕏".repeat(100))).toEqual(["x".repeat(64)]);
  expect(wordsOf("𐐀".repeat(100))).toEqual(["𐐨".repeat(64)]);
  const many = Array.from({ length: 5_000 }, (_, i) => `w${i}`).join(" ");
  expect(wordsOf(many)).toHaveLength(4_096);
});

it("composes no more marks on a letter than text in use has", () => {
  const normalize = vi.spyOn(String.prototype, "normalize");
  const words = [
    `a${"\u0344".repeat(32_768)}${"\u0316".repeat(32_767)} b`,
    `x${"\uff9e\u0316".repeat(32_768)}`,
  ].map(wordsOf);
  const longest = Math.max(...normalize.mock.contexts.map((text) => String(text).length));
  normalize.mockRestore();
  expect(words.map((found) => found.length)).toEqual([2, 1]);
  expect(longest).toBeLessThan(40);
});

it("writes a query that needs no escaping", () => {
  expect(toQuery(wordsOf("it's a \\ & | ! :* <-> test"))).toBe("'it' & 's' & 'a' & '|' & '<' & '>' & 'test'");
});
