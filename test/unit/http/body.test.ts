import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import { parseBody } from "../../../src/http/schemas.js";

const parse = (text: string) => parseBody(Buffer.from(text));

function refusal(bytes: Uint8Array | string): { path: string; message: string } {
  try {
    parseBody(typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
    expect((error as AppError).code).toBe("invalid_request");
    return ((error as AppError).options.details as { path: string; message: string }[])[0] as never;
  }
  throw new Error("was not rejected");
}

describe("the price", () => {
  it.each([
    "50",
    "50.0",
    "50.00",
    "0.1",
    "1e2",
    "-1",
    "0.1000000000000000055511151231257827",
    "123456789012345678901234",
  ])("stays the text that was sent: %s", (text) => {
    expect(parse(`{"budgetOrPrice": ${text} }`)).toEqual({ budgetOrPrice: text });
    expect(parse(`{"budgetOrPrice": "${text}"}`)).toEqual({ budgetOrPrice: text });
    expect(parse(`{"amount": ${text} }`)).toEqual({ amount: text });
  });

  it("is text only at the top level", () => {
    expect(parse('{"applicationTerms":{"budgetOrPrice":1.50}}')).toEqual({
      applicationTerms: { budgetOrPrice: 1.5 },
    });
  });
});

describe("other values", () => {
  it("can be as long as a body: a quarter of a million zeros", () => {
    const zeros = "0".repeat(262_000);
    expect(parse(`{"x":1.${zeros}}`)).toEqual({ x: 1 });
    expect(refusal(`{"x":1${zeros}1}`).message).toContain("cannot be represented exactly");
  });

  it("are parsed as by JSON.parse", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })), (value) => {
        const text = JSON.stringify(value);
        if (/\\u0000|\\ud[89a-f]/.test(text)) return;
        const expected = JSON.parse(text);
        if (typeof expected.budgetOrPrice === "number")
          expected.budgetOrPrice = String(expected.budgetOrPrice);
        expect(parse(text)).toEqual(expected);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    "12345678901234567890",
    "9007199254740993.0",
    "0.1000000000000000055511151231257827",
    "1e999",
    "-1e400",
    "1e-400",
    "1e99999999999999999999",
  ])("are rejected if a number would change: %s", (number) => {
    expect(refusal(`{"data":{"list":[1,${number}]}}`)).toEqual({
      path: "data.list.1",
      message: `${number} cannot be represented exactly; send it as a string`,
    });
  });

  it.each(["9007199254740992", "0.1", "1.10", "1e3", "-0.50", "1E+300", "123e-2", "0", "-0.0e5", "5e-324"])(
    "keep the number %s",
    (number) => {
      expect(parse(`{"n":${number}}`).n).toBe(Number(number));
    },
  );
});

it("reads no bytes as an empty object", () => {
  expect(parseBody(Buffer.alloc(0))).toEqual({});
});

describe("rejects", () => {
  it.each(["[]", "null", "1"])("anything but an object: %s", (text) => {
    expect(refusal(text)).toEqual({ path: "", message: "must be a JSON object" });
  });

  it("bytes that are not UTF-8", () => {
    expect(refusal(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])).message).toBe(
      "is not valid UTF-8",
    );
  });

  it("a key given twice with different values", () => {
    expect(refusal('{"a":1,"a":2}').message).toMatch(/^is not valid JSON: Duplicate key 'a'/);
    expect(parse('{"a":1,"a":1}')).toEqual({ a: 1 });
  });

  it("nesting deeper than 64, whatever its length", () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
    expect(parse(nested(64))).toHaveProperty("a");
    expect(refusal(nested(65)).message).toBe("is nested deeper than 64 levels");
    expect(refusal(`{"a":${"[".repeat(250_000)}`).message).toBe("is nested deeper than 64 levels");
    expect(refusal(`${'{"a":'.repeat(50_000)}`).message).toBe("is nested deeper than 64 levels");
    // Brackets inside a string do not count.
    expect(parse(`{"a":"${"[".repeat(1000)}\\"${"{".repeat(1000)}"}`)).toHaveProperty("a");
  });

  it.each(['{"a":{"b":["\\u0000"]}}', '{"a":{"b":["x\\ud800"]}}', '{"a":{"b":["\\udc00x"]}}'])(
    "text that Postgres cannot store: %s",
    (text) => {
      expect(refusal(text)).toEqual({
        path: "a.b.0",
        message: "contains a NUL character or half of a surrogate pair",
      });
    },
  );

  it("such text in a key as well, but accepts whole surrogate pairs", () => {
    expect(refusal('{"a":{"\\u0000":1}}').path).toBe("a");
    expect(parse('{"a":"\\ud83d\\udc1d 🐝"}')).toEqual({ a: "🐝 🐝" });
  });
});
