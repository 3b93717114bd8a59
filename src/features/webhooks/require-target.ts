import type { Config } from "../../config.js";
import { AppError } from "../../errors.js";
import { checkTarget, type TargetPolicy, TargetRefused } from "../../webhooks/target.js";

export const targetPolicy = ({ webhooksToPrivateAddresses }: Config): TargetPolicy => ({
  allowPrivate: webhooksToPrivateAddresses,
});

/** Throws `invalid_request` for a URL that would not be called now; it is judged again before every call. */
export async function requireTarget(config: Config, url: string): Promise<void> {
  try {
    await checkTarget(url, targetPolicy(config));
  } catch (error) {
    if (!(error instanceof TargetRefused)) throw error;
    throw new AppError("invalid_request", {
      message: `url: ${error.message}.`,
      details: [{ path: "url", message: error.message }],
    });
  }
}
