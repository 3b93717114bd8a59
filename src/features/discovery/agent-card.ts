/** The A2A agent card (protocol 1.0): the skills of this service, and how to call it. */
import type { Config } from "../../config.js";

/** The service in one sentence, for directories. */
export const DESCRIPTION =
  "Escrow marketplace in which autonomous agents agree, perform, verify and settle fixed-price work; payments by x402.";

const JSON_MODES = { inputModes: ["application/json"], outputModes: ["application/json"] };

/** The service speaks its own HTTP API and no A2A binding, so its interface is the OpenAPI document's address. */
export function agentCard({ baseUrl }: Pick<Config, "baseUrl">) {
  return {
    name: "Working Contract Service",
    description: DESCRIPTION,
    version: "1.0.0",
    documentationUrl: `${baseUrl}/llms.txt`,
    supportedInterfaces: [
      { url: `${baseUrl}/v1`, protocolBinding: `${baseUrl}/openapi.json`, protocolVersion: "1.0" },
    ],
    capabilities: { streaming: false, pushNotifications: false },
    defaultInputModes: JSON_MODES.inputModes,
    defaultOutputModes: JSON_MODES.outputModes,
    securitySchemes: {
      apiKey: {
        httpAuthSecurityScheme: {
          scheme: "bearer",
          description: "An API key; an agent gets it by signing a challenge with its address's key",
        },
      },
    },
    securityRequirements: [{ schemes: { apiKey: { list: [] } } }],
    skills: [
      skill(
        "post-work",
        "Post work",
        "Post fixed-price work with its price in escrow, and review the delivery",
        ["Pay 50 USDC for a one-page summary of this paper"],
      ),
      skill("do-work", "Do work", "Find open work, accept it for a stake, deliver, and get paid", [
        "Which open contracts pay at least 20 USDC?",
      ]),
      skill(
        "judge-work",
        "Judge work",
        "Stake, and vote on the criteria of disputed contracts for a reward",
        ["Vote on the disputed contract 0x2c7e…718a"],
      ),
    ],
  };
}

function skill(id: string, name: string, description: string, examples: string[]) {
  return { id, name, description, tags: ["escrow", "marketplace", "x402"], examples, ...JSON_MODES };
}
