/** Alerts use only metrics that the service exposes, and the runbook says how to handle each alert. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { ALARM_NAMES } from "../../src/relayer/context.js";
import { ROOT } from "../../src/root.js";
import { sharedStack } from "../support/world.js";

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string };
}

const { groups } = parse(readFileSync(join(ROOT, "ops/alerts.yml"), "utf8")) as {
  groups: { rules: Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const runbook = readFileSync(join(ROOT, "docs/runbook.md"), "utf8");

/** Prometheus provides this metric. */
const BUILT_IN = new Set(["up"]);

test("every metric in a rule is exposed by the service", async () => {
  const text = await (await fetch(`${sharedStack().url}/metrics`)).text();
  const exposed = new Set([...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name]) => name));
  for (const histogram of text.matchAll(/^# TYPE (\S+) histogram/gm)) {
    for (const part of ["bucket", "count", "sum"]) exposed.add(`${histogram[1]}_${part}`);
  }
  for (const { alert, expr } of rules) {
    const used = [...expr.matchAll(/\b(?:working_contracts|process|nodejs)_\w+|\bup\b/g)].map(
      ([name]) => name,
    );
    expect(used.length, alert).toBeGreaterThan(0);
    for (const name of used) expect(exposed.has(name) || BUILT_IN.has(name), `${alert}: ${name}`).toBe(true);
  }
});

test("every label in a rule belongs to its metric", async () => {
  const text = readFileSync(join(ROOT, "src/metrics.ts"), "utf8");
  const labels = new Set(
    [...text.matchAll(/labelNames: \[([^\]]*)\]/g)].flatMap(([, list]) => (list ?? "").match(/\w+/g) ?? []),
  );
  for (const name of ["job", "instance", "le"]) labels.add(name);
  for (const { alert, expr } of rules) {
    for (const [, name] of expr.matchAll(/[{,](\w+)=~?"/g)) expect(labels, alert).toContain(name);
  }
});

test("every counter whose first rise raises an alert is exposed before it rises", async () => {
  const text = await (await fetch(`${sharedStack().url}/metrics`)).text();
  const rising = rules.flatMap(({ expr }) => [...expr.matchAll(/increase\((\w+)\{(\w+="\w+")\}/g)]);
  expect(rising.length).toBe(ALARM_NAMES.length + 1);
  for (const [, name, label] of rising) {
    expect(text).toMatch(new RegExp(`^${name}\\{[^}]*${label}[^}]*\\} \\d+$`, "m"));
  }
});

test("every alarm of the relayer has a rule", () => {
  for (const alarm of ALARM_NAMES) {
    expect(
      rules.filter(({ expr }) => expr.includes(`name="${alarm}"`)),
      alarm,
    ).toHaveLength(1);
  }
});

test("every rule has a severity and a section in the runbook, and every section has a rule", () => {
  const sections = [...runbook.matchAll(/^### (\w+)$/gm)].map(([, name]) => name);
  expect(rules.map(({ alert }) => alert)).toEqual(sections);
  for (const { labels, annotations } of rules) {
    expect(["page", "ticket"]).toContain(labels.severity);
    expect(annotations.summary).not.toBe("");
  }
});
