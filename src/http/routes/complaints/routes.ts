import { type Deps, reading } from "../../../services/deps.js";
import { createRouter } from "../../router.js";
import { fileComplaintRoute } from "./file.js";
import { listComplaintsRoute } from "./list.js";

/** Complaints about the other party's conduct. */
export function complaintRoutes(deps: Deps) {
  return createRouter()
    .route("/", fileComplaintRoute(deps))
    .route("/", listComplaintsRoute(reading(deps)));
}
