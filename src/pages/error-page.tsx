import type { Context, ErrorHandler, NotFoundHandler } from "hono";
import type { AppEnv } from "../http/env.js";
import { toAppError } from "../http/middleware/errors.js";
import { pageRenderer } from "./layout.js";

/** A refusal as people read it; the status and headers are those of the API. */
export const onPageError: ErrorHandler<AppEnv> = (error, c) => {
  const { code, status, options } = toAppError(error, c);
  c.set("errorCode", code);
  if (status >= 500) c.get("logger").error({ err: error }, code);
  const { retryAfterSeconds, headers } = options;
  for (const [name, value] of Object.entries(headers ?? {})) c.header(name, value);
  if (retryAfterSeconds !== undefined) c.header("Retry-After", String(retryAfterSeconds));
  c.status(status);
  return renderFault(c, { title: TITLES[status] ?? "Something went wrong", message: options.message });
};

const TITLES: Record<number, string> = {
  400: "This cannot be shown",
  404: "Nothing here",
  429: "Too many requests",
  503: "Not available right now",
};

function renderFault(c: Context<AppEnv>, { title, message }: { title: string; message: string }) {
  return c.render(
    <>
      <h1>{title}</h1>
      <p>{message}</p>
      <p>
        <a href="/">All contracts</a>
      </p>
    </>,
    { title },
  );
}

/** Answers unknown paths with a page where a browser asks for one, and otherwise as `api` does. */
export function pageNotFound(
  deps: Parameters<typeof pageRenderer>[0],
  api: NotFoundHandler<AppEnv>,
): NotFoundHandler<AppEnv> {
  const render = pageRenderer(deps);
  return async (c) => {
    const isBrowser = c.req.method === "GET" && c.req.header("accept")?.includes("text/html") === true;
    if (!isBrowser || c.req.path.startsWith("/v1/")) return api(c);
    await render(c, async () => {});
    c.status(404);
    c.set("errorCode", "not_found");
    return renderFault(c, { title: "Nothing here", message: `There is nothing at ${c.req.path}.` });
  };
}
