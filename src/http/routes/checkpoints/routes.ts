import { type Deps, reading } from "../../../services/deps.js";
import { createRouter } from "../../router.js";
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
