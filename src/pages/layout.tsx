/** Shared by all pages: the layout, its assets, and the parts of a request that pages use. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { EVENT_TYPES } from "@working-contracts/protocol/events";
import { type Address, ZERO_ADDRESS } from "@working-contracts/protocol/types";
import type { Context, Hono } from "hono";
import { createMiddleware } from "hono/factory";
import { createContext, type PropsWithChildren, useContext } from "hono/jsx";
import type { Deps } from "../deps.js";
import { AppError } from "../errors.js";
import type { AppEnv } from "../http/middleware.js";
import { AddressSchema } from "../http/schemas.js";

/** The caller of a page: a reader without an API key, for whom sealed votes stay sealed. */
export const ANONYMOUS: Address = ZERO_ADDRESS;

/** Reads an address from the path, in lower case. Throws 404 if it is not an address, followed by `ending`. */
export function addressOf(c: Context, name: string, ending = ""): Address {
  const param = c.req.param(name) ?? "";
  const parsed = AddressSchema.safeParse(param.slice(0, param.length - ending.length));
  if (parsed.success) return parsed.data;
  throw new AppError("not_found", { message: "The path needs an address: 0x followed by 40 hex digits." });
}

/** Stylesheet, scripts and icon of the pages. Their names contain a hash of the content, so caches never go stale. */
export const ASSETS = {
  style: load("style.css", "text/css; charset=utf-8"),
  script: load("live.js", "text/javascript; charset=utf-8"),
  wallet: load("../dist/wallet.js", "text/javascript; charset=utf-8"),
  icon: load("icon.svg", "image/svg+xml"),
};

/** Parts of the wallet's script, loaded with their first use. Their names contain a hash of the content already. */
const chunks = readdirSync(new URL("./dist/", import.meta.url))
  .filter((name) => name !== "wallet.js")
  .map((name) => ({ ...load(`../dist/${name}`, "text/javascript; charset=utf-8"), path: `/assets/${name}` }));

export function mountAssets(router: Hono<AppEnv>): void {
  for (const { path, bytes, type } of [...Object.values(ASSETS), ...chunks]) {
    router.get(path, (c) => {
      c.get("limitDownload")(bytes.length);
      return c.body(bytes, 200, {
        "Content-Type": type,
        "Cache-Control": "public, max-age=31536000, immutable",
      });
    });
  }
}

function load(name: string, type: string) {
  const bytes = new Uint8Array(readFileSync(new URL(`./assets/${name}`, import.meta.url)));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  return { path: `/assets/${hash}-${basename(name)}`, bytes, type };
}

/** Values that all pages of a service share; `symbol` is the stablecoin's. */
const siteOf = ({ deployment, config }: Pick<Deps, "deployment" | "config">) => ({
  domain: deployment.domain,
  chainId: deployment.chainId,
  symbol: deployment.asset.symbol,
  explorerUrl: config.explorerUrl,
  walletNodeUrl: config.walletNodeUrl,
});
type Site = ReturnType<typeof siteOf>;

const SiteContext = createContext<Site | null>(null);

/** The site of the current page. Throws outside the layout. */
export function useSite(): Site {
  const site = useContext(SiteContext);
  if (site === null) throw new Error("A page component was rendered outside the layout.");
  return site;
}

interface PageProps {
  title: string;
  /** Path of the navigation entry to highlight. */
  section?: string;
  /** Path and query of the same data in the API. */
  dataPath?: string;
  /** Query of the event stream that updates this page; an empty one means every event. If absent, the page is static. */
  live?: Record<string, string>;
}

declare module "hono" {
  interface ContextRenderer {
    // biome-ignore lint/style/useShorthandFunctionType: hono merges this interface with its own.
    (content: string | Promise<string>, page: PageProps): Response | Promise<Response>;
  }
}

const SECTIONS = [
  { path: "/", name: "Contracts" },
  { path: "/post", name: "Post" },
  { path: "/simulator", name: "Simulator" },
  { path: "/parameters", name: "Parameters" },
  { path: "/docs", name: "API" },
];

const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Lets handlers respond with `c.render(<Page />, { title })`: a full document with a strict content security policy. */
export function pageRenderer(deps: Pick<Deps, "deployment" | "config">) {
  const site = siteOf(deps);
  return createMiddleware<AppEnv>(async (c, next) => {
    c.setRenderer(async (children, page) => {
      const document = (
        <Layout site={site} {...page}>
          {children}
        </Layout>
      );
      const text = `<!DOCTYPE html>${await document.toString()}`;
      c.get("limitDownload")(text.length);
      c.header("Content-Security-Policy", POLICY);
      if (!c.res.headers.has("Cache-Control")) c.header("Cache-Control", "no-cache");
      return c.html(text);
    });
    await next();
  });
}

function Layout(props: PropsWithChildren<PageProps & { site: Site }>) {
  const { site, title, section, dataPath, live, children } = props;
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · Working Contracts`}</title>
        <link rel="icon" href={ASSETS.icon.path} type="image/svg+xml" />
        <link rel="stylesheet" href={ASSETS.style.path} />
        {dataPath !== undefined && <link rel="alternate" type="application/json" href={dataPath} />}
        {live !== undefined && <script type="module" src={ASSETS.script.path} />}
        <script type="module" src={ASSETS.wallet.path} />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to content
        </a>
        <header class="site">
          <a class="brand" href="/">
            Working Contracts
          </a>
          <nav class="menu" aria-label="Main">
            <ul>
              {SECTIONS.map(({ path, name }) => (
                <li>
                  <a href={path} aria-current={path === section ? "page" : undefined}>
                    {name}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <div id="account" class="account" data-node={site.walletNodeUrl} hidden />
        </header>
        <main
          id="main"
          tabindex={-1}
          data-live={live === undefined ? undefined : new URLSearchParams(live).toString()}
          data-types={live === undefined ? undefined : EVENT_TYPES.join(" ")}
        >
          <SiteContext.Provider value={site}>{children}</SiteContext.Provider>
        </main>
        <footer class="site">
          <p>
            {site.domain} on chain {site.chainId}. The escrows decide money and status; these pages only
            display them.
            {live !== undefined && <output id="live-state" class="live" hidden />}
          </p>
          {dataPath !== undefined && (
            <p>
              As JSON: <code>GET {dataPath}</code>
            </p>
          )}
        </footer>
      </body>
    </html>
  );
}
