/** A stack with sample contracts, and a browser, for all files of the project. */
import type { TestProject } from "vitest/node";
import { startStack } from "../../support/stack.js";
import { openWorld } from "../../support/world.js";
import { findChromium } from "./chromium.js";
import { type Seed, seed } from "./seed.js";

declare module "vitest" {
  export interface ProvidedContext {
    /** Null if there is no browser. Then there is no stack either, and every test is skipped. */
    chromium: string | null;
    seed: Seed;
    operatorKey: string;
  }
}

const OPERATOR_KEY = "a key that only the operator knows";
/** On a slow machine responses are late and the index lags. Neither is the fault of a page. */
const PATIENCE = { SETTLEMENT_WAIT_MS: "100000", READY_MAX_INDEX_LAG: "1000" };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const chromium = findChromium();
  project.provide("chromium", chromium);
  if (chromium === null) return async () => {};

  const stack = await startStack({ env: { OPERATOR_KEY, ...PATIENCE } });
  const wallClock = Date.now;
  try {
    const world = await openWorld(stack.info);
    project.provide("stack", stack.info);
    project.provide("operatorKey", OPERATOR_KEY);
    project.provide("seed", await seed(world));
    await world.close();
  } catch (error) {
    await stack.stop();
    throw error;
  } finally {
    // Payment clients sign with the chain's time. The runner itself keeps its own clock.
    Date.now = wallClock;
  }
  return () => stack.stop();
}
