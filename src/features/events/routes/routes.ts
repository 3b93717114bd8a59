import type { Deps } from "../../../deps.js";
import { createRouter } from "../../../http/router.js";
import { listEventsRoute } from "./list.js";
import { streamEventsRoute } from "./stream.js";

/** The log of events, to be polled and to be listened to. */
export function eventRoutes(deps: Deps) {
  return createRouter().route("/", listEventsRoute(deps)).route("/", streamEventsRoute(deps));
}
