import { createServer, type RequestListener, type Server } from "node:http";
import { afterEach, describe, expect, test } from "vitest";
import {
  isPublicAddress,
  postTo,
  resolveTarget,
  type TargetPolicy,
  TargetRefused,
} from "../../../src/webhooks/target.js";
import { listen } from "../../support/listen.js";
import { startNameServer } from "../../support/name-server.js";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const PUBLIC = { allowPrivate: false };
const LOCAL = { allowPrivate: true };

async function receiver(listener: RequestListener): Promise<{ url: string; server: Server }> {
  const server = createServer(listener);
  const { url } = await listen(server);
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `${url}/`, server };
}

async function nameServer(...answers: string[]) {
  const server = await startNameServer(answers);
  closing.push(server.close);
  return server;
}

async function post(url: string, policy: TargetPolicy, timeoutMs = 15_000): Promise<number> {
  const headers = { "content-type": "application/json" };
  return postTo(await resolveTarget(url, policy), { body: "{}", headers, timeoutMs });
}

describe("an address", () => {
  test.each([
    "1.1.1.1",
    "93.184.216.34",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700:4700::1111",
    "2a00:1450::1",
  ])("%s is public", (address) => expect(isPublicAddress(address)).toBe(true));

  test.each([
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::a00:1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "2001::1",
    "2002:7f00:1::",
    "3fff::1",
    "localhost",
  ])("%s is not public", (address) => expect(isPublicAddress(address)).toBe(false));
});

describe("a URL", () => {
  test.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://10.0.0.1:8443/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a00:1]/",
    "https://[fd00::1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://localhost/",
    "https://localhost./",
    "http://93.184.216.34/",
    "ftp://93.184.216.34/",
    "https://user:password@93.184.216.34/",
  ])("%s is rejected", async (url) => {
    await expect(resolveTarget(url, PUBLIC)).rejects.toThrow(TargetRefused);
  });

  test("is accepted with a public address", async () => {
    const { address } = await resolveTarget("https://93.184.216.34/events?x=1", PUBLIC);
    expect(address).toBe("93.184.216.34");
  });

  test("is rejected if its name leads inside", async () => {
    const inside = await nameServer("10.0.0.7");
    await expect(
      resolveTarget("https://inside.example/", { ...PUBLIC, nameServers: [inside.address] }),
    ).rejects.toThrow("leads to a private, local or reserved address");
  });

  test("is rejected if one of its addresses leads inside, even if another does not", async () => {
    const mixed = await nameServer("93.184.216.34,10.0.0.7");
    await expect(
      resolveTarget("https://mixed.example/", { ...PUBLIC, nameServers: [mixed.address] }),
    ).rejects.toThrow("leads to a private, local or reserved address");
  });

  test("is rejected without an address", async () => {
    const nobody = await nameServer();
    await expect(
      resolveTarget("https://nobody.example/", { ...PUBLIC, nameServers: [nobody.address] }),
    ).rejects.toThrow("has no address");
  });
});

describe("a call", () => {
  test("returns the status, and follows no redirect", async () => {
    let calls = 0;
    const { url } = await receiver((request, response) => {
      calls += 1;
      if (request.url === "/") response.writeHead(302, { location: "/inside" }).end();
      else response.end();
    });
    expect(await post(url, LOCAL)).toBe(302);
    expect(calls).toBe(1);
  });

  test("ends if the target does not respond", async () => {
    const { url } = await receiver(() => {});
    await expect(post(url, LOCAL, 100)).rejects.toThrow();
  });

  test("ends if the target changes the protocol", async () => {
    const { url } = await receiver((request) => {
      request.socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    });
    expect(await post(url, LOCAL)).toBe(101);
  });

  test("does not wait for the end of a response without one", async () => {
    const { url } = await receiver((_request, response) => void response.write("ok"));
    expect(await post(url, LOCAL)).toBe(200);
  });
});
