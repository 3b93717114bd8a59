/** Sessions of the operator: a cookie signed with the operator's key, so changing the key ends every session. */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { deleteCookie, getCookie, setCookie } from "hono/cookie";
import type { Config } from "../config.js";

const COOKIE = "operator";
const LIFETIME_SECONDS = 12 * 3600;

export interface OperatorSession {
  isOpen(c: Context): boolean;
  /** Opens a session. Returns false if the key is wrong. */
  open(c: Context, key: string): boolean;
  close(c: Context): void;
}

export function createOperatorSession(
  operatorKey: string,
  { baseUrl }: Pick<Config, "baseUrl">,
): OperatorSession {
  const options = {
    path: "/operator",
    httpOnly: true,
    sameSite: "Strict",
    secure: baseUrl.startsWith("https:"),
  } as const;
  const sign = (expiry: string): string =>
    createHmac("sha256", operatorKey).update(`operator session until ${expiry}`).digest("base64url");
  const nowSeconds = (): number => Math.floor(Date.now() / 1000);

  return {
    isOpen(c) {
      const [expiry = "", signature = ""] = (getCookie(c, COOKIE) ?? "").split(".");
      return /^\d{1,12}$/.test(expiry) && Number(expiry) > nowSeconds() && isSame(signature, sign(expiry));
    },
    open(c, key) {
      if (!isSame(key, operatorKey)) return false;
      const expiry = String(nowSeconds() + LIFETIME_SECONDS);
      setCookie(c, COOKIE, `${expiry}.${sign(expiry)}`, { ...options, maxAge: LIFETIME_SECONDS });
      return true;
    },
    close(c) {
      deleteCookie(c, COOKIE, options);
    },
  };
}

/** Compares in constant time. Hashing gives both sides the same length. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(left as Buffer, right as Buffer);
}
