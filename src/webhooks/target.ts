/**
 * Requests to URLs that strangers choose. Only public addresses are called. A name is resolved once, all its addresses
 * are checked, and the connection goes to a checked address, so a name that then resolves to an internal address (DNS
 * rebinding) reaches nothing. Redirects are not followed.
 */
import { lookup, Resolver } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import { BlockList, isIP } from "node:net";

export interface TargetPolicy {
  /** For local use: allows private and loopback addresses, and plain HTTP. */
  allowPrivate: boolean;
  /** Name servers instead of the system's. */
  nameServers?: readonly string[];
}

/** The URL must not be called; the message says why, for its owner. */
export class TargetRefused extends Error {
  override readonly name = "TargetRefused";
}

const RESOLVE_TIMEOUT_MS = 2_000;

/** IPv4 ranges that IANA reserves: never called, although some look like ordinary addresses. */
const RESERVED_V4 = blockList(
  "ipv4",
  `0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
  192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24
  203.0.113.0/24 224.0.0.0/4 240.0.0.0/4`,
);
/** IPv6: only global unicast is called, except ranges that are reserved or embed an IPv4 address. */
const GLOBAL_V6 = blockList("ipv6", "2000::/3");
const RESERVED_V6 = blockList("ipv6", "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20");

/** `ranges` in CIDR notation. */
function blockList(family: "ipv4" | "ipv6", ranges: string): BlockList {
  const list = new BlockList();
  for (const [, network = "", prefix] of ranges.matchAll(/(\S+)\/(\d+)/g))
    list.addSubnet(network, Number(prefix), family);
  return list;
}

/** Whether webhooks may call this IP address. False for text that is no address. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !RESERVED_V4.check(address, "ipv4");
  if (isIP(address) === 6) return GLOBAL_V6.check(address, "ipv6") && !RESERVED_V6.check(address, "ipv6");
  return false;
}

/** A URL, and the checked address that its calls go to. */
export interface Target {
  url: URL;
  address: string;
  family: number;
}

/** Posts once and resolves to the response's status. Rejects with the connection's error. */
export function postTo(
  { url, address, family }: Target,
  { body, headers, timeoutMs }: { body: string; headers: Record<string, string>; timeoutMs: number },
): Promise<number> {
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const call = request(url, {
      method: "POST",
      headers: { ...headers, "Content-Length": Buffer.byteLength(body) },
      // A kept connection would outlast the check of its address.
      agent: false,
      signal: AbortSignal.timeout(timeoutMs),
      lookup: (_hostname, options, callback) =>
        options.all ? callback(null, [{ address, family }]) : callback(null, address, family),
    });
    call.on("error", reject);
    // Node reports a protocol change (101) only through this event.
    call.on("upgrade", (response, socket) => {
      resolve(response.statusCode ?? 0);
      socket.destroy();
    });
    // No one reads the body.
    call.on("response", (response) => {
      resolve(response.statusCode ?? 0);
      response.on("error", () => {});
      call.destroy();
    });
    call.end(body);
  });
}

/** Resolves the URL's name once. Throws {@link TargetRefused} if the URL must not be called. */
export async function resolveTarget(text: string, policy: TargetPolicy): Promise<Target> {
  const url = new URL(text);
  if (url.protocol !== "https:" && !(policy.allowPrivate && url.protocol === "http:")) {
    throw new TargetRefused("must be an https:// URL");
  }
  if (url.username !== "" || url.password !== "")
    throw new TargetRefused("must not contain a user name or password");
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(hostname) === 0 ? await resolve(hostname, policy) : [hostname];
  const [address] = addresses;
  if (address === undefined) throw new TargetRefused(`names the host ${hostname}, which has no address`);
  if (!policy.allowPrivate && !addresses.every(isPublicAddress)) {
    throw new TargetRefused("leads to a private, local or reserved address");
  }
  return { url, address, family: isIP(address) };
}

/** Not by the system resolver, which blocks a thread for a slow name and knows internal names; except locally. */
async function resolve(hostname: string, { allowPrivate, nameServers }: TargetPolicy): Promise<string[]> {
  if (allowPrivate && nameServers === undefined) {
    const found = await lookup(hostname, { all: true }).catch(() => []);
    return found.map(({ address }) => address);
  }
  const resolver = new Resolver({ timeout: RESOLVE_TIMEOUT_MS, tries: 2 });
  if (nameServers !== undefined) resolver.setServers([...nameServers]);
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}
