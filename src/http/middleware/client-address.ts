import { isIPv6 } from "node:net";
import type { Context } from "hono";

/**
 * The client's IP as a rate limit counts it: an IPv6 client by its /64, which is one subscriber. `X-Forwarded-For`
 * counts only as far as our own `trustedProxies` wrote it; the rest can be forged by the caller.
 */
export function clientAddress(c: Context, trustedProxies: number): string {
  const forwarded = trustedProxies > 0 ? (c.req.header("x-forwarded-for") ?? "").split(",") : [];
  const socket: { remoteAddress?: string } | undefined = c.env?.incoming?.socket;
  const address = forwarded.at(-trustedProxies)?.trim() || socket?.remoteAddress || "unknown";
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "");
  return isIPv6(plain) ? subnet(plain) : plain;
}

function subnet(address: string): string {
  const [head = "", tail] = address.split("::");
  const groups = head === "" ? [] : head.split(":");
  if (tail !== undefined) {
    const after = tail === "" ? 0 : tail.split(":").length;
    while (groups.length + after < 8) groups.push("0");
  }
  while (groups.length < 4) groups.push("0");
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(":")}::/64`;
}
