import type { PinnedNetwork } from "./types.js";

/**
 * Deployments that this package pins, by the host of their service: a connection to that host accepts no other
 * addresses. A release adds each public deployment; there is none yet.
 */
export const DEPLOYMENTS: Readonly<Record<string, PinnedNetwork>> = {};
