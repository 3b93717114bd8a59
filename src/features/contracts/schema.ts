/** Requests about contracts, and the rules of a proposed one that depend on the caller and the time. */
import { z } from "@hono/zod-openapi";
import { formatDecimal, MAX_AMOUNT, MAX_PRICE, parseDecimal } from "@working-contracts/protocol/amounts";
import { LIMITS } from "@working-contracts/protocol/limits";
import { STATUSES } from "@working-contracts/protocol/status";
import { isoTime } from "@working-contracts/protocol/time";
import { type Address, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import { movedClockHint } from "../../chain/clients.js";
import { AppError } from "../../errors.js";
import {
  AddressSchema,
  filled,
  JsonObjectSchema,
  LimitSchema,
  parsed,
  TimeTextSchema,
  textUpTo,
} from "../../http/schemas.js";
import { parseStatuses, SORTS } from "./list-contracts.js";

const NonZeroAddressSchema = AddressSchema.refine(
  (address) => address !== ZERO_ADDRESS,
  "must not be the zero address",
);

const trimmed = (limit: number) => textUpTo(limit, filled(z.string().trim()));

/** A reference (hash or URI), stored as given. */
const ReferenceSchema = textUpTo(LIMITS.referenceLength, filled());

/** Whole seconds, rounded down, as the chain holds them. */
const DeadlineSchema = TimeTextSchema.transform((text) => Math.floor(Date.parse(text) / 1000)).openapi({
  type: "string",
  format: "date-time",
  example: "2026-01-31T12:00:00Z",
});

/** Text, because the body parser keeps the digits as sent. */
const PriceSchema = parsed(
  (text) => {
    const amount = parseDecimal(text);
    return amount !== null && amount > 0n && amount <= MAX_PRICE ? amount : null;
  },
  `must be a decimal above 0 and at most ${formatDecimal(MAX_PRICE)}, with at most 6 decimals and no exponent`,
  "must be a decimal above 0 with at most 6 decimals",
).openapi({ type: ["number", "string"], example: 50 });

const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((value) => value ?? null);

const only = <T extends string>(word: T, note: string) => z.literal(word, `must be "${word}": ${note}`);

export const CreateBodySchema = z
  .object({
    idempotencyKey: optional(textUpTo(LIMITS.idempotencyKeyLength, filled())),
    initiator: z
      .enum(["client", "worker"], 'must be "client" or "worker"')
      .nullish()
      .transform((value) => value ?? "client"),
    title: trimmed(LIMITS.titleLength),
    taskDescription: textUpTo(
      LIMITS.taskDescriptionLength,
      z.string().refine((text) => text.trim() !== "", "must not be empty"),
    ).openapi({ minLength: 1 }),
    acceptanceCriteria: z
      .array(trimmed(LIMITS.criterionLength))
      .min(1, "must have at least one criterion")
      .max(LIMITS.acceptanceCriteria, `must have at most ${LIMITS.acceptanceCriteria} criteria`),
    supplementaryMaterials: optional(ReferenceSchema),
    application: optional(
      only("usageticket", "no other application is recognized; omit it for a plain contract"),
    ).openapi({ enum: ["usageticket", null] }),
    applicationTerms: optional(JsonObjectSchema(LIMITS.applicationTermsBytes)).openapi({
      type: ["object", "null"],
    }),
    contractType: only("fixed", "no other contract type is implemented"),
    awardMethod: z.enum(["direct_award", "open_tender"], 'must be "direct_award" or "open_tender"'),
    worker: optional(NonZeroAddressSchema).openapi({ type: ["string", "null"] }),
    client: z
      .unknown()
      .optional()
      .openapi({
        type: ["string", "null"],
        description: "Reserves a worker-initiated listing for one Buyer",
      }),
    budgetOrPrice: PriceSchema,
    matchDeadline: DeadlineSchema,
    withdrawalDeadline: DeadlineSchema,
    deliveryDeadline: DeadlineSchema,
    reviewDeadline: DeadlineSchema,
    verificationMode: only("privacy-preserving", "no other verification mode is implemented")
      .nullish()
      .openapi({ enum: ["privacy-preserving", null] }),
  })
  .transform((body, context) => {
    const { idempotencyKey: _, contractType: __, verificationMode: ___, ...draft } = body;
    if (draft.applicationTerms !== null && draft.application === null) {
      context.addIssue({ code: "custom", path: ["applicationTerms"], message: "needs an application" });
    }
    // Only a listing can be reserved; otherwise `client` is an unknown field, and ignored.
    if (draft.initiator === "client" || draft.client == null) return { ...draft, client: null };
    const client = NonZeroAddressSchema.safeParse(draft.client);
    if (client.success) return { ...draft, client: client.data };
    context.addIssue({
      code: "custom",
      path: ["client"],
      message: client.error.issues[0]?.message ?? "is invalid",
    });
    return z.NEVER;
  })
  .openapi("CreateContract");

export const AcceptBodySchema = z
  .object({ accept: z.boolean("must be true or false") })
  .openapi("AcceptContract");

export const DeliveryBodySchema = z.object({ delivery: ReferenceSchema }).openapi("SubmitDelivery");

export const ListQuerySchema = z.object({
  client: AddressSchema.optional(),
  worker: AddressSchema.optional(),
  initiator: z.enum(["client", "worker"]).optional(),
  status: parsed(
    parseStatuses,
    `must be a list of: ${[...STATUSES, "open", "active", "closed", "settled-*", "cancelled-*"].join(", ")}`,
  )
    .optional()
    .openapi({ type: "string", example: "open,settled-*" }),
  awardMethod: z.enum(["direct_award", "open_tender"]).optional(),
  application: z.enum(["usageticket"]).optional(),
  minPrice: filterAmount(),
  maxPrice: filterAmount(),
  backupAgent: AddressSchema.optional(),
  q: textUpTo(LIMITS.searchLength, z.string().trim().min(1))
    .optional()
    .openapi({ description: "Words that title or description must all have, in any letter case" }),
  sort: z.enum(SORTS).default("-createdAt"),
  limit: LimitSchema.default(LIMITS.pageSize),
  cursor: z.string().max(500).optional(),
});

function filterAmount() {
  const most = formatDecimal(MAX_AMOUNT);
  return parsed(parseDecimal, `must be a decimal of at most ${most}, with at most 6 decimals`)
    .optional()
    .openapi({ type: "string", example: "10.0" });
}

/** A Working Contract as its initiator proposes it; amounts in base units, times in whole seconds. */
export type ContractDraft = z.output<typeof CreateBodySchema>;

const DEADLINES = ["matchDeadline", "withdrawalDeadline", "deliveryDeadline", "reviewDeadline"] as const;

/** Throws `invalid_request` if the draft names the wrong parties for this caller, or if its price is too low. */
export function requirePartiesAndPrice(draft: ContractDraft, caller: Address, minimumPrice: bigint): void {
  const { initiator, awardMethod, worker, client } = draft;
  const isOffer = initiator === "worker";
  const isTender = !isOffer && awardMethod === "open_tender";
  const isAward = !isOffer && !isTender;
  const foreign = "must be absent or your own address: in a worker-initiated listing you are the worker";
  const tender = "must be absent with open_tender; name a worker with direct_award";
  const own = "must not be your own address";
  refuse([
    [isOffer && worker !== null && worker !== caller, "worker", foreign],
    [isOffer && client === caller, "client", own],
    [isTender && worker !== null, "worker", tender],
    [isAward && worker === null, "worker", "is required with direct_award"],
    [isAward && worker === caller, "worker", own],
    [draft.budgetOrPrice < minimumPrice, "budgetOrPrice", `must be at least ${formatDecimal(minimumPrice)}`],
  ]);
}

/** Throws `invalid_request` if the deadlines are out of order, in the past, or too far ahead of `now`. */
export function requireTimelyDeadlines(draft: ContractDraft, now: number): void {
  const latest = now + LIMITS.reviewDeadlineHorizon;
  const step =
    'Count deadlines from the time of GET /v1/network (client library: deadlines(), with clock "service"; wcontract: --clock service)';
  const past = [`must be later than the chain's time, ${isoTime(now)}`, movedClockHint(now, step)];
  const order = DEADLINES.slice(1).map((path, i) => {
    const previous = DEADLINES[i] as (typeof DEADLINES)[number];
    const isLast = path === "reviewDeadline";
    const rule = isLast ? "must be later than" : "must not be earlier than";
    const isBroken = isLast ? draft[path] <= draft[previous] : draft[path] < draft[previous];
    return [isBroken, path, `${rule} ${previous}, ${isoTime(draft[previous])}`] as const;
  });
  refuse([
    [draft.matchDeadline <= now, "matchDeadline", past.filter((part) => part !== null).join(". ")],
    ...order,
    [
      draft.reviewDeadline > latest,
      "reviewDeadline",
      `must be at most 365 days ahead, by ${isoTime(latest)}`,
    ],
  ]);
}

/** The only address that can accept, if the draft names one. */
export function counterpartyOf(draft: ContractDraft): Address | null {
  return draft.initiator === "worker" ? draft.client : draft.worker;
}

/** Throws `invalid_request` naming every rule that is broken. */
function refuse(rules: (readonly [isBroken: boolean, path: string, message: string])[]): void {
  const broken = rules.filter(([isBroken]) => isBroken);
  const details = broken.map(([, path, message]) => ({ path, message }));
  const [first] = details;
  if (first === undefined) return;
  throw new AppError("invalid_request", { message: `${first.path}: ${first.message}`, details });
}
