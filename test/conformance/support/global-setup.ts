/** One service for all chapters: the one that `npm run conformance` was pointed at, or a whole stack of our own. */
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
  // On a slow machine answers come late: the chapters judge them, and repeat no call that is told to be repeated.
  const stack = await startStack({ env: { SETTLEMENT_WAIT_MS: "100000" } });
  project.provide("target", ownTarget(stack.info));
  return () => stack.stop();
}
