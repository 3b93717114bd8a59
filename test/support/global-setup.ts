/** One stack for a whole vitest project. Test files get it from `sharedStack()`. */
import type { TestProject } from "vitest/node";
import { type StackInfo, startStack } from "./stack.js";

declare module "vitest" {
  export interface ProvidedContext {
    stack: StackInfo;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stack = await startStack();
  project.provide("stack", stack.info);
  project.provide("databaseUrl", stack.info.databaseUrl);
  return () => stack.stop();
}
