/** Global parameters and limits. */
import { data, operation } from "../../http/operation.js";
import { createParameterReader } from "./parameters.js";
import { presentLimits } from "./present-limits.js";
import { presentParameters } from "./present-parameters.js";
import { LimitsSchema, ProtocolSchema } from "./schema.js";

const tag = "Protocol";

export const protocolOperations = [
  operation(
    {
      method: "get",
      path: "/v1/protocol",
      operationId: "getProtocol",
      tag,
      summary: "Read the global protocol parameters",
      auth: "none",
      returns: data("Parameters of future Working Contracts", ProtocolSchema),
    },
    (deps) => {
      const readParameters = createParameterReader(deps);
      return async () => presentParameters(await readParameters());
    },
  ),
  operation(
    {
      method: "get",
      path: "/v1/limits",
      operationId: "getLimits",
      tag,
      summary: "Read every limit and window that is not a protocol parameter",
      auth: "none",
      returns: data("Limits", LimitsSchema),
    },
    (deps) => {
      const readParameters = createParameterReader(deps);
      return async () => presentLimits(deps.config, await readParameters());
    },
  ),
];
