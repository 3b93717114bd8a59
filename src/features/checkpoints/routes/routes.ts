import { type Deps, reading } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { listCheckpointsRoute } from "./list.js";
import { proveCheckpointRoute } from "./prove.js";
import { submitCheckpointRoute } from "./submit.js";

/** Checkpoints of continuous work, and their proofs. */
export function checkpointRoutes(deps: Deps) {
  return createRouter()
    .route("/", submitCheckpointRoute(deps))
    .route("/", listCheckpointsRoute(reading(deps)))
    .route("/", proveCheckpointRoute(reading(deps)));
}
