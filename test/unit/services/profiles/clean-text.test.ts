import { describe, expect, it } from "vitest";
import { cleanText, lengthOf, resemblesAddress } from "../../../../src/features/profiles/routes.js";

describe("cleanText", () => {
  it.each([
    ["zero-width space", "Ada\u200bLovelace"],
    ["zero-width joiner", "Ada\u200dLovelace"],
    ["byte order mark", "\ufeffAdaLovelace"],
    ["right-to-left override", "Ada\u202eLovelace"],
    ["bidi isolate", "Ada\u2066Lovelace\u2069"],
    ["soft hyphen", "Ada\u00adLovelace"],
    ["control characters", "Ada\u0007\n\tLovelace\u009f"],
    ["line separator", "Ada\u2028Lovelace"],
    ["Hangul filler", "Ada\u3164Lovelace"],
    ["variation selector", "Ada\ufe0fLovelace"],
    ["tag characters", "Ada\u{e0041}Lovelace"],
    ["blank Braille pattern", "Ada\u2800Lovelace"],
    ["outer blanks", " \u00a0AdaLovelace\u3000"],
  ])("strips %s", (_, text) => {
    expect(cleanText(text)).toBe("AdaLovelace");
  });

  it("keeps letters of every script, inner blanks and emoji", () => {
    expect(cleanText("Übersetzer 翻訳 مترجم 🤖")).toBe("Übersetzer 翻訳 مترجم 🤖");
  });

  it("composes to NFC, including characters that stripping brought together", () => {
    expect(cleanText("e\u0301")).toBe("\u00e9");
    expect(cleanText("e\u200b\u0301")).toBe("\u00e9");
  });

  it.each(["", "   ", "\u200b\u2060", "\u202e \u202c"])("returns null for blank text (%j)", (text) => {
    expect(cleanText(text)).toBeNull();
  });
});

describe("resemblesAddress", () => {
  it.each(["0xabc", "my 0X", "\uff10\uff58", "0\u2179", "\u{1d7ce}\u{1d431}"])("finds 0x in %j", (text) => {
    expect(resemblesAddress(text)).toBe(true);
  });

  it.each(["0 x", "ox", "x0", "10 × 2"])("accepts %j", (text) => {
    expect(resemblesAddress(text)).toBe(false);
  });
});

describe("lengthOf", () => {
  it("counts code points", () => {
    expect(lengthOf("🤖🤖")).toBe(2);
  });
});
