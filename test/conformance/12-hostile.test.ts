/** Input that no one sends by accident. Each is rejected with a clear 400, or handled as harmless. */
import canonicalize from "canonicalize";
import { describe, expect, test } from "vitest";
import { draft, type Json, matched, newPair, ok, quoteFor } from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { refusal, says, withDatabase, withMoney } from "./support/spec.js";

const scene = await openScene();
const agent = lazy(() => scene.newAgent());
const pair = lazy(() => newPair(scene));
const match = lazy(async () => matched(scene, await pair()));

const NUL = "\\u0000";
const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

describe("JSON that is invalid or ambiguous", () => {
  const bodies: [string, string | Uint8Array][] = [
    ["an unfinished object", '{"displayName":'],
    ["a trailing comma", '{"displayName":"a",}'],
    ["a comment", '{"displayName":"a"/* b */}'],
    ["single quotes", "{'displayName':'a'}"],
    ["an unquoted key", '{displayName:"a"}'],
    ["two documents", '{"bio":"a"}{"bio":"b"}'],
    ["text after the document", '{"bio":"a"} x'],
    ["a list", '[{"bio":"a"}]'],
    ["a string", '"bio"'],
    ["a number", "5"],
    ["null", "null"],
    ["true", "true"],
    ["only blanks", "   "],
    ["only a NUL", "\u0000"],
    ["NaN", '{"x":NaN}'],
    ["Infinity", '{"x":-Infinity}'],
    ["a leading zero", '{"x":01}'],
    ["a plus sign", '{"x":+1}'],
    ["a hexadecimal number", '{"x":0x10}'],
    ["a bare fraction", '{"x":.5}'],
    ["a raw line break in a string", '{"bio":"a\nb"}'],
    ["an unknown escape", '{"bio":"\\x41"}'],
    ["a key given twice with different values", '{"bio":"a","bio":"b"}'],
    ["a key given twice, once escaped", '{"bio":"a","\\u0062io":"b"}'],
    ["nesting of 65 levels", deep(65)],
    ["nesting of 100,000 levels", deep(40_000)],
    ["100,000 open brackets", "[".repeat(100_000)],
    ["a NUL in a value", `{"bio":"a${NUL}b"}`],
    ["a NUL in an ignored key", `{"a${NUL}":1}`],
    ["half of a surrogate pair", '{"bio":"\\ud800"}'],
    ["a surrogate pair the wrong way round", '{"bio":"\\udc00\\ud800"}'],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d])],
    [
      "an overlong encoding",
      Buffer.concat([Buffer.from('{"bio":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
    ],
    ["UTF-16", Buffer.from('{"bio":"a"}', "utf16le")],
    ["an integer that would change", '{"x":12345678901234567890}'],
    ["a fraction that would change", '{"x":0.1000000000000000055511151231257827}'],
    ["a number beyond all doubles", '{"x":1e400}'],
    ["a number below all doubles", '{"x":1e-400}'],
    ["a number of 100,000 digits", `{"x":${"9".repeat(100_000)}}`],
    ["an exponent of 100 digits", `{"x":1e${"9".repeat(100)}}`],
  ];
  for (const [name, body] of bodies) {
    says(`${name} is 400 \`invalid_request\``, async () => {
      const refused = await (await agent()).post("/v1/agents/me/profile", body);
      expect(refusal(refused)).toBe("400 invalid_request");
      expect(refused.error?.message.length).toBeLessThan(500);
    });
  }

  withDatabase("all of it is refused as a contract, too, and leaves no row", async () => {
    const fresh = await scene.newAgent();
    for (const [name, body] of bodies)
      expect(refusal(await fresh.post("/v1/contracts", body)), name).toBe("400 invalid_request");
    const sources = ["terms", "operation"].map((table) => `select caller from app.${table}`);
    const callers = await scene.query<{ caller: string }>(sources.join(" union "));
    expect(callers.map(({ caller }) => caller)).not.toContain(fresh.address);
  });

  says("keys that mean something to JavaScript mean nothing here", async () => {
    const fresh = await scene.newAgent();
    for (const key of ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"]) {
      const body = `{"displayName":"Ada","${key}":{"bio":"polluted","displayName":"polluted"}}`;
      const version = ok(await fresh.post<Json>("/v1/agents/me/profile", body), 201);
      expect(version).toMatchObject({ displayName: "Ada", bio: null });
    }
  });

  withMoney("evidence keeps odd keys and values as they were given", async () => {
    const { client } = await pair();
    const path = `/v1/contracts/${(await match()).id}/complaints`;
    const evidence =
      '{"__proto__":{"x":1},"constructor":[],"":" ","é":"\u202e","n":[-0.5,1e3,123.456,9007199254740991],"deep":[[[[[]]]]]}';
    const filed = await client.post<Json>(path, `{"evidence":${evidence}}`);
    expect(filed.status).toBe(201);
    // The order of an object's keys has no meaning in JSON.
    expect(canonicalize(filed.data.evidence)).toBe(canonicalize(JSON.parse(evidence)));
    expect(Object.hasOwn(filed.data.evidence, "__proto__")).toBe(true);
    const list = ok(await scene.call<Json[]>("GET", `/v1/contracts/${(await match()).id}/complaints`));
    expect(list.map((complaint) => JSON.stringify(complaint.evidence))).toContain(
      JSON.stringify(filed.data.evidence),
    );
  });
});

describe("Prices", () => {
  const prices: [string, number | null][] = [
    ["0", 400],
    ["-0", 400],
    ["-1", 400],
    ['"-1"', 400],
    ['"+1"', 400],
    ['" 1"', 400],
    ['"1 "', 400],
    ['"1_000"', 400],
    ['"1,5"', 400],
    ['"١٢"', 400],
    ['"0x10"', 400],
    ['"1e3"', 400],
    ["1e3", 400],
    ["1E-1", 400],
    ['"."', 400],
    ['".5"', 400],
    ['"1."', 400],
    ['"NaN"', 400],
    ['"Infinity"', 400],
    ["0.0000001", 400],
    ["0.009999", 400],
    [`"${"9".repeat(60)}"`, 400],
    ["9".repeat(60), 400],
    [`"${(2n ** 128n).toString()}"`, 400],
    [`"${(2n ** 96n).toString()}"`, null],
    ["0.010000", 402],
    ['"00050"', null],
    ["50.0000000", null],
    ["999999999.999999", 402],
  ];
  test.concurrent.each(prices)("a price of %s", async (price, expected) => {
    const text = JSON.stringify(await draft(scene)).replace(
      '"budgetOrPrice":50',
      () => `"budgetOrPrice":${price}`,
    );
    const { status, error } = await (await scene.newAgent()).post("/v1/contracts", text);
    expect(expected === null ? [400, 402] : [expected], JSON.stringify(error)).toContain(status);
    if (status === 400) expect(error?.code).toBe("invalid_request");
  });
});

describe("Times", () => {
  const malformed = [
    "2030-01-01",
    "2030-01-01T00:00Z",
    "2030-01-01T00:00:00",
    "2030-01-01 00:00:00Z",
    "2030-01-01T00:00:00+0100",
    "2030-01-01T00:00:00+24:00",
    "2030-01-01T00:00:00+99:99",
    "2030-01-01T00:00:00 Z",
    "2030-01-01T00:00:00GMT",
    "2030-01-01T24:00:00Z",
    "2030-01-01T23:59:60Z",
    "2030-02-30T00:00:00Z",
    "2030-13-01T00:00:00Z",
    "2027-02-29T00:00:00Z",
    "+012030-01-01T00:00:00Z",
    "-2030-01-01T00:00:00Z",
    "２０３０-01-01T00:00:00Z",
    "2030-01-01T00:00:00Z\n",
    "2030-W01-1T00:00:00Z",
    "Tue, 01 Jan 2030 00:00:00 GMT",
    "now",
  ];
  test.concurrent.each(malformed)("the deadline %s is no time", async (matchDeadline) => {
    expect(await messageFor(matchDeadline)).toContain("RFC 3339");
  });

  const outOfRange = ["0000-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"];
  test.concurrent.each(outOfRange)("a deadline of %s is refused", async (matchDeadline) => {
    expect(await messageFor(matchDeadline)).not.toContain("RFC 3339");
  });

  async function messageFor(matchDeadline: string): Promise<string> {
    const agent = await scene.newAgent();
    const { status, error } = await agent.post("/v1/contracts", await draft(scene, { matchDeadline }));
    expect([status, error?.code]).toEqual([400, "invalid_request"]);
    expect(error?.message).toContain("matchDeadline");
    return error?.message ?? "";
  }

  const zones = ["+14:00", "-12:00", "+05:45", "-00:00", "+00:00"];
  test.concurrent.each(zones)("the zone %s is accepted", async (zone) => {
    const instant = Date.parse(await scene.inSeconds(3600));
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(zone) ?? [];
    const shift = (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
    const matchDeadline = new Date(instant + shift).toISOString().replace("Z", zone);
    const agent = await scene.newAgent();
    const { payTo } = await quoteFor(agent, "/v1/contracts", await draft(scene, { matchDeadline }));
    const terms = ok(await agent.get<Json>(`/v1/contracts/${payTo}/terms`));
    expect(terms.escrowTerms.matchDeadline).toBe(Math.floor(instant / 1000));
  });

  says("lower case letters and any number of fraction digits are accepted", async () => {
    const at = await scene.inSeconds(3600);
    for (const matchDeadline of [at.toLowerCase(), at.replace("Z", "123456789z"), at.replace(/\.\d+/, "")]) {
      // Throws unless it is quoted.
      await quoteFor(await scene.newAgent(), "/v1/contracts", await draft(scene, { matchDeadline }));
    }
  });
});

describe("Names", () => {
  const names: [string, string, string | null | 400][] = [
    ["0x", "0xdeadbeef", 400],
    ["0X", "agent 0X", 400],
    ["full width", "\uff10\uff58", 400],
    ["full width upper case", "\uff10\uff38", 400],
    ["mathematical bold", "\u{1d7ce}\u{1d431}", 400],
    ["circled", "\u24ea\u24e7", 400],
    ["a Roman numeral", "0\u2179", 400],
    ["a zero and an x that are apart", "0 x, x0, 10 \u00d7 2", "0 x, x0, 10 \u00d7 2"],
    ["a zero-width space between", "0\u200bx", 400],
    ["a soft hyphen between", "0\u00adx", 400],
    ["a variation selector between", "0\ufe0fx", 400],
    ["a bidi mark between", "0\u200fx", 400],
    ["a Hangul filler between", "0\u3164x", 400],
    ["a tag character between", "0\u{e0041}x", 400],
    ["right to left override", "\u202ecba", "cba"],
    ["bidi isolates", "\u2067abc\u2069", "abc"],
    ["control characters", "a\u0007b\u001bc\u009f", "abc"],
    ["a tab and a line break", "a\tb\r\nc", "abc"],
    ["a line separator", "a\u2028b", "ab"],
    ["a byte order mark", "\ufeffabc", "abc"],
    ["nothing visible", "\u200b\u3164\u2800\u00ad", null],
    ["blanks", "   ", null],
    ["blanks between invisible characters", "\u202e \u202c", null],
    ["outer blanks", " \u00a0abc\u3000", "abc"],
    ["a separate accent", "e\u0301", "é"],
    ["an accent after an invisible character", "e\u200b\u0301", "é"],
    ["an emoji of four code points", "\u{1f469}\u200d\u{1f4bb}", "\u{1f469}\u{1f4bb}"],
    ["Arabic", "\u0645\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"],
    ["markup", "<script>alert(1)</script>", "<script>alert(1)</script>"],
    ["SQL", "'; drop table x; --", "'; drop table x; --"],
    ["a property name of JavaScript objects", "__proto__", "__proto__"],
    ["33 letters of which one is invisible", `${"a".repeat(32)}\u200b`, "a".repeat(32)],
    ["33 letters", "a".repeat(33), 400],
    ["32 emoji of two units each", "\u{1f916}".repeat(32), "\u{1f916}".repeat(32)],
  ];
  test.concurrent.each(names)("%s", async (_name, displayName, expected) => {
    const answer = await (await scene.newAgent()).post<Json>("/v1/agents/me/profile", { displayName });
    if (expected === 400) expect(refusal(answer)).toBe("400 invalid_request");
    else expect([answer.status, answer.data?.displayName]).toEqual([201, expected]);
  });
});
