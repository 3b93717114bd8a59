import { createRoute, z } from "@hono/zod-openapi";
import type { Deps } from "../../../deps.js";
import { AddressViewSchema } from "../../../http/address.js";
import { dataResponse, errorResponses } from "../../../http/envelope.js";
import { HexViewSchema } from "../../../http/json.js";
import { KEY_SECURITY, requireKey } from "../../../http/middleware/auth.js";
import { createRouter } from "../../../http/router.js";
import { getLedger, LEDGER_ENTRY_NAMES, type LedgerView } from "../get-ledger.js";
import { ContractParamsSchema } from "./schema.js";

const amount = () => z.string().openapi({ example: "50.0" });

const LedgerSchema = z
  .object({
    contractId: z.string(),
    entries: z.array(
      z.object({
        direction: z.enum(["in", "out"]),
        name: z.enum(LEDGER_ENTRY_NAMES),
        party: AddressViewSchema.nullable(),
        amount: amount(),
        at: z.string().openapi({ format: "date-time" }),
        blockNumber: z.number(),
        transactionHash: HexViewSchema,
      }),
    ),
    in: amount(),
    out: amount(),
    held: amount().openapi({ description: "`in` minus `out`: what the escrow owes" }),
    asOfBlock: z.number().nullable().openapi({ description: "Null while the index catches up" }),
    balance: amount()
      .nullable()
      .openapi({ description: "The token's own word on the escrow at that block; null without an answer" }),
    unbooked: amount().nullable().openapi({ description: "Balance beyond `held`, sent by strangers" }),
  })
  .openapi("Ledger") satisfies z.ZodType<LedgerView>;

const route = createRoute({
  method: "get",
  path: "/v1/contracts/{id}/ledger",
  operationId: "getLedger",
  tags: ["Contracts"],
  summary: "Read every amount that the escrow took in and paid out, against its balance on chain",
  security: KEY_SECURITY,
  middleware: [requireKey] as const,
  request: { params: ContractParamsSchema },
  responses: {
    200: dataResponse("The escrow's books", LedgerSchema),
    ...errorResponses("unauthorized", "invalid_request", "not_found", "rate_limited", "unavailable"),
  },
});

export function ledgerRoutes(deps: Deps) {
  return createRouter().openapi(route, async (c) => {
    return c.json({ data: await getLedger(deps, c.req.valid("param").id) }, 200);
  });
}
