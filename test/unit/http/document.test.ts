/** The published document is complete: every endpoint has an id, valid examples, its error codes, and its quote. */
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { beforeAll, describe, expect, it } from "vitest";
import { ERROR_STATUS, type ErrorCode } from "../../../src/errors.js";
import { type ApiDocument, operationsOf } from "../../../src/features/docs/document.js";
import { testApp } from "./fixtures.js";

type Media = { schema?: object; example?: unknown; examples?: Record<string, { value?: unknown }> };
interface Response {
  description: string;
  headers?: Record<string, object>;
  content?: Record<string, Media>;
}
interface Documented {
  name: string;
  path: string;
  id: string | undefined;
  tag: string;
  security: unknown;
  parameters: { name?: string }[];
  body: { required: boolean; content: Record<string, Media> } | undefined;
  responses: Record<string, Response>;
}

let operations: Documented[];
let tags: string[];
let faultsOf: (media: Media, value: unknown) => string;

beforeAll(async () => {
  const response = await testApp().app.request("/openapi.json");
  const document = (await response.json()) as ApiDocument;
  tags = (document.tags ?? []).map(({ name }) => name);
  operations = operationsOf(document)
    // Leaves out the endpoints of the test fixtures.
    .filter(({ path }) => !path.startsWith("/v1/test/"))
    .map(({ path, method, operation }) => ({
      name: `${method} ${path}`,
      path,
      id: operation.operationId,
      tag: operation.tags?.[0] ?? "",
      security: operation.security,
      parameters: (operation.parameters ?? []) as { name?: string }[],
      body: operation.requestBody as Documented["body"],
      responses: operation.responses as Record<string, Response>,
    }));
  const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true }));
  ajv.addSchema({ $id: "document", components: document.components });
  /** By their text: Ajv compiles each of them once. */
  const schemas = new Map<string, object>();
  faultsOf = (media, value) => {
    const text = JSON.stringify(media.schema).replaceAll('"#/', '"document#/');
    const schema = schemas.get(text) ?? JSON.parse(text);
    schemas.set(text, schema);
    return ajv.validate(schema, value) ? "" : ajv.errorsText();
  };
});

describe("the published document", () => {
  it("puts every endpoint under a heading that it describes", () => {
    expect(operations.filter(({ tag }) => !tags.includes(tag)).map(({ name }) => name)).toEqual([]);
  });

  it("has a valid example of every JSON body", () => {
    const faults = operations.flatMap(({ name, body, responses }) => {
      const success = (responses[200] ?? responses[201])?.content?.["application/json"];
      return [body?.content["application/json"], success].flatMap((media) => {
        if (media === undefined) return [];
        if (media.example === undefined) return [`${name}: no example`];
        const fault = faultsOf(media, media.example);
        return fault === "" ? [] : [`${name}: ${fault}`];
      });
    });
    expect(faults).toEqual([]);
  });

  it("lists the codes of every error response, at their own status and nowhere else", () => {
    for (const { name, responses } of operations) {
      expect(responses[500], name).toBeDefined();
      for (const [status, { content }] of Object.entries(responses)) {
        if (Number(status) < 400 || status === "402") continue;
        const codes = Object.keys(content?.["application/json"]?.examples ?? {}) as ErrorCode[];
        expect(codes.length, `${name} ${status}`).toBeGreaterThan(0);
        expect(
          codes.map((code) => ERROR_STATUS[code]),
          name,
        ).toEqual(codes.map(() => Number(status)));
        const media = content?.["application/json"] as Media;
        expect(faultsOf(media, { error: { code: codes[0], message: "…" } })).toBe("");
        expect(faultsOf(media, { error: { code: "other", message: "…" } })).not.toBe("");
      }
    }
  });

  it("has a 4xx of every endpoint but the probes, which refuse nothing", () => {
    const without = operations.filter(
      ({ responses }) => !Object.keys(responses).some((code) => /^4/.test(code)),
    );
    expect(without.map(({ id }) => id)).toEqual(["getHealth", "getReady"]);
  });

  it("requires a key for an endpoint about the caller, and offers it if more is shown with one", () => {
    const securityOf = (wanted: string) => operations.find(({ id }) => id === wanted)?.security;
    expect(securityOf("listApiKeys")).toEqual([{ apiKey: [] }]);
    expect(securityOf("getTerms")).toEqual([{}, { apiKey: [] }]);
    expect(securityOf("getProtocol")).toEqual([]);
  });

  it("requires every body but those that can be empty", () => {
    const optional = operations.filter(({ body }) => body?.required === false);
    expect(optional.map(({ id }) => id)).toEqual([
      "requestChallenge",
      "stake",
      "updateProfile",
      "updateWebhook",
    ]);
  });

  it("has the 413 of every call whose body is read", () => {
    const without = operations.filter(({ name, responses }) => !/^get/.test(name) && !responses[413]);
    expect(without).toEqual([]);
  });

  it("has the ETag of every read but probes and streams, and the 304 that it leads to", () => {
    const reads = operations.filter(({ name }) => name.startsWith("get"));
    const isTagged = ({ parameters, responses }: Documented) =>
      responses[304]?.headers?.ETag !== undefined &&
      responses[200]?.headers?.ETag !== undefined &&
      parameters.some(({ name }) => name === "If-None-Match");
    const without = reads.filter((read) => !isTagged(read));
    expect(without.map(({ id }) => id)).toEqual(["getHealth", "getReady", "streamEvents"]);
  });

  it("describes the payment of every paid call: quote, headers and security", () => {
    const paid = operations.filter(({ responses }) => responses[402] !== undefined);
    expect(paid.map(({ id }) => id)).toEqual([
      "createContract",
      "acceptContract",
      "disputeContract",
      "submitVotes",
      "stake",
    ]);
    for (const { parameters, responses, security } of paid) {
      expect(responses[402]?.headers).toHaveProperty("Payment-Required");
      expect(responses[200]?.headers).toHaveProperty("PAYMENT-RESPONSE");
      expect(parameters.map(({ name }) => name)).toEqual(
        expect.arrayContaining(["PAYMENT-SIGNATURE", "X-PAYMENT"]),
      );
      expect(security).toEqual([{ apiKey: [] }, { apiKey: [], payment: [] }]);
      const media = responses[402]?.content?.["application/json"] as Media;
      for (const { value } of Object.values(media.examples ?? {})) expect(faultsOf(media, value)).toBe("");
    }
  });
});
