import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BusyOperation, type Candidate, chooseOperations } from "../../../src/relayer/choose.js";
import { GAS_LIMITS } from "../../../src/relayer/operations.js";
import { byteLength, encodeBatch, operationGas } from "../../../src/relayer/transaction.js";

const candidate = (id: number, changes: Partial<Candidate> = {}): Candidate => ({
  id: BigInt(id),
  kind: "accept",
  escrow: `escrow ${id}`,
  caller: `agent ${id}`,
  gasLimit: 200_000,
  dataLength: 500,
  notAfter: null,
  createdAt: 1000,
  tries: 0,
  signed: true,
  published: false,
  ...changes,
});

const choose = (
  candidates: Candidate[],
  given: {
    busy?: BusyOperation[];
    reportedEscrows?: ReadonlySet<string>;
    signedQuotas?: ReadonlyMap<string, number>;
    batchGasLimit?: number;
    maxOperations?: number;
  } = {},
) =>
  chooseOperations({ candidates, busy: [], batchGasLimit: 16_000_000, maxOperations: 100, ...given }).map(
    Number,
  );

describe("choosing a batch", () => {
  it("takes all independent operations, in the order of their ids", () => {
    expect(choose([candidate(3), candidate(1), candidate(2)])).toEqual([1, 2, 3]);
  });

  it("takes the first of several payments that compete for an escrow", () => {
    const rivals = [1, 2, 3].map((id) => candidate(id, { escrow: "tender", notAfter: 1100 - id }));
    expect(choose([...rivals, candidate(4)])).toEqual([1, 4]);
  });

  it("takes a settlement right behind the operation that ends its contract, and never without it", () => {
    const ending = (id: number, caller: string) => candidate(id, { kind: "approve", escrow: "one", caller });
    const settlement = candidate(2, { kind: "settle", escrow: "one", caller: null });
    expect(choose([ending(1, "client"), settlement, candidate(3)])).toEqual([1, 2, 3]);
    const busy: BusyOperation[] = [{ kind: "create", escrow: "two", caller: "client" }];
    expect(choose([ending(1, "client"), settlement, candidate(3)], { busy })).toEqual([3]);
    const acceptance = candidate(1, { escrow: "one" });
    expect(choose([acceptance, settlement])).toEqual([1]);
  });

  it("takes as many signed operations of a wallet as its quota says, and nothing of it behind them", () => {
    const own = [1, 2, 3, 4].map((id) => candidate(id, { caller: "wallet", signed: id !== 2 }));
    const allow = (count: number) => ({ signedQuotas: new Map([["wallet", count]]) });
    expect(choose([...own, candidate(5)], allow(1))).toEqual([1, 2, 5]);
    expect(choose([...own, candidate(5)], allow(2))).toEqual([1, 2, 3, 5]);
    expect(choose([...own, candidate(5)])).toEqual([1, 2, 3, 4, 5]);
  });

  it("keeps a rival behind an acceptance that a reorg undid after its response", () => {
    const rival = candidate(1, { escrow: "tender" });
    const reported = candidate(2, { escrow: "tender", published: true });
    const reportedEscrows = new Set(["tender"]);
    expect(choose([rival, reported, candidate(3)], { reportedEscrows })).toEqual([2, 3]);
    expect(choose([rival, candidate(3)], { reportedEscrows })).toEqual([3]);
  });

  it("lets earlier sent operations on such an escrow go first, because the acceptance can depend on them", () => {
    const creation = candidate(1, { kind: "create", escrow: "tender", published: true });
    const reported = candidate(2, { escrow: "tender", published: true });
    expect(choose([creation, reported], { reportedEscrows: new Set(["tender"]) })).toEqual([1]);
  });

  it("lets a rival that has not failed go before one that has, however soon the latter expires", () => {
    const failed = candidate(1, { escrow: "tender", notAfter: 1010, tries: 1, published: true });
    const rival = candidate(2, { escrow: "tender" });
    expect(choose([failed, rival, candidate(3)])).toEqual([2, 3]);
    expect(choose([failed, candidate(3)])).toEqual([1, 3]);
    expect(choose([failed, rival], { reportedEscrows: new Set(["tender"]) })).toEqual([1]);
  });

  it("retries a failed operation before the settlement that waits for it", () => {
    const failed = candidate(1, { escrow: "cancelled", tries: 1, published: true });
    const settlement = candidate(2, { kind: "settle", escrow: "cancelled", caller: null });
    expect(choose([failed, settlement])).toEqual([1]);
    expect(choose([settlement, failed, candidate(3, { caller: "agent 1" })])).toEqual([1, 3]);
  });

  it("applies what was reported as applied before what its own agent sent first", () => {
    const reportedEscrows = new Set(["tender", "other"]);
    const reported = (id: number, changes = {}) => candidate(id, { published: true, ...changes });
    const overtaken = candidate(1, { escrow: "tender", caller: "agent", tries: 1 });
    expect(
      choose([overtaken, reported(2, { escrow: "tender", caller: "agent" })], { reportedEscrows }),
    ).toEqual([2]);
    const crossed = [
      candidate(1, { escrow: "other", caller: "one" }),
      candidate(2, { escrow: "tender", caller: "two" }),
      reported(3, { escrow: "tender", caller: "one" }),
      reported(4, { escrow: "other", caller: "two" }),
      candidate(5, { caller: "one" }),
    ];
    expect(choose(crossed, { reportedEscrows })).toEqual([3, 4]);
  });

  it("retries an agent's failed operation before that agent's next one, and treats two agents independently", () => {
    const [one, two] = ["agent one", "agent two"];
    const failed = candidate(1, { escrow: "tender", caller: one, tries: 1, published: true });
    const own = candidate(2, { escrow: "tender", caller: one, kind: "decline" });
    expect(choose([failed, own])).toEqual([1]);
    const crossed = [
      candidate(1, { escrow: "first", caller: one, tries: 1, published: true }),
      candidate(2, { escrow: "second", caller: two, tries: 1, published: true }),
      candidate(3, { escrow: "second", caller: one }),
      candidate(4, { escrow: "first", caller: two }),
    ];
    expect(choose(crossed)).toEqual([1, 2]);
  });

  it("lets an agent's reported operation go before those that wait, and those sent before it stay ahead", () => {
    const reportedEscrows = new Set(["tender"]);
    const own = (id: number, changes: Partial<Candidate>) => candidate(id, { caller: "agent", ...changes });
    const waiting = own(1, { escrow: "tender" });
    const reported = own(3, { escrow: "tender", published: true });
    expect(choose([waiting, own(2, {}), reported], { reportedEscrows })).toEqual([3]);
    expect(choose([waiting, own(2, { published: true }), reported], { reportedEscrows })).toEqual([2, 3]);
  });

  it.each(["deliver", "draw"] as const)(
    "takes no refund on an escrow behind another one while a %s waits, however urgent the refund's caller is",
    (kind) => {
      const busy: BusyOperation[] = [{ kind: "refund-direct-transfer", escrow: "one", caller: "stranger" }];
      const waiting = candidate(1, { kind, escrow: "one", caller: kind === "draw" ? null : "agent" });
      const refund = candidate(2, { kind: "refund-direct-transfer", escrow: "one", caller: "another" });
      const urgent = candidate(3, { caller: "another", notAfter: 1 });
      expect(choose([waiting, refund, urgent, candidate(4)], { busy })).toEqual([4]);
      expect(choose([refund, urgent], { busy })).toEqual([2, 3]);
      expect(choose([waiting, refund, urgent])).toEqual([1, 2, 3]);
    },
  );

  it("takes several votes on one escrow", () => {
    expect(choose([1, 2, 3].map((id) => candidate(id, { kind: "vote", escrow: "disputed" })))).toEqual([
      1, 2, 3,
    ]);
  });

  it("leaves an escrow alone while a deciding action on it is pending", () => {
    const busy: BusyOperation[] = [{ kind: "dispute", escrow: "busy", caller: "client" }];
    const vote = candidate(1, { kind: "vote", escrow: "busy" });
    expect(choose([vote, candidate(2)], { busy })).toEqual([2]);
  });

  it("holds a tally while votes are being opened", () => {
    const busy: BusyOperation[] = [{ kind: "open-vote", escrow: "busy", caller: null }];
    const tally = candidate(1, { kind: "tally", escrow: "busy", caller: null });
    const opening = candidate(2, { kind: "open-vote", escrow: "busy", caller: null });
    expect(choose([tally, opening], { busy })).toEqual([2]);
  });

  it("keeps an agent's order: no operation is sent before that agent's earlier ones", () => {
    const delegate = candidate(1, { kind: "delegate", escrow: null, caller: "agent", gasLimit: 900_000 });
    const deliver = candidate(2, { kind: "deliver", caller: "agent", gasLimit: 50_000 });
    const other = candidate(3, { gasLimit: 700_000, notAfter: 1 });
    expect(choose([delegate, deliver])).toEqual([1, 2]);
    expect(choose([delegate, deliver, other], { batchGasLimit: 1_000_000 })).toEqual([3]);
  });

  it("prefers the sooner deadline when not all fit, and makes an agent's earlier actions as urgent", () => {
    const gas = operationGas(candidate(0)) * 2 + 1;
    const late = candidate(1, { notAfter: 1100 });
    const delegation = candidate(2, { kind: "delegate", escrow: null, caller: "agent" });
    const soon = candidate(3, { caller: "agent", notAfter: 1010 });
    expect(choose([late, delegation, soon], { batchGasLimit: gas })).toEqual([2, 3]);
  });

  it("does not let deadlines starve operations without one", () => {
    const gas = operationGas(candidate(0)) + 1;
    const old = candidate(1, { createdAt: 0 });
    expect(choose([old, candidate(2, { notAfter: 500 })], { batchGasLimit: gas })).toEqual([1]);
  });

  it("sends a suspect alone", () => {
    expect(choose([candidate(1, { tries: 3 }), candidate(2)])).toEqual([1]);
    expect(choose([candidate(1), candidate(2, { tries: 3 })])).toEqual([1]);
  });

  it("fills no transaction beyond what nodes accept, however long the signatures", () => {
    const lengths = fc.array(fc.integer({ min: 100, max: 40_000 }), { minLength: 20, maxLength: 60 });
    fc.assert(
      fc.property(lengths, (dataLengths) => {
        const candidates = dataLengths.map((dataLength, index) => candidate(index, { dataLength }));
        const chosen = choose(candidates, { batchGasLimit: Number.POSITIVE_INFINITY });
        const calls = chosen.map((index) => ({
          target: `0x${"ab".repeat(20)}` as const,
          gasLimit: 200_000,
          data: `0x${"cd".repeat(dataLengths[index] ?? 0)}` as const,
        }));
        expect(byteLength(encodeBatch(calls))).toBeLessThanOrEqual(128 * 1024 - 1_000);
        expect(chosen.length).toBeGreaterThan(1);
      }),
    );
  });

  it("never breaks its limits on any queue, and sends an operation larger than the budget alone", () => {
    const operation = fc.record({
      kind: fc.constantFrom(...(Object.keys(GAS_LIMITS) as (keyof typeof GAS_LIMITS)[])),
      escrow: fc.option(fc.constantFrom("e1", "e2", "e3")),
      caller: fc.option(fc.constantFrom("a1", "a2", "a3")),
      gasLimit: fc.integer({ min: 50_000, max: 5_000_000 }),
      notAfter: fc.option(fc.integer({ min: 900, max: 2000 })),
      tries: fc.integer({ min: 0, max: 4 }),
      published: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(operation, { maxLength: 30 }),
        fc.array(operation, { maxLength: 4 }),
        (queue, busy) => {
          const candidates = queue.map((one, index) => candidate(index + 1, one));
          const isReported = ({ published, id, escrow }: Candidate) =>
            published && escrow !== null && id % 3n === 0n;
          const reportedEscrows = new Set(
            candidates.filter(isReported).map(({ escrow }) => escrow as string),
          );
          const chosen = choose(candidates, {
            busy,
            reportedEscrows,
            batchGasLimit: 4_000_000,
            maxOperations: 6,
          });
          const rows = chosen.map((id) => candidates[id - 1] as Candidate);
          expect(chosen).toEqual([...chosen].sort((a, b) => a - b));
          expect(chosen.length).toBeLessThanOrEqual(6);
          if (busy.length === 0) expect(chosen.length > 0).toBe(candidates.length > 0);
          if (chosen.length > 1) {
            expect(rows.reduce((sum, row) => sum + operationGas(row), 0)).toBeLessThanOrEqual(4_000_000);
            expect(rows.every(({ tries }) => tries < 3)).toBe(true);
          }
          for (const row of rows) {
            const own = candidates.filter(
              ({ caller, id }) => caller !== null && caller === row.caller && id < row.id,
            );
            // An operation never sent waits behind a reported one, and so do all that the agent sent later.
            const waiting = own.find(
              ({ published, escrow }) => !published && reportedEscrows.has(escrow ?? ""),
            );
            const earlier = own.filter(
              ({ published, id }) => published || waiting === undefined || id < waiting.id,
            );
            expect(earlier.every(({ id }) => chosen.includes(Number(id)))).toBe(true);
            expect(busy.some(({ caller }) => caller !== null && caller === row.caller)).toBe(false);
          }
        },
      ),
    );
  });
});
