/**
 * Alerts and the dashboard use only metrics that the service exposes, and the runbook says how to handle each alert.
 */
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
const { panels } = JSON.parse(readFileSync(join(ROOT, "ops/dashboard.json"), "utf8")) as {
  panels: { title: string; targets: { expr: string }[] }[];
};
/** Every query, under the name of its alert or panel. */
const queries = [
  ...rules.map(({ alert, expr }) => ({ name: alert, expr })),
  ...panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ name: title, expr }))),
];
const runbook = readFileSync(join(ROOT, "docs/runbook.md"), "utf8");

const METRIC = /\b(?:working_contracts|process|nodejs)_\w+|\bup\b/g;
/** The end of a histogram's series. */
const SERIES = /_(?:bucket|count|sum)$/;
/** Prometheus provides this metric. */
const BUILT_IN = new Set(["up"]);

test("every metric in a query is exposed by the service", async () => {
  const text = await (await fetch(`${sharedStack().url}/metrics`)).text();
  const exposed = new Set([...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].map(([, name]) => name));
  for (const histogram of text.matchAll(/^# TYPE (\S+) histogram/gm)) {
    for (const part of ["bucket", "count", "sum"]) exposed.add(`${histogram[1]}_${part}`);
  }
  for (const { name, expr } of queries) {
    const used = [...expr.matchAll(METRIC)].map(([metric]) => metric);
    expect(used.length, name).toBeGreaterThan(0);
    for (const metric of used)
      expect(exposed.has(metric) || BUILT_IN.has(metric), `${name}: ${metric}`).toBe(true);
  }
});

test("the dashboard shows every metric that an alert watches", () => {
  const shown = new Set(
    panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => expr.match(METRIC) ?? [])),
  );
  const watched = rules.flatMap(({ expr }) => expr.match(METRIC) ?? []);
  expect(watched.filter((metric) => !shown.has(metric) && !BUILT_IN.has(metric))).toEqual([]);
});

test("every label in a query belongs to its metric", async () => {
  const text = readFileSync(join(ROOT, "src/metrics.ts"), "utf8");
  const labelsOf = new Map(
    text.split(/\b(?=(?:counter|histogram|gauge|byState)\(\s*")/).map((declared) => {
      const [, name, counted] = /^\w+\(\s*"(\w+)",\s*"[^"]*",?([^)]*)/.exec(declared) ?? [];
      const [, list] = declared.startsWith("byState")
        ? ["", "state"]
        : (/labelNames: \[([^\]]*)\]/.exec(declared) ?? []);
      return [name, (declared.startsWith("counter") ? counted : list)?.match(/\w+/g) ?? []];
    }),
  );
  const everywhere = ["job", "instance", "component", "le"];
  for (const { name, expr } of queries) {
    for (const [, metric = "", selector = ""] of expr.matchAll(/(\w+)\{([^}]*)\}/g)) {
      const known = [...everywhere, ...(labelsOf.get(metric.replace(SERIES, "")) ?? [])];
      for (const [, label] of selector.matchAll(/(\w+)[=!]~?"/g))
        expect(known, `${name}: ${metric}`).toContain(label);
    }
    const used = [...expr.matchAll(/\bworking_contracts_\w+/g)].map(([metric]) => metric.replace(SERIES, ""));
    const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list ?? "").split(", "));
    const known = [...everywhere, ...used.flatMap((metric) => labelsOf.get(metric) ?? [])];
    for (const label of grouped) expect(known, name).toContain(label);
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

test("the share of failed responses counts no probe and no scrape", () => {
  const expr = rules.find(({ alert }) => alert === "ResponsesFail")?.expr ?? "";
  const selectors = [...expr.matchAll(/duration_seconds_count(\S*)\[/g)].map(([, selector]) => selector);
  expect(selectors).toHaveLength(2);
  for (const selector of selectors) expect(selector).toContain('route!~"/health|/ready|/metrics"');
});

test("the latency of paid calls counts exactly the calls that can be paid", async () => {
  const { paths } = (await (await fetch(`${sharedStack().url}/openapi.json`)).json()) as {
    paths: Record<string, { post?: { responses: Record<string, unknown> } }>;
  };
  const posts = Object.entries(paths).filter(([, { post }]) => post !== undefined);
  const paid = posts.filter(([, { post }]) => post !== undefined && "402" in post.responses);
  const patternOf = ([path]: [string, unknown]) => path.replace(/\{(\w+)\}/g, ":$1");
  const exprs = queries
    .filter(({ expr }) => expr.includes("duration_seconds_bucket"))
    .map(({ expr }) => expr);
  expect(exprs).toHaveLength(3);
  for (const expr of exprs) {
    const [, route] = /route=~"([^"]*)"/.exec(expr) ?? [];
    const counted = posts.map(patternOf).filter((pattern) => new RegExp(`^(?:${route})$`).test(pattern));
    expect(counted).toEqual(paid.map(patternOf));
  }
});

test("every alarm of the relayer has a rule, also if it is raised before the first scrape", () => {
  for (const alarm of ALARM_NAMES) {
    const [rule, ...more] = rules.filter(({ expr }) => expr.includes(`name="${alarm}"`));
    expect(more).toEqual([]);
    const count = `working_contracts_relayer_alarms_total{name="${alarm}"}`;
    const [, window] = /\[(\w+)\]/.exec(rule?.expr ?? "") ?? [];
    expect(rule?.expr).toBe(
      `increase(${count}[${window}]) > 0 or (${count} > 0 unless ${count} offset ${window})`,
    );
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
