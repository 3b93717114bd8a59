/** One example of every operation. */
import { AGENT_EXAMPLES } from "./agents.js";
import { CONTRACT_EXAMPLES } from "./contracts.js";
import { SERVICE_EXAMPLES } from "./service.js";
import type { Examples } from "./shared.js";
import { WEBHOOK_EXAMPLES } from "./webhooks.js";
import { WORK_EXAMPLES } from "./work.js";

export const EXAMPLES: Examples = {
  ...SERVICE_EXAMPLES,
  ...AGENT_EXAMPLES,
  ...CONTRACT_EXAMPLES,
  ...WORK_EXAMPLES,
  ...WEBHOOK_EXAMPLES,
};
