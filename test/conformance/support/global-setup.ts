/** One service for all chapters: the one given to `npm run conformance`, or a whole separate stack. */
import type { TestProject } from "vitest/node";
import { startStack } from "../../support/stack.js";
import { foreignTarget, ownTarget, type Target } from "./target.js";

declare module "vitest" {
  export interface ProvidedContext {
    target: Target;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (process.env.CONFORMANCE_URL) {
    project.provide("target", await foreignTarget(process.env));
    return async () => {};
  }
  // On a slow machine responses are late. The chapters check each response and retry no call that is still pending.
  const stack = await startStack({ env: { SETTLEMENT_WAIT_MS: "100000" } });
  project.provide("target", ownTarget(stack.info));
  return () => stack.stop();
}
