import { provenTerms } from "@working-contracts/client/index";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import { expect, it } from "vitest";
import { NETWORK } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

it("terms are proven if the document says what the escrow does", () => {
  const { id, terms } = servedTerms();
  expect(provenTerms(id, terms, NETWORK)).toMatchObject({ criteriaCount: 1 });
});

it("terms are not proven with parameters that no factory's code accepts", () => {
  const { id, terms } = servedTerms({ parameters: { ...DEFAULT_PARAMETERS, protocolFee: 10_000 } });
  const prove = () => provenTerms(id, terms, NETWORK);
  expect(prove).toThrow(expect.objectContaining({ name: "RefusedToSign", field: "protocolFee" }));
});

it.each([{ workerInitiated: true }, { computedCriteria: true }, { criteriaCount: 2 }])(
  "terms are not proven if the escrow has %j and the document does not",
  (changes) => {
    const { id, terms } = servedTerms(changes);
    const prove = () => provenTerms(id, terms, NETWORK);
    const message = expect.stringContaining("initiator, number of criteria or application differs");
    expect(prove).toThrow(expect.objectContaining({ name: "RefusedToSign", field: "terms", message }));
  },
);
