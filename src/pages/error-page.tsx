import type { Context, ErrorHandler, NotFoundHandler } from "hono";
import { toAppError } from "../http/responses.js";
import type { AppEnv } from "../http/router.js";
import { pageRenderer } from "./layout.js";

/** Renders an error as a page, with the same status and headers as the API. */
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
  400: "Invalid request",
  404: "Page not found",
  429: "Too many requests",
  503: "Temporarily unavailable",
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

/** Renders a page for unknown paths if a browser requests one; otherwise responds as `api` does. */
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
    return renderFault(c, { title: "Page not found", message: `There is no page at ${c.req.path}.` });
  };
}
