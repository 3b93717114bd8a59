/** `npm run test:attacks`: plays the attacks of docs/attacks.md, and prints for each what it achieves. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureInstalled } from "./install.mjs";
import { ROOT, runForge, runVitest } from "./run.mjs";

const [, , ...ROWS] = readFileSync(join(ROOT, "docs/attacks.md"), "utf8").match(/^\|.*\|$/gm);
const ATTACKS = ROWS.map((row) => {
  const [tried, achieved, file, title] = row.slice(2, -2).split(" | ");
  return { tried, achieved, file: file.replaceAll("`", ""), title };
});

await ensureInstalled();
const passed = [...(await playWithVitest()), ...(await playWithForge())];
const rows = ATTACKS.map(({ tried, achieved, file, title }) => {
  const found = passed.filter((test) => test.file === file && test.name.includes(title));
  const isHeld = found.length > 0 && found.every((test) => test.passed);
  return { tried, achieved: isHeld ? achieved : found.length === 0 ? "NOT PLAYED" : "SUCCEEDS", isHeld };
});
console.log("\n| attack | achieves |\n| --- | --- |");
for (const { tried, achieved } of rows) console.log(`| ${tried} | ${achieved} |`);
const held = rows.filter(({ isHeld }) => isHeld).length;
console.log(`\n${held} of ${rows.length} attacks fail.`);
process.exit(held > 0 && held === rows.length ? 0 : 1);

async function playWithVitest() {
  const attacks = ATTACKS.filter(({ file }) => file.endsWith(".ts"));
  const files = new Set(attacks.map(({ file }) => file));
  const projects = new Set([...files].map((file) => file.split("/")[1]));
  const titles = attacks.map(({ title }) => title.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const args = [...[...projects].flatMap((project) => ["--project", project]), ...files];
  const { report } = await runVitest([...args, "-t", titles.join("|"), "--reporter=default"], {
    stdio: "inherit",
  });
  return (report?.testResults ?? []).flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === "passed" || status === "failed")
      .map(({ fullName, status }) => ({
        file: name.slice(ROOT.length),
        name: fullName,
        passed: status === "passed",
      })),
  );
}

async function playWithForge() {
  const titles = ATTACKS.filter(({ file }) => file.endsWith(".sol")).map(({ title }) => title);
  const { tests } = await runForge(["--match-test", titles.join("|")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return (tests ?? []).map(({ suite, name, status }) => ({
    file: suite.split(":")[0],
    name,
    passed: status === "Success",
  }));
}
