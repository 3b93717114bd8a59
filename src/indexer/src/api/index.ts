/** Ponder requires an app here; it adds /health, /ready, /status and /metrics. The service serves everything else. */
import { Hono } from "hono";

export default new Hono();
