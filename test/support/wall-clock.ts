/** Setup of every suite that moves time: the files share a process, and each begins with this machine's own clock. */
import { afterAll } from "vitest";
import { leaveChainTime } from "./chain-time.js";

afterAll(leaveChainTime);
