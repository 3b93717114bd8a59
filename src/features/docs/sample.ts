/** Examples of the API's document, derived from its schemas, so that they cannot contradict them. */

/** The parts of JSON Schema that the document uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  pattern?: string;
  description?: string;
  example?: unknown;
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
}

const ESCROW = "0x2c7e1e0f4f6c0a9b8d3e5a7f1b2c3d4e5f60718a";
const HASH = `0x${"5d".repeat(32)}`;
const REFERENCE = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..3v1cZ0y9QmR8sT2u.Yk1oV0x4.6Q0mXb3nP7rT9vWz1aBcDg";

/** Values of fields whose schema has no example. A field has the same name and meaning everywhere. */
const VALUES: Record<string, unknown> = {
  acceptanceCriteria: "At most one page",
  agents: "0x52908400098527886e0f7030069857d2e4169ee7",
  apiKey: "wc_test_…",
  application: null,
  applicationTerms: null,
  awardMethod: "open_tender",
  bio: "Commissions summaries.",
  blockNumber: 21_001_000,
  chainId: 84_532,
  challengeId: "ch_9b2f6d0c4e8a4f7d",
  contractId: ESCROW,
  contractType: "fixed",
  criteriaMet: null,
  data: { tokensServed: 125_000 },
  decimals: 6,
  delivery: REFERENCE,
  deliveryDeadline: "2026-02-02T12:00:00Z",
  disputeBond: null,
  disabledAt: null,
  disabledReason: null,
  displayName: "Reader",
  evidence: { messages: ["The delivery was copied."] },
  extensions: {},
  id: ESCROW,
  idempotencyKey: "3f1c9a52",
  label: "laptop",
  lastError: null,
  network: "eip155:84532",
  nextCursor: null,
  price: "50000000",
  reviewDeadline: "2026-02-03T12:00:00Z",
  symbol: "USDC",
  supplementaryMaterials: null,
  taskDescription: "One page on https://example.org/paper.pdf",
  title: "Summarise a paper",
  verificationMode: "privacy-preserving",
  vote: "met",
  withdrawalDeadline: "2026-02-01T12:00:00Z",
  worker: null,
  workerStake: null,
};

/** Creates a value that the schema allows. In a request, optional fields are left out if any field is required. */
export function sampler(components: Record<string, Schema>, kind: "request" | "response") {
  return sample;

  function sample(schema: Schema, name = ""): unknown {
    if (schema.$ref !== undefined) return sample(components[schema.$ref.split("/").at(-1) ?? ""] ?? {}, name);
    if (schema.const !== undefined) return schema.const;
    if (schema.properties !== undefined) return fieldsOf(schema);
    if (schema.allOf !== undefined)
      return Object.assign({}, ...schema.allOf.map((part) => sample(part, name)));
    if (isAllowed(schema, VALUES[name])) return VALUES[name];
    if (schema.items !== undefined) return [sample(schema.items, name)];
    if (schema.example !== undefined) return schema.example;
    if (schema.enum !== undefined) return schema.enum[0];
    const choice = (schema.anyOf ?? schema.oneOf)?.find(({ type }) => type !== "null");
    return choice === undefined ? plainValue(schema, name) : sample(choice, name);
  }

  function fieldsOf({ properties = {}, required = [] }: Schema): Record<string, unknown> {
    const isLean = kind === "request" && required.length > 0;
    return Object.fromEntries(
      Object.entries(properties)
        .filter(([name]) => !isLean || required.includes(name))
        .map(([name, field]) => [name, sample(field, name)]),
    );
  }
}

/** Whether a value of the table fits the field's type; a name can be used by fields of two types. */
function isAllowed({ type, enum: words }: Schema, value: unknown): boolean {
  if (value === undefined) return false;
  if (words !== undefined) return words.includes(value);
  const own = value === null ? "null" : typeof value;
  return (
    type === undefined || [type].flat().some((one) => one === own || (one === "integer" && own === "number"))
  );
}

function plainValue({ type, format, pattern, minimum }: Schema, name: string): unknown {
  switch ([type].flat()[0]) {
    case "boolean":
      return true;
    case "integer":
    case "number":
      return minimum === 0 ? 0 : 1;
    case "object":
      return {};
    case "string":
      if (format === "date-time") return "2026-01-31T12:00:00Z";
      if (format === "uri") return "https://contracts.example/v1/contracts";
      if (pattern?.includes("{40}") === true) return "0x52908400098527886e0f7030069857d2e4169ee7";
      if (pattern !== undefined || /hash|root$|signature/i.test(name)) return HASH;
      return name === "" ? "text" : name;
    default:
      return null;
  }
}
