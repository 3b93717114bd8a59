/** Stylesheet, scripts and icon of the pages. Their names contain a hash of the content, so caches never go stale. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import type { Hono } from "hono";
import type { AppEnv } from "../http/middleware.js";

const style = load("style.css", "text/css; charset=utf-8");
const script = load("live.js", "text/javascript; charset=utf-8");
const wallet = load("../dist/wallet.js", "text/javascript; charset=utf-8");
const icon = load("icon.svg", "image/svg+xml");

/** Parts of the wallet's script, loaded with their first use. Their names contain a hash of the content already. */
const chunks = readdirSync(new URL("./dist/", import.meta.url))
  .filter((name) => name !== "wallet.js")
  .map((name) => ({ ...load(`../dist/${name}`, "text/javascript; charset=utf-8"), path: `/assets/${name}` }));

/** Paths that the layout links to. */
export const ASSETS = {
  style: style.path,
  script: script.path,
  wallet: wallet.path,
  icon: icon.path,
} as const;

export function mountAssets(router: Hono<AppEnv>): void {
  for (const { path, bytes, type } of [style, script, wallet, icon, ...chunks]) {
    router.get(path, (c) =>
      c.body(bytes, 200, { "Content-Type": type, "Cache-Control": "public, max-age=31536000, immutable" }),
    );
  }
}

function load(name: string, type: string) {
  const bytes = new Uint8Array(readFileSync(new URL(`./assets/${name}`, import.meta.url)));
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 12);
  return { path: `/assets/${hash}-${basename(name)}`, bytes, type };
}
