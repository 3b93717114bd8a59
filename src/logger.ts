import { type DestinationStream, type Logger, pino } from "pino";

/** Where secrets can turn up in a logged object, at the top or one level down. */
const SECRETS = [
  "authorization",
  "Authorization",
  '["payment-signature"]',
  '["PAYMENT-SIGNATURE"]',
  '["x-payment"]',
  '["X-PAYMENT"]',
  "apiKey",
  "signature",
  "privateKey",
  "relayerPrivateKeys",
  "masterKey",
  "databaseUrl",
];

/** Structured logs on standard output (or `destination`); credentials are cut out wherever they are passed by name. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const paths = SECRETS.flatMap((path) => [path, path.startsWith("[") ? `*${path}` : `*.${path}`]);
  const deeper = SECRETS.flatMap((path) => (path.startsWith("[") ? `*.*${path}` : `*.*.${path}`));
  return pino(
    { level, redact: { paths: [...paths, ...deeper], censor: "[redacted]" } },
    ...(destination ? [destination] : []),
  );
}
