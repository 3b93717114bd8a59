/** Loaded into Ponder's process first: see docs/build.md, "The event loop's lag is sampled ten times a second". */
import perfHooks from "node:perf_hooks";

const RESOLUTION_MS = 100;
const { monitorEventLoopDelay } = perfHooks;
perfHooks.monitorEventLoopDelay = (options) =>
  monitorEventLoopDelay({ ...options, resolution: RESOLUTION_MS });
