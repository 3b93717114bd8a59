/**
 * Loaded into Ponder's process before Ponder, which samples the lag of its event loop a thousand times a second: more
 * processor time than all its work while little happens. Here it does so ten times a second.
 */
import perfHooks from "node:perf_hooks";

const RESOLUTION_MS = 100;
const { monitorEventLoopDelay } = perfHooks;
perfHooks.monitorEventLoopDelay = (options) =>
  monitorEventLoopDelay({ ...options, resolution: RESOLUTION_MS });
