/** Tests named word for word after the sentence of the specification that they check. */
import { inject, type TestContext, test } from "vitest";
import type { Ability } from "../../support/world.js";

declare module "vitest" {
  interface TaskMeta {
    /** The abilities that this target lacks, for which the test was skipped. */
    missing?: Ability[];
  }
}

type Says = (sentence: string, run: (context: TestContext) => Promise<unknown>, timeoutMs?: number) => void;

/** The sentences of one file run at once, each with separate agents. */
function needing(...abilities: Ability[]): Says {
  return (sentence, run, timeoutMs) => {
    const judge = async (context: TestContext): Promise<void> => {
      const { can } = inject("target");
      const missing = abilities.filter((ability) => !can.includes(ability));
      if (missing.length > 0) {
        context.task.meta.missing = missing;
        context.skip(`needs ${missing.join(", ")}`);
      }
      await run(context);
    };
    test.concurrent(sentence, judge, timeoutMs);
  };
}

export const says = needing();
export const withMoney = needing("money");
export const withJury = needing("money", "tokens");
export const withJuryAndClock = needing("money", "tokens", "clock");
export const withDatabase = needing("money", "database");
export const withStack = needing("money", "stack");
