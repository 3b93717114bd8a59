/** The Merkle root over a contract's checkpoints, and criteria that are computed from the last one (`usageticket`). */
import canonicalize from "canonicalize";
import { concatHex, keccak256, stringToHex } from "./hex.js";
import type { Outcome } from "./outcomes.js";
import type { Hex } from "./types.js";

/** The root of a contract without checkpoints. */
export const ZERO_HASH: Hex = `0x${"0".repeat(64)}`;

/** keccak256 of a Checkpoint's canonical JSON (RFC 8785), as the API serves it, without `id` and `createdAt`. */
export function checkpointLeaf({ id: _, createdAt: __, ...content }: Record<string, unknown>): Hex {
  return keccak256(stringToHex(canonicalize(content) ?? ""));
}

/** Laid out as OpenZeppelin's SimpleMerkleTree: the root first, children of i at 2i+1 and 2i+2, sorted leaves backwards. */
export function rootOfLeaves(leaves: readonly Hex[]): Hex {
  const nodes = [...leaves.slice(1), ...[...leaves].sort().reverse()];
  for (let i = leaves.length - 2; i >= 0; i--) {
    const pair = [nodes[2 * i + 1], nodes[2 * i + 2]] as Hex[];
    nodes[i] = keccak256(concatHex(pair.sort()));
  }
  return nodes[0] ?? ZERO_HASH;
}

const COMPARISONS: Record<string, (value: number, target: number) => boolean> = {
  ">=": (value, target) => value >= target,
  ">": (value, target) => value > target,
  "<=": (value, target) => value <= target,
  "<": (value, target) => value < target,
  "==": (value, target) => value === target,
};

/** One outcome per criterion: a missing or malformed rule gives `unclear`, one without a number to compare `not met`. */
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

function ruleOf(value: unknown) {
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
