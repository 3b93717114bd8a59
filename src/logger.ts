import { type DestinationStream, type Logger, pino, symbols } from "pino";
import { ConfigError } from "./config.js";

/** Fields that can hold secrets; redacted at the top level of a logged object and up to two levels below it. */
const SECRETS = [
  "authorization",
  "Authorization",
  "payment-signature",
  "PAYMENT-SIGNATURE",
  "x-payment",
  "X-PAYMENT",
  "apiKey",
  "signature",
  "privateKey",
  "relayerPrivateKeys",
  "masterKey",
  "databaseUrl",
];

/**
 * Creates a structured logger that writes to standard output (or `destination`). It redacts credentials by field name
 * and passes errors under `err` or `error` through {@link describeError}.
 */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const paths = SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`, `*.*["${name}"]`]);
  const logger = pino(
    {
      level,
      redact: { paths, censor: "[redacted]" },
      serializers: { err: describeError, error: describeError },
    },
    ...(destination ? [destination] : []),
  );
  const stream = (logger as unknown as Record<symbol, DestinationStream>)[symbols.streamSym];
  if (stream !== undefined && "flushSync" in stream) dropWhileFailing(stream as LogFile);
  return logger;
}

type LogFile = ReturnType<typeof pino.destination>;

const RETRY_WRITE_MS = 1000;

/**
 * A log that cannot be written, as on a full disk, must neither end the process nor keep it from ending: at the exit,
 * pino repeats a failing write forever. Lines are lost meanwhile, so that they do not fill the memory.
 */
function dropWhileFailing(stream: LogFile): void {
  const { write, flushSync } = stream;
  stream.on("error", ({ code }: NodeJS.ErrnoException) => {
    stream.write = () => false;
    stream.flushSync = () => {};
    if (code === "EPIPE") return;
    setTimeout(() => {
      stream.write = write;
    }, RETRY_WRITE_MS).unref();
  });
  stream.on("write", () => {
    stream.flushSync = flushSync;
  });
}

interface DescribedError {
  name: string;
  message: string;
  code?: string | number;
  /** Stack frames only, without the message. */
  stack?: string[];
  cause?: DescribedError;
}

const MAX_CAUSES = 5;
const MAX_FRAMES = 12;
const MAX_MESSAGE = 500;

/**
 * Reduces an error to a form that is safe to log. viem's errors contain the node's URL, which can include a key, and
 * the request body, which can include a payment signature. Only the short message, name and code are kept, and URLs and
 * long hex are removed from every text.
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

/** Shorter hex is an address or a hash, which is useful in a log. */
const LONG_HEX = /0x[0-9a-f]{66,}/gi;
const URLS = /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'`]+/gi;

/** A node's URL can hold a key. */
export const withoutUrls = (text: string): string => text.replaceAll(URLS, "[url]");

/** Keeps only the first paragraph; the others describe the request. */
function withoutSecrets(text: string): string {
  const [paragraph = ""] = text.split(/\n\s*\n|\nRequest body:|\nURL:/, 1);
  return withoutUrls(paragraph).replaceAll(LONG_HEX, "[hex]").slice(0, MAX_MESSAGE);
}

/** Ends the process with one line for each wrong setting, or with any other error in the form that is safe to log. */
export function refuse(error: unknown): never {
  console.error(error instanceof ConfigError ? error.message : describeError(error));
  process.exit(1);
}
