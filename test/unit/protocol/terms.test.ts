import { createHash } from "node:crypto";
import { voteCommitment } from "@working-contracts/protocol/outcomes";
import { challengeText, FULL_PERMISSION } from "@working-contracts/protocol/signatures";
import {
  canonicalTerms,
  creationSalt,
  DEFAULT_PARAMETERS,
  escrowAddress,
  packParameters,
  packTerms,
  termsDocument,
  termsHash,
  unpackTerms,
} from "@working-contracts/protocol/terms";
import type { EscrowTerms } from "@working-contracts/protocol/types";
import fc from "fast-check";
import { keccak256, size, stringToHex, zeroAddress } from "viem";
import { describe, expect, it } from "vitest";
import { termsArbitrary } from "./fixtures.js";

const CALLER = "0x00000000000000000000000000000000000000aa";
const FACTORY = "0x00000000000000000000000000000000000000f0";
const IMPLEMENTATION = "0x00000000000000000000000000000000000000e0";

const terms: EscrowTerms = {
  initiator: CALLER,
  price: 50_000_000n,
  counterparty: "0x00000000000000000000000000000000000000bb",
  criteriaCount: 3,
  workerInitiated: false,
  computedCriteria: true,
  matchDeadline: 1_800_000_000,
  withdrawalDeadline: 1_800_000_100,
  deliveryDeadline: 1_800_000_200,
  reviewDeadline: 1_800_000_300,
  termsHash: `0x${"12".repeat(32)}`,
  parameters: DEFAULT_PARAMETERS,
};

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

describe("creationSalt", () => {
  it("is keccak256 of the caller's 20 bytes and the body's SHA-256", () => {
    const body = Buffer.from('{"title":"x"}');
    const packed = Buffer.concat([
      Buffer.from(CALLER.slice(2), "hex"),
      createHash("sha256").update(body).digest(),
    ]);
    expect(creationSalt(CALLER, body)).toBe(keccak256(packed));
  });

  it("differs by one byte of white space", () => {
    expect(creationSalt(CALLER, Buffer.from("{}"))).not.toBe(creationSalt(CALLER, Buffer.from("{ }")));
  });
});

describe("packed terms", () => {
  it("are 109 bytes, or 129 with a named counterparty, and survive a round trip", () => {
    fc.assert(
      fc.property(termsArbitrary, (any) => {
        const packed = packTerms(any);
        expect(size(packed)).toBe(any.counterparty === zeroAddress ? 109 : 129);
        expect(unpackTerms(packed)).toEqual(any);
      }),
    );
  });

  it("match the layout of TermsCodec", () => {
    expect(packTerms(terms)).toMatchInlineSnapshot(
      `"0x00000000000000000000000000000000000000aa00000000000002faf08003026b49d2006b49d2646b49d2c86b49d32c121212121212121212121212121212121212121212121212121212121212121201f401f401f401f40bb81f400bb8000a0004000003e80151800000000000000000000000000000000000000000000000bb"`,
    );
    const open = packTerms({ ...terms, counterparty: zeroAddress });
    expect(open.endsWith(packParameters(terms.parameters).slice(2))).toBe(true);
    expect(packTerms(terms)).toBe(open + terms.counterparty.slice(2));
  });

  it("reject values that do not fit and bytes that are too short", () => {
    expect(() => packTerms({ ...terms, price: 2n ** 80n })).toThrow();
    expect(() => packTerms({ ...terms, matchDeadline: 2 ** 32 })).toThrow();
    expect(() =>
      packTerms({ ...terms, parameters: { ...DEFAULT_PARAMETERS, protocolFee: 65_536 } }),
    ).toThrow();
    expect(() => unpackTerms("0x00")).toThrow("neither 109 nor 129 bytes");
  });
});

describe("escrowAddress", () => {
  const addressOf = (changed: Partial<EscrowTerms>) =>
    escrowAddress({ factory: FACTORY, implementation: IMPLEMENTATION, terms: { ...terms, ...changed } });

  it("is lower case and the same for the same terms", () => {
    expect(addressOf({})).toMatch(/^0x[0-9a-f]{40}$/);
    expect(addressOf({})).toBe(addressOf({}));
  });

  it("changes with every term", () => {
    const changes: Partial<EscrowTerms>[] = [
      {},
      { initiator: FACTORY },
      { price: 1n },
      { counterparty: FACTORY },
      { criteriaCount: 2 },
      { workerInitiated: true },
      { computedCriteria: false },
      { matchDeadline: 1 },
      { withdrawalDeadline: 1 },
      { deliveryDeadline: 1 },
      { reviewDeadline: 1 },
      { termsHash: `0x${"13".repeat(32)}` },
      ...Object.keys(DEFAULT_PARAMETERS).map((name) => ({
        parameters: { ...DEFAULT_PARAMETERS, [name]: 77 },
      })),
    ];
    expect(new Set(changes.map(addressOf)).size).toBe(changes.length);
  });
});

describe("challengeText", () => {
  const fields = {
    domain: "contracts.example",
    agent: "0x00000000000000000000000000000000000000AA",
    operator: "0x00000000000000000000000000000000000000BB",
    factory: "0x00000000000000000000000000000000000000CC",
    chainId: 84_532,
    ...FULL_PERMISSION,
    nonce: `0x${"AB".repeat(32)}`,
    issuedAt: 951_782_400,
    expiresAt: 951_782_700,
  } as const;

  it("names service, agent, purpose, delegation, chain, nonce and times", () => {
    expect(challengeText(fields)).toMatchInlineSnapshot(`
      "contracts.example asks you to sign in with your address:
      0x00000000000000000000000000000000000000aa

      Purpose: issue or revoke an API key.
      The holder of the key may have the operator 0x00000000000000000000000000000000000000bb carry out this address's contract actions at the escrow factory 0x00000000000000000000000000000000000000cc until revoked.
      Signing moves no money and costs no gas.

      Chain ID: 84532
      Nonce: 0xabababababababababababababababababababababababababababababababab
      Issued At: 2000-02-29T00:00:00Z
      Expires At: 2000-02-29T00:05:00Z"
    `);
  });
});

describe("voteCommitment", () => {
  const ballot = {
    chainId: 1,
    escrow: FACTORY,
    voter: CALLER,
    votes: 0b01_10_11,
    salt: `0x${"01".repeat(32)}`,
  } as const;

  it("changes with chain, escrow, voter, votes and salt", () => {
    const commitments = [
      ballot,
      { ...ballot, chainId: 2 },
      { ...ballot, escrow: CALLER },
      { ...ballot, voter: FACTORY },
      { ...ballot, votes: 0b01_10_01 },
      { ...ballot, salt: `0x${"02".repeat(32)}` },
    ] as const;
    expect(new Set(commitments.map(voteCommitment)).size).toBe(commitments.length);
  });
});
