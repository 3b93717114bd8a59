import { type Deps, reading } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { fileComplaintRoute } from "./file.js";
import { listComplaintsRoute } from "./list.js";

/** Complaints about the other party's conduct. */
export function complaintRoutes(deps: Deps) {
  return createRouter()
    .route("/", fileComplaintRoute(deps))
    .route("/", listComplaintsRoute(reading(deps)));
}
