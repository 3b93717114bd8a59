import { AsyncLocalStorage } from "node:async_hooks";
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

/** What every line written while a request is answered carries, whoever writes it. */
const requestScope = new AsyncLocalStorage<{ requestId: string }>();

/** Runs `answer` so that all that is logged in it, however deep, carries the request's id. */
export function inRequest<T>(requestId: string, answer: () => T): T {
  return requestScope.run({ requestId }, answer);
}

/**
 * Structured logs on standard output (or `destination`). Credentials are cut out wherever they are passed by name, and
 * errors under `err` or `error` are reduced to {@link describeError}.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const paths = SECRETS.flatMap((path) => [path, path.startsWith("[") ? `*${path}` : `*.${path}`]);
  const deeper = SECRETS.flatMap((path) => (path.startsWith("[") ? `*.*${path}` : `*.*.${path}`));
  return pino(
    {
      level,
      redact: { paths: [...paths, ...deeper], censor: "[redacted]" },
      serializers: { err: describeError, error: describeError },
      mixin: () => requestScope.getStore() ?? {},
    },
    ...(destination ? [destination] : []),
  );
}

export interface DescribedError {
  name: string;
  message: string;
  code?: string | number;
  /** Where it was thrown; nothing of its message. */
  stack?: string[];
  cause?: DescribedError;
}

const MAX_CAUSES = 5;
const MAX_FRAMES = 12;
const MAX_MESSAGE = 500;

/**
 * An error as it may be logged. viem's errors carry the node's URL, which can hold a key, and the request's body, which
 * can hold a payment's signature: of those only the short message, name and code are kept, and of every text neither
 * URLs nor long hex.
 */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) return { name: "Thrown", message: withoutSecrets(String(error)) };
  const { shortMessage, code } = error as { shortMessage?: unknown; code?: unknown };
  const described: DescribedError = {
    name: error.name,
    message: withoutSecrets(typeof shortMessage === "string" ? shortMessage : error.message),
  };
  if (typeof code === "string" || typeof code === "number") described.code = code;
  if (depth === 0) described.stack = framesOf(error);
  if (error.cause !== undefined && depth < MAX_CAUSES)
    described.cause = describeError(error.cause, depth + 1);
  return described;
}

function framesOf({ stack = "" }: Error): string[] {
  return stack
    .split("\n")
    .filter((line) => /^\s+at [^"{]*$/.test(line))
    .slice(0, MAX_FRAMES)
    .map((line) => line.trim());
}

/** Shorter hex is an address or a hash, which a log is read for. */
const LONG_HEX = /0x[0-9a-f]{66,}/gi;
const URLS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'`]+/gi;

/** The first paragraph, because those after it are the request. */
function withoutSecrets(text: string): string {
  const [paragraph = ""] = text.split(/\n\s*\n|\nRequest body:|\nURL:/, 1);
  return paragraph.replaceAll(URLS, "[url]").replaceAll(LONG_HEX, "[hex]").slice(0, MAX_MESSAGE);
}
