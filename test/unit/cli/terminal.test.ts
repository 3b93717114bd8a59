import { run } from "@working-contracts/cli/main";
import { createOutput } from "@working-contracts/cli/terminal";
import { expect, it } from "vitest";

/** CSI as one character (C1), DEL, a line separator, an override of the direction, a tag beyond 16 bits. */
const HOSTILE = "a\u009b2J\u007f\u2028\u202e\u{e0041}\u001b[2Jé😀";
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

it("JSON has no character that controls a terminal, and the same value", () => {
  let printed = "";
  const print = (text: string) => {
    printed += text;
  };
  createOutput({ json: true }, { stdout: print, stderr: print }).result({ title: HOSTILE }, () => "");
  expect(printed).not.toMatch(UNSAFE);
  expect(JSON.parse(printed)).toEqual({ title: HOSTILE });
});

it("an error as JSON has none either", async () => {
  let printed = "";
  const stderr = (text: string) => {
    printed += text;
  };
  const env = { WC_PASSWORD: "x" };
  await run(["--json", "--clock", HOSTILE, "key", "show"], { env, cwd: "/", stdout: stderr, stderr });
  expect(printed).not.toMatch(UNSAFE);
  expect(JSON.parse(printed).error.message).toContain(HOSTILE);
});
