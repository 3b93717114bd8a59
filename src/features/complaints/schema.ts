import { z } from "@hono/zod-openapi";
import { LIMITS } from "@working-contracts/protocol/limits";
import { JsonObjectSchema } from "../../http/json.js";
import { COMPLAINT_STATUSES, type ComplaintView } from "./view.js";

export const ComplaintBodySchema = z
  .object({ evidence: JsonObjectSchema(LIMITS.evidenceBytes) })
  .openapi("FileComplaint");

export const ComplaintSchema = z
  .object({
    id: z.string(),
    contractId: z.string(),
    filedByRole: z.enum(["client", "worker"]),
    evidence: z.record(z.string(), z.unknown()),
    status: z.enum(COMPLAINT_STATUSES),
    filedAt: z.iso.datetime(),
    resolvedAt: z.iso.datetime().nullable(),
    resolutionNote: z.string().nullable(),
  })
  .openapi("Complaint") satisfies z.ZodType<ComplaintView>;
