import { createHash } from "node:crypto";
import {
  canonicalTerms,
  creationSalt,
  packTerms,
  termsDocument,
  termsHash,
  unpackTerms,
} from "@working-contracts/protocol/terms";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import fc from "fast-check";
import { keccak256, stringToHex } from "viem";
import { describe, expect, it } from "vitest";
import { termsArbitrary } from "./fixtures.js";

const CALLER = "0x00000000000000000000000000000000000000aa";

describe("terms document", () => {
  const text = {
    title: "Translate",
    taskDescription: "Übersetze € 5",
    acceptanceCriteria: ["b", "a"],
    awardMethod: "open_tender",
    initiator: "client",
    salt: `0x${"00".repeat(32)}`,
  } as const;
  const document = termsDocument({ ...text, acceptanceCriteria: [...text.acceptanceCriteria] });

  it("has one canonical text: sorted keys, null for absent fields, the given order of criteria", () => {
    expect(canonicalTerms(document)).toMatchInlineSnapshot(
      `"{"acceptanceCriteria":["b","a"],"application":null,"applicationTerms":null,"awardMethod":"open_tender","contractType":"fixed","initiator":"client","salt":"0x0000000000000000000000000000000000000000000000000000000000000000","supplementaryMaterialsHash":null,"taskDescription":"Übersetze € 5","title":"Translate","verificationMode":"privacy-preserving"}"`,
    );
    expect(termsHash(document)).toBe(keccak256(stringToHex(canonicalTerms(document))));
  });

  it("does not depend on the order in which application terms were written", () => {
    const one = { ...document, applicationTerms: { a: 1, b: { c: 2, d: 3 } } };
    const other = { ...document, applicationTerms: { b: { d: 3, c: 2 }, a: 1 } };
    expect(termsHash(one)).toBe(termsHash(other));
  });

  it("contains only the hash of supplementary materials", () => {
    const withMaterials = termsDocument({
      ...text,
      acceptanceCriteria: ["a"],
      supplementaryMaterials: "ipfs://secret",
    });
    expect(withMaterials.supplementaryMaterialsHash).toBe(keccak256(stringToHex("ipfs://secret")));
    expect(canonicalTerms(withMaterials)).not.toContain("secret");
  });

  it("distinguishes an empty reference from an absent one", () => {
    const empty = termsDocument({ ...text, acceptanceCriteria: ["a"], supplementaryMaterials: "" });
    expect(empty.supplementaryMaterialsHash).toBe(keccak256("0x"));
  });

  it("changes its hash with every field", () => {
    const hash = termsHash(document);
    const changed = [
      { title: "Other" },
      { taskDescription: "Other" },
      { acceptanceCriteria: ["a", "b"] },
      { awardMethod: "direct_award" },
      { initiator: "worker" },
      { application: "usageticket" },
      { applicationTerms: {} },
      { supplementaryMaterialsHash: hash },
      { salt: hash },
    ].map((change) => termsHash({ ...document, ...change }));
    expect(new Set([hash, ...changed]).size).toBe(changed.length + 1);
  });

  it("rejects text that UTF-8 cannot encode", () => {
    expect(() => termsHash({ ...document, title: "\ud800" })).toThrow("Lone surrogate");
  });
});

it("a creation's salt is keccak256 of the caller's 20 bytes and the body's SHA-256", () => {
  const body = Buffer.from('{"title":"x"}');
  const hash = createHash("sha256").update(body).digest();
  const packed = Buffer.concat([Buffer.from(CALLER.slice(2), "hex"), hash]);
  expect(creationSalt(CALLER, body)).toBe(keccak256(packed));
});

it("packed terms reject values that do not fit and bytes that are too short", () => {
  const [terms] = fc.sample(termsArbitrary, 1) as [EscrowTerms];
  expect(() => packTerms({ ...terms, price: 2n ** 80n })).toThrow();
  expect(() => packTerms({ ...terms, matchDeadline: 2 ** 32 })).toThrow();
  const parameters = { ...terms.parameters, protocolFee: 65_536 };
  expect(() => packTerms({ ...terms, parameters })).toThrow();
  for (const change of [
    { counterparty: "0x" },
    { initiator: `0x${"g".repeat(40)}` },
    { termsHash: "0x12" },
    { matchDeadline: "1800000000" },
    { price: "1" },
  ])
    expect(() => packTerms({ ...terms, ...change } as never), JSON.stringify(change)).toThrow(RangeError);
  expect(() => unpackTerms("0x00")).toThrow("neither 109 nor 129 bytes");
});
