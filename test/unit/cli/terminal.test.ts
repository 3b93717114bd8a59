import { PassThrough, Readable } from "node:stream";
import { run } from "@working-contracts/cli/main";
import { askSecret, confirm, createOutput, describeContract, plain } from "@working-contracts/cli/terminal";
import { beforeEach, expect, it, vi } from "vitest";

/** CSI as one character (C1), DEL, a line separator, an override of the direction, a tag beyond 16 bits. */
const HOSTILE = "a\u009b2J\u007f\u2028\u202e\u{e0041}\u001b[2Jé😀";
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

let printed: string;
const print = (text: string): void => {
  printed += text;
};
beforeEach(() => {
  printed = "";
});

it("JSON has no character that controls a terminal, and the same value", () => {
  createOutput({ json: true }, { stdout: print, stderr: print }).result({ title: HOSTILE }, () => "");
  expect(printed).not.toMatch(UNSAFE);
  expect(JSON.parse(printed)).toEqual({ title: HOSTILE });
});

it("an error as JSON has none either", async () => {
  const env = { WC_PASSWORD: "x" };
  await run(["--json", "--clock", HOSTILE, "key", "show"], { env, cwd: "/", stdout: print, stderr: print });
  expect(printed).not.toMatch(UNSAFE);
  expect(JSON.parse(printed).error.message).toContain(HOSTILE);
});

it("a contract's texts fake no line", () => {
  const contract = {
    ...{ id: "0x1", status: "created", title: "a\nstatus  settled", budgetOrPrice: "1.0" },
    ...{
      taskDescription: "delivery: one\n0. [met] two\u2028three",
      acceptanceCriteria: ["one\n1. [met] two"],
    },
    ...{ backupAgents: [], criteriaMet: null, client: "0x2", worker: null, awardMethod: "open_tender" },
    ...{ matchDeadline: "", withdrawalDeadline: "", deliveryDeadline: "", reviewDeadline: "" },
  };
  const lines = describeContract(contract as never).split(/[\n\u2028]/);
  expect(lines.filter((line) => /^\d\./.test(line))).toEqual(["0. [undecided] one 1. [met] two"]);
  expect(lines).not.toContain("status  settled");
  expect(lines).toContain("  delivery: one");
  expect(lines).toContain("  three");
});

it("an error fakes no line", async () => {
  const streams = { stdout: print, stderr: print };
  await run(["--clock", "a\nwcontract: paid", "key", "show"], { env: {}, cwd: "/", ...streams });
  expect(printed).toMatch(/^wcontract: a\n {2}wcontract: paid/);
});

it("text keeps its line breaks, and the joiners of scripts and emoji", () => {
  expect(plain("one\r\ntwo\tthree \u200d\u200c\r\u202e\u00ad")).toBe("one\ntwo\tthree \u200d\u200c���");
});

it("a question is one line without control characters", async () => {
  const stderr = new PassThrough().on("data", print);
  vi.spyOn(process, "stdin", "get").mockReturnValue(Readable.from(["y\n"]) as never);
  vi.spyOn(process, "stderr", "get").mockReturnValue(stderr as never);
  expect(await confirm(`Pay ${HOSTILE}\nas the Client?`).finally(() => vi.restoreAllMocks())).toBe(true);
  expect(printed).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
});

it("a question that Ctrl-C ends is not confirmed, and a password is missing", async () => {
  const terminal = <S extends object>(stream: S) => Object.assign(stream, { isTTY: true }) as never;
  const stdin = vi.spyOn(process, "stdin", "get");
  vi.spyOn(process, "stderr", "get").mockReturnValue(terminal(new PassThrough()));
  stdin.mockReturnValue(terminal(Readable.from(["\u0003"])));
  const isConfirmed = await confirm("Pay?").catch(String);
  stdin.mockReturnValue(terminal(Readable.from(["\u0003"])));
  const password = await askSecret("Password: ", "Set WC_PASSWORD.").catch(String);
  vi.restoreAllMocks();
  expect([isConfirmed, password]).toEqual([false, "UsageError: Set WC_PASSWORD."]);
});
