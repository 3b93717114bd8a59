/**
 * Setup of every suite that moves time. Test files share a process, and each must start with the machine's own clock.
 */
import { afterAll } from "vitest";
import { leaveChainTime } from "./chain-time.js";

afterAll(leaveChainTime);
