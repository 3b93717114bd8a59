/** Tests named word for word after the sentence of the specification that they check. */
import { describe, inject, type TestContext, test } from "vitest";
import type { ApiResponse } from "../../support/agent.js";
import type { Ability } from "../../support/world.js";

declare module "vitest" {
  interface TaskMeta {
    /** The abilities that this target lacks, for which the test was skipped. */
    missing?: Ability[];
  }
}

/** Asks for version 2's empty body of a quote: a local network, unlike others, quotes version 1 in every body by default. */
export function asVersion2(): Record<string, string> {
  return inject("target").stack === null ? { "x-402-version": "2" } : {};
}

/** Status and code of a rejected call. */
export const refusal = ({ status, error }: Pick<ApiResponse, "status" | "error">): string =>
  `${status} ${error?.code}`;

/** The codes of rejected calls and the statuses of the others, sorted. */
export const codes = (responses: Pick<ApiResponse, "status" | "error">[]): (string | number)[] =>
  responses.map(({ status, error }) => error?.code ?? status).sort();

/** Each sentence is of the surrounding chapter or, as "Chapter > sentence", of another one that the run shows as well. */
type Says = (
  sentences: string | string[],
  run: (context: TestContext) => Promise<unknown>,
  timeoutMs?: number,
) => void;

/** The chapter that is being registered, and its sentences by the chapter that reports them. */
let open: { name: string; byChapter: Map<string, (() => void)[]> } | undefined;

/** A `describe` whose runs can show sentences of other chapters as well. Those are reported under their own chapter. */
export function chapter(name: string, tell: () => void): void {
  const byChapter = new Map<string, (() => void)[]>([[name, []]]);
  open = { name, byChapter };
  tell();
  open = undefined;
  for (const [title, sentences] of byChapter) {
    describe(title, () => {
      for (const register of sentences) register();
    });
  }
}

/**
 * The sentences of one chapter run at once, each with separate agents. Sentences that share a run all fail if it does.
 */
function needing(...abilities: Ability[]): Says {
  return (sentences, run, timeoutMs) => {
    let shared: Promise<unknown> | undefined;
    const judge = async (context: TestContext): Promise<void> => {
      const { can } = inject("target");
      const missing = abilities.filter((ability) => !can.includes(ability));
      if (missing.length > 0) {
        context.task.meta.missing = missing;
        context.skip(`needs ${missing.join(", ")}`);
      }
      shared ??= run(context);
      await shared;
    };
    for (const sentence of [sentences].flat()) {
      const [, elsewhere, says = ""] = /^(.*?) > (.*)$/.exec(sentence) ?? [undefined, undefined, sentence];
      const register = () => test.concurrent(says, judge, timeoutMs);
      if (open !== undefined) {
        const title = elsewhere ?? open.name;
        open.byChapter.set(title, [...(open.byChapter.get(title) ?? []), register]);
      } else if (elsewhere === undefined) register();
      else throw new Error(`Only inside chapter(): ${sentence}`);
    }
  };
}

export const says = needing();
export const withMoney = needing("money");
export const withJury = needing("money", "tokens");
export const withJuryAndClock = needing("money", "tokens", "clock");
export const withDatabase = needing("money", "database");
export const withStack = needing("money", "stack");
