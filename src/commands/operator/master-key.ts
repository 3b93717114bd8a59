import { type RotationReport, rotateMasterKey } from "../../features/references/vault.js";
import { rotateWebhookSecrets } from "../../webhooks/signing.js";
import { masterKeys, OperatorError, withDatabase } from "./settings.js";

/** `master-key rotate`: rewraps every key. If some cannot be rewrapped, it fails after rewrapping the others. */
export async function rotate(args: string[]): Promise<void> {
  if (args.length > 0) throw new OperatorError("master-key rotate takes no arguments");
  const keys = masterKeys();
  const onBatch = ({ rewrapped }: RotationReport): void => console.log(`${rewrapped} keys rewrapped`);
  const { references, webhooks } = await withDatabase(async (db) => ({
    references: await rotateMasterKey(db, keys, { onBatch }),
    webhooks: await rotateWebhookSecrets(db, keys),
  }));
  const failed = [
    ...references.failed.map(({ contractId, field, reason }) => `${contractId} ${field}: ${reason}`),
    ...webhooks.failed.map((id) => `webhook ${id}: its secret could not be unwrapped`),
  ];
  if (failed.length === 0) {
    const rewrapped = references.rewrapped + webhooks.rewrapped;
    console.log(`Done: ${rewrapped} keys rewrapped, nothing left under another master key.`);
    return;
  }
  throw new OperatorError(
    [
      `${failed.length} keys could not be rewrapped. Keep the master keys that they need:`,
      ...failed.map((line) => `  ${line}`),
    ].join("\n"),
  );
}
