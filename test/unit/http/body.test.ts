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

  it("are rejected if a number would change", () => {
    expect(refusal('{"data":{"list":[1,9007199254740993.0]}}')).toEqual({
      path: "data.list.1",
      message: "9007199254740993.0 cannot be represented exactly; send it as a string",
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

const UNSTORABLE = "contains a NUL character or half of a surrogate pair";
const DEEP = "is nested deeper than 64 levels";

describe("rejects", () => {
  it.each<[string, string | Buffer, message: string, path?: string]>([
    ["a list", "[]", "must be a JSON object"],
    ["nesting of 65 levels", `{"a":${"[".repeat(64)}${"]".repeat(64)}}`, DEEP],
    ["a NUL", '{"a":{"b":["\\u0000"]}}', UNSTORABLE, "a.b.0"],
    ["such text in a key", '{"a":{"\\u0000":1}}', UNSTORABLE, "a"],
  ])("%s", (_, body, message, path = "") => {
    expect(refusal(body)).toEqual({ path, message });
  });

  it("a key given twice with different values", () => {
    expect(refusal('{"a":1,"a":2}').message).toMatch(/^is not valid JSON: Duplicate key 'a'/);
    expect(parse('{"a":1,"a":1}')).toEqual({ a: 1 });
  });
});

it("accepts nesting of 64 levels, any brackets in a text, and whole surrogate pairs", () => {
  expect(parse(`{"a":${"[".repeat(63)}${"]".repeat(63)}}`)).toHaveProperty("a");
  expect(parse(`{"a":"${"[".repeat(1000)}\\"${"{".repeat(1000)}"}`)).toHaveProperty("a");
  expect(parse('{"a":"\\ud83d\\udc1d 🐝"}')).toEqual({ a: "🐝 🐝" });
});
