/** Calls whose caller has not seen the outcome. None is forgotten while a repeat of it could pay again. */
import { randomUUID } from "node:crypto";

const MAX_CALLS = 1_000;

export interface UnfinishedCall {
  /** Tool and input. */
  key: string;
  resumeId: string;
  /** Starts the call if needed; every invocation returns the same outcome. */
  outcome: () => Promise<object>;
  /** No caller waits for it: the next one with the same input gets its outcome. */
  isAbandoned: boolean;
  hasEnded: boolean;
}

export type UnfinishedCalls = ReturnType<typeof createUnfinishedCalls>;

export function createUnfinishedCalls(max = MAX_CALLS) {
  const calls = new Set<UnfinishedCall>();
  const taken = (isWanted: (call: UnfinishedCall) => boolean): UnfinishedCall | undefined => {
    const call = [...calls].find(isWanted);
    if (call !== undefined) call.isAbandoned = false;
    return call;
  };
  return {
    /**
     * The abandoned call with this tool and input, otherwise a new one that will `begin`. If there are too many, forgets the
     * oldest that has ended. Throws if none has.
     */
    enter(key: string, begin: () => Promise<object>): UnfinishedCall {
      const earlier = taken((call) => call.isAbandoned && call.key === key);
      if (earlier !== undefined) return earlier;
      if (calls.size >= max) {
        const ended = [...calls].find(({ hasEnded }) => hasEnded);
        if (ended === undefined)
          throw new Error(`${max} calls are pending. Repeat or resume some of them, then try again.`);
        calls.delete(ended);
      }
      const call = {
        key,
        resumeId: randomUUID(),
        outcome: once(begin),
        isAbandoned: false,
        hasEnded: false,
      };
      calls.add(call);
      return call;
    },
    resume: (resumeId: string) => taken((call) => call.resumeId === resumeId),
    /** Its caller has seen the outcome. */
    forget: (call: UnfinishedCall) => calls.delete(call),
  };
}

export function once(begin: () => Promise<object>): () => Promise<object> {
  let begun: Promise<object> | undefined;
  return () => {
    begun ??= begin();
    return begun;
  };
}
