import { escrowAbi as read } from "@working-contracts/client/verify/read-chain";
import { escrowAbi } from "@working-contracts/protocol/abi";
import { expect, it } from "vitest";

it("verify reads every event of the escrow", () => {
  expect(read.filter(({ type }) => type === "event")).toEqual(
    escrowAbi.filter(({ type }) => type === "event"),
  );
  for (const entry of read) expect(escrowAbi).toContainEqual(entry);
});
