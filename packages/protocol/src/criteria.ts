/** Criteria that are computed from the last checkpoint instead of judged (application `usageticket`). */
import type { Outcome } from "./outcomes.js";

const COMPARISONS: Record<string, (value: number, target: number) => boolean> = {
  ">=": (value, target) => value >= target,
  ">": (value, target) => value > target,
  "<=": (value, target) => value <= target,
  "<": (value, target) => value < target,
  "==": (value, target) => value === target,
};

interface Rule {
  metric: string;
  op: string;
  target: number;
}

/**
 * One outcome per criterion. Rule `i` is `applicationTerms.criteria[i]`; a missing or malformed one gives `unclear`, a
 * valid one without a number to compare gives `not met`.
 */
export function computeCriteria(input: {
  criteriaCount: number;
  applicationTerms: Record<string, unknown> | null;
  /** `data` of the last checkpoint; null if there is none. */
  metrics: Record<string, unknown> | null;
}): Outcome[] {
  const rules = input.applicationTerms?.criteria;
  return Array.from({ length: input.criteriaCount }, (_, i) => {
    const rule = ruleOf(Array.isArray(rules) ? rules[i] : undefined);
    if (rule === null) return "unclear";
    const value =
      input.metrics !== null && Object.hasOwn(input.metrics, rule.metric) ? input.metrics[rule.metric] : null;
    if (typeof value !== "number") return "not met";
    return COMPARISONS[rule.op]?.(value, rule.target) === true ? "met" : "not met";
  });
}

function ruleOf(value: unknown): Rule | null {
  if (typeof value !== "object" || value === null) return null;
  const { metric, op, target } = value as Record<string, unknown>;
  const sound =
    typeof metric === "string" &&
    metric !== "" &&
    typeof op === "string" &&
    Object.hasOwn(COMPARISONS, op) &&
    typeof target === "number";
  return sound ? { metric, op, target } : null;
}
