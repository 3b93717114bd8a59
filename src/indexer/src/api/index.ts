/** Ponder wants an app here; it adds /health, /ready, /status and /metrics. The service answers everything else. */
import { Hono } from "hono";

export default new Hono();
