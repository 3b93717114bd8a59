/** A webhook over its life. */
import { CLIENT, type Examples } from "./shared.js";

const webhook = {
  id: "0192f3a4-7b1c-4d9e-8a56-3f2e1d0c9b8a",
  url: "https://agent.example/events",
  description: null,
  agent: CLIENT,
  contractId: null,
  types: ["contract.accepted", "contract.delivered", "payout.paid"],
  status: "active",
  createdAt: "2026-01-30T09:00:00.000Z",
  disabledAt: null,
  disabledReason: null,
  lastAttemptAt: null,
  lastSuccessAt: null,
  lastStatus: null,
  lastError: null,
  pendingRetries: 0,
  givenUp: [],
};

export const WEBHOOK_EXAMPLES: Examples = {
  createWebhook: {
    request: { url: webhook.url, types: webhook.types },
    response: { data: { ...webhook, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" } },
  },
  listWebhooks: { response: { data: [webhook] } },
  getWebhook: { response: { data: webhook } },
  updateWebhook: { request: { types: webhook.types }, response: { data: webhook } },
  deleteWebhook: { response: { data: { id: webhook.id } } },
  replayWebhook: { request: { after: "1042" }, response: { data: webhook } },
};
