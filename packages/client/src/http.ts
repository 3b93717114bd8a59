/** HTTP over fetch: parses the response envelope and retries temporary failures. */
import type { ConnectOptions } from "./connect.js";
import { ConnectionError, type ErrorBody, ServiceError } from "./errors.js";

/** Upper case, as in the name of an operation: `GET /v1/contracts`. */
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** Retries repeat all of it unchanged, also its `Idempotency-Key`. */
export interface Request {
  method: Method;
  /** Path and query. */
  path: string;
  /** JSON text, repeated byte for byte. */
  body?: string | undefined;
  headers?: Record<string, string>;
  /** Whether the request can be retried if its outcome is unknown: after no response, 502, 503 or 504. */
  repeatable: boolean;
}

/** A success or a 402. Any other status is thrown as an error. */
export interface ServiceResponse {
  status: number;
  headers: Headers;
  json: { data?: unknown; error?: ErrorBody } & Record<string, unknown>;
}

/** Requests to one service. Every path starts at its base URL. */
export interface Http {
  /** Returns a success or a 402. Throws ServiceError or ConnectionError once `patienceMs` is used up. */
  send(request: Request, onRetry?: () => void): Promise<ServiceResponse>;
  /** Sends a request once and returns the response as it comes, for streams. */
  open(request: Request, signal: AbortSignal): Promise<Response>;
  /** The caller's signal. Aborting it ends every request. */
  signal?: AbortSignal | undefined;
  withoutSignal(): Http;
  /** The same, ended by this signal too. */
  until(signal: AbortSignal | undefined): Http;
}

export type HttpOptions = Pick<ConnectOptions, "baseUrl" | "onWaiting" | "signal"> &
  Required<Pick<ConnectOptions, "fetch" | "patienceMs">>;

const DEFAULT_PAUSE_MS = 1000;
/** The first attempt gets at least this: the service can hold a paid call for 25 seconds. */
const MIN_ATTEMPT_MS = 30_000;
/** Also if the service asks for less. */
export const MIN_PAUSE_MS = 100;
/** Of a node's response, of an event in a stream, or of a contract's checkpoints, which are not paged and can be 16 MiB and more. */
export const MAX_BYTES = 64 * 2 ** 20;
/** Shorter attempts would only hide the error of the one before. */
const MIN_RETRY_MS = 2_000;
/** The longest time that a timer can measure. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Throws RangeError if the URL contains a name or a password: `fetch` refuses such a URL, and repeats it in its message. */
export function requireNoPassword(url: string): void {
  const { username, password }: Partial<URL> = URL.canParse(url) ? new URL(url) : {};
  if (username || password)
    throw new RangeError("The URL of the service must not contain a name or a password. Remove them");
}

/** Redirects count as failures. Throws RangeError if the URL contains a name or a password. */
export function createHttp(options: HttpOptions): Http {
  const { baseUrl, fetch } = options;
  requireNoPassword(baseUrl);
  return {
    signal: options.signal,
    withoutSignal: () => createHttp({ ...options, signal: undefined }),
    until: (signal) =>
      createHttp({ ...options, signal: signal ? eitherOf(signal, options.signal) : options.signal }),
    open: ({ method, path, headers = {} }, signal) =>
      fetch(baseUrl + path, { method, headers, redirect: "error", signal }),
    async send(request, onRetry) {
      const deadline = performance.now() + options.patienceMs;
      let attemptMs = Math.max(options.patienceMs, MIN_ATTEMPT_MS);
      for (;;) {
        const attempt = await tryOnce(options, request, attemptMs);
        if ("response" in attempt) return attempt.response;
        const { error, pauseMs } = attempt;
        if (pauseMs === null || performance.now() + pauseMs > deadline) throw error;
        onRetry?.();
        options.onWaiting?.(error.message);
        await pause(pauseMs, options.signal);
        attemptMs = Math.max(deadline - performance.now(), MIN_RETRY_MS);
      }
    },
  };
}

/** A signal that is aborted with the first of these: with the only one, as older browsers lack `AbortSignal.any`. */
export function eitherOf(first: AbortSignal, second: AbortSignal | undefined): AbortSignal {
  return second === undefined ? first : AbortSignal.any([first, second]);
}

/** As `AbortSignal.timeout`, whose timer Node can collect while only `AbortSignal.any` knows it. */
function abortAfter(ms: number) {
  const controller = new AbortController();
  const reason = new DOMException("The operation was aborted due to timeout", "TimeoutError");
  const timer = setTimeout(() => controller.abort(reason), Math.min(Math.ceil(ms), MAX_TIMER_MS));
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}

type Attempt =
  | { response: ServiceResponse }
  | { error: ServiceError | ConnectionError; pauseMs: number | null };

async function tryOnce(
  { baseUrl, fetch, signal }: HttpOptions,
  request: Request,
  timeoutMs: number,
): Promise<Attempt> {
  const { method, path, body, headers = {}, repeatable } = request;
  const timeout = abortAfter(timeoutMs);
  const ending = eitherOf(timeout.signal, signal);
  let response: Response;
  let text: string;
  try {
    response = await fetch(baseUrl + path, {
      method,
      redirect: "error",
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body }),
      signal: ending,
    });
    text = await readText(response, ending, path.endsWith("/checkpoints") ? MAX_BYTES : MAX_BYTES / 8);
  } catch (cause) {
    signal?.throwIfAborted();
    const error = new ConnectionError(`${method} ${path}: ${reasonOf(cause)}`, { cause });
    return { error, pauseMs: repeatable ? DEFAULT_PAUSE_MS : null };
  } finally {
    timeout.clear();
  }
  const json = parse(text);
  if (json !== null && (response.ok || response.status === 402)) {
    return { response: { status: response.status, headers: response.headers, json } };
  }
  const isLost = response.status !== 429;
  return {
    error: refusalOf(response, json),
    pauseMs: isLost && !repeatable ? null : pauseOf(response, json),
  };
}

/**
 * The whole text of a response. Throws if it is too long, and the signal's reason once that is aborted: Node.js loses the
 * abort of a response whose request was collected as garbage, so that the signal of `fetch` alone does not end the body.
 */
export async function readText(
  { body }: Response,
  signal: RequestInit["signal"],
  most = MAX_BYTES,
): Promise<string> {
  if (body === null) return "";
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  const decoder = new TextDecoder();
  let text = "";
  try {
    signal?.throwIfAborted();
    for (let size = 0; ; ) {
      const { done, value } = await reader.read();
      signal?.throwIfAborted();
      if (done) return text + decoder.decode();
      size += value.length;
      if (size > most) throw new Error(`the response is longer than ${most} bytes`);
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stop();
  }
}

/**
 * As `fetch`, for nodes: reads the whole body under the signal, and leaves the headers out. viem's own time-out ends at the
 * head, and it waits as long as `Retry-After` asks.
 */
export async function fetchWhole(
  input: Parameters<typeof fetch>[0],
  init: RequestInit = {},
): Promise<Response> {
  const response = await fetch(input, init);
  const { status, statusText } = response;
  return new Response((await readText(response, init.signal)) || null, { status, statusText });
}

/** The error in a response; ConnectionError if something other than the service sent it. */
export function refusalOf(
  response: Response,
  json: ServiceResponse["json"] | null,
): ServiceError | ConnectionError {
  const { status, headers } = response;
  if (json?.error === undefined)
    return new ConnectionError(`HTTP ${status}: the response is not from the service`);
  const { code, message, details, hint } = json.error;
  return new ServiceError({ code, status, message, details, hint, requestId: headers.get("x-request-id") });
}

/** How long to wait before a retry; null if a retry would fail again. */
function pauseOf({ status, headers }: Response, json: ServiceResponse["json"] | null): number | null {
  const isLimited = status === 429 && json?.error?.code === "rate_limited";
  if (!isLimited && ![502, 503, 504].includes(status)) return null;
  const seconds = Number(headers.get("retry-after") ?? NaN);
  return Number.isFinite(seconds) ? Math.max(seconds * 1000, MIN_PAUSE_MS) : DEFAULT_PAUSE_MS;
}

/** At most as long as a timer can measure. Rejects with the signal's reason if it is aborted during the pause. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, Math.min(ms, MAX_TIMER_MS));
    signal?.addEventListener("abort", end);
  });
}

/** The JSON object or list in a text; null if it is anything else. */
export function parse(text: string): ServiceResponse["json"] | null {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? (json as ServiceResponse["json"]) : null;
  } catch {
    return null;
  }
}

/** JSON, with integers as text. */
export function textOf(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === "bigint" ? String(part) : part));
}

/** fetch puts the actual reason in `cause`. */
export function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { message?: string }; message: string };
  return cause?.message ?? message;
}
