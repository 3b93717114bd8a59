import { expect, it, vi } from "vitest";
import { ProfileBodySchema } from "../../../src/features/profiles/routes.js";
import { WebhookBodySchema } from "../../../src/features/webhooks/routes.js";

it("a name of a hundred thousand accents is rejected without composing them", () => {
  const normalize = vi.spyOn(String.prototype, "normalize");
  const displayName = `a${"\u0301".repeat(65_000)}${"\u0323".repeat(65_000)}`;
  const { error } = ProfileBodySchema.safeParse({ displayName });
  const calls = normalize.mock.calls.length;
  normalize.mockRestore();
  expect(error?.issues.map(({ message }) => message)).toEqual(["must have at most 32 characters"]);
  expect(calls).toBe(0);
});

it("a URL that is too long is rejected before it is parsed", () => {
  const canParse = vi.spyOn(URL, "canParse");
  const { error } = WebhookBodySchema.safeParse({ url: `https://${"字".repeat(85_000)}.com` });
  const calls = canParse.mock.calls.length;
  canParse.mockRestore();
  expect(error?.issues.map(({ message }) => message)).toEqual(["must have at most 2048 characters"]);
  expect(calls).toBe(0);
});
