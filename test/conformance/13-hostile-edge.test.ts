/** Hostile paths, queries, cursors, payment headers and bytes on the wire. */
import { describe, expect, test } from "vitest";
import { created, draft, type Json, newPair, ok, UNKNOWN } from "../support/contracts.js";
import { lazy, openScene } from "../support/world.js";
import { sendRaw } from "./support/raw.js";
import { refusal, says, withMoney } from "./support/spec.js";

const scene = await openScene();
const agent = lazy(() => scene.newAgent());
const pair = lazy(() => newPair(scene));
const open = lazy(async () => created(scene, (await pair()).client));

describe("Paths", () => {
  const ids = [
    "ab".repeat(20),
    `0x${"ab".repeat(19)}`,
    `0x${"ab".repeat(21)}`,
    `0x${"g".repeat(40)}`,
    `0x${"ａ".repeat(40)}`,
    `${UNKNOWN}%0a`,
    `${UNKNOWN}%20`,
    `%20${UNKNOWN}`,
    `${UNKNOWN}%00`,
    "%00",
    "%ff",
    "%zz",
    "null",
    "undefined",
    "*",
    "'%20or%201=1--",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "me",
    "x".repeat(8000),
  ];
  test.concurrent.each(ids)("the id %s is 400", async (id) => {
    for (const path of [`/v1/contracts/${id}`, `/v1/contracts/${id}/votes`]) {
      expect(refusal(await (await agent()).get(path)), path).toBe("400 invalid_request");
    }
    const profile = await scene.call("GET", `/v1/agents/${id}/profile`);
    expect([400, 405], JSON.stringify(profile.body)).toContain(profile.status);
  });

  withMoney("an id in any letter case names the same contract", async () => {
    const { id } = await open();
    const upperCase = `0x${id.slice(2).toUpperCase()}`;
    for (const spelling of [id, upperCase, id.toUpperCase(), encodeURI(id).replace("0", "%30")]) {
      expect(ok(await (await agent()).get<Json>(`/v1/contracts/${spelling}`)).id).toBe(id);
    }
  });
});

describe("Queries", () => {
  const contracts = [
    "limit=0",
    "limit=-1",
    "limit=201",
    "limit=1000",
    "limit=1e2",
    "limit=0x10",
    "limit=%D9%A3",
    "limit=",
    "limit=99999999999999999999",
    "limit=1&limit=2",
    "status=",
    "status=open;drop",
    "status=__proto__",
    "status=constructor",
    "status=settled",
    "client=0x",
    `client=${UNKNOWN}%00`,
    `client=${UNKNOWN}&client=${UNKNOWN}`,
    "sort=id",
    "sort=--createdAt",
    "sort=createdAt;",
    "sort=__proto__",
    "minPrice=1e3",
    "minPrice=00",
    "minPrice=-1",
    "maxPrice=NaN",
    `maxPrice=${"9".repeat(100)}`,
    "q=",
    "q=%00",
    `q=${"x".repeat(201)}`,
    "awardMethod=FDP",
    "application=constructor",
    "initiator=both",
    "backupAgent=all",
    "cursor=",
    "cursor=x",
    "cursor=%00",
    `cursor=${"A".repeat(600)}`,
    // Longer than a URL can be.
    `q=${"%ff".repeat(3000)}`,
  ];
  const votes = [
    ...["contractId=1", "backupAgent=me", "majorityOutcome=maybe", "majorityOutcome=", "status=done"],
    ...["client=0x", "worker=x", "limit=0", "limit=201"],
  ];
  const refused = [
    ...contracts.map((query) => `/v1/contracts?${query}`),
    ...votes.map((query) => `/v1/votes?${query}`),
  ];
  test.concurrent.each(refused)("%s is 400", async (path) => {
    expect(refusal(await (await agent()).get(path))).toBe("400 invalid_request");
  });

  const harmless = [
    "q=%25",
    "q=_",
    "q=%5C",
    "q=%27%22%3B--",
    "q=%F0%9F%98%80",
    "unknown=1",
    "status=*",
    "q=%E2%80%AE",
  ];
  test.concurrent.each(harmless)("/v1/contracts?%s is handled", async (query) => {
    expect((await (await agent()).get(`/v1/contracts?${query}`)).status).toBe(200);
  });
});

describe("Cursors", () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const contracts: [string, string][] = [
    ["no list", encode({})],
    ["null", encode(null)],
    ["too few parts", encode(["-createdAt", "1"])],
    ["too many parts", encode(["-createdAt", "1", UNKNOWN, 1])],
    ["another order", encode(["createdAt", "1", UNKNOWN])],
    ["a key that is not a number", encode(["-createdAt", "1; drop table x", UNKNOWN])],
    ["a key of 100 digits", encode(["-createdAt", "9".repeat(100), UNKNOWN])],
    ["a negative key", encode(["-createdAt", "-1", UNKNOWN])],
    ["a key that is a list", encode(["-createdAt", ["1"], UNKNOWN])],
    ["an invalid id", encode(["-createdAt", "1", "0x"])],
    ["an id in another letter case", encode(["-createdAt", "1", UNKNOWN.toUpperCase()])],
    ["an object as id", encode(["-createdAt", "1", { toString: 1 }])],
    ["no JSON", Buffer.from("nonsense").toString("base64url")],
  ];
  test.concurrent.each(contracts)("of contracts: %s is 400", async (_name, cursor) => {
    const answer = await (await agent()).get(`/v1/contracts?cursor=${encodeURIComponent(cursor)}`);
    expect(refusal(answer)).toBe("400 invalid_request");
  });

  const votes: [string, string][] = [
    ["no list", encode("x")],
    ["no JSON", Buffer.from("nonsense").toString("base64url")],
    ["an invalid id", encode(["1", "0x", 0, 0])],
    ["a position beyond int4", encode(["1", UNKNOWN, 2 ** 31, 0])],
    ["a negative position", encode(["1", UNKNOWN, -1, 0])],
    ["a fraction", encode(["1", UNKNOWN, 0.5, 0])],
    ["a time of 20 digits", encode(["9".repeat(20), UNKNOWN, 0, 0])],
    ["SQL", encode(["1", "' or ''='", 0, 0])],
  ];
  test.concurrent.each(votes)("of votes: %s is 400", async (_name, cursor) => {
    expect(refusal(await (await agent()).get(`/v1/votes?cursor=${cursor}`))).toBe("400 invalid_request");
  });

  withMoney("of short lists: only an id from the same list is accepted", async () => {
    const { id } = await open();
    const other = ok(await (await agent()).get<Json[]>("/v1/agents/me/api-keys"))[0]?.id;
    const { client } = await pair();
    const contract = `/v1/contracts/${id}`;
    for (const path of [`${contract}/checkpoints`, `${contract}/complaints`, "/v1/agents/me/api-keys"]) {
      for (const cursor of [other, "x", "00000000-0000-0000-0000-000000000000", "' or ''='", "%00"]) {
        const answer = await client.get(`${path}?cursor=${cursor}`);
        expect(refusal(answer), `${path} ${cursor}`).toBe("400 invalid_request");
      }
    }
    const releases = await client.get(`${contract}/keys/releases?cursor=99999999999999999999`);
    expect(releases.status).toBe(400);
  });
});

describe("Payment headers", () => {
  const base64 = (value: string) => Buffer.from(value).toString("base64");
  const payment = (authorization: Json, more: Json = {}) => {
    const payload = { signature: "0x11", authorization };
    return base64(JSON.stringify({ x402Version: 2, accepted: {}, payload, ...more }));
  };
  const sound = {
    from: UNKNOWN,
    to: UNKNOWN,
    value: "1",
    validAfter: "0",
    validBefore: "9999999999",
    nonce: `0x${"11".repeat(32)}`,
  };
  const headers: [string, string][] = [
    ["nothing", ""],
    ["no base64", "%%%"],
    ["base64 of bytes that are not UTF-8", Buffer.from([0xff, 0xfe]).toString("base64")],
    ["base64 of a list", base64("[]")],
    ["base64 of null", base64("null")],
    ["a bomb of brackets", base64(`${"[".repeat(10_000)}`)],
    ["a deep object", base64(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`)],
    ["40,000 characters", "A".repeat(40_000)],
    ["a polluting key", base64('{"x402Version":2,"__proto__":{"payload":{}}}')],
    ["a negative value", payment({ ...sound, value: "-1" })],
    ["a value in hexadecimal", payment({ ...sound, value: "0x1" })],
    ["a value as number", payment({ ...sound, value: 1 })],
    ["a value beyond uint256", payment({ ...sound, value: (2n ** 256n).toString() })],
    ["a value of 10,000 digits", payment({ ...sound, value: "9".repeat(10_000) })],
    ["a short nonce", payment({ ...sound, nonce: "0x11" })],
    ["an odd signature", payment(sound, { payload: { signature: "0x1", authorization: sound } })],
    ["another version", payment(sound, { x402Version: 3 })],
    ["a version as text", payment(sound, { x402Version: "2" })],
    ["someone else's address", payment(sound)],
  ];
  test.concurrent.each(headers)("%s: 402 again, no money moves", async (_name, header) => {
    const path = `/v1/contracts/${(await open()).id}/accept`;
    for (const name of ["payment-signature", "x-payment"]) {
      const answer = await (await pair()).worker.post(path, { accept: true }, { [name]: header });
      expect(answer.status, JSON.stringify(answer.body)).toBe(402);
    }
  });
});

describe("Bytes on the wire", () => {
  const host = `Host: ${new URL(scene.url).host}\r\n`;
  const isLocal = new URL(scene.url).protocol === "http:";
  const get = (headers: string, target = "/v1/protocol") =>
    `GET ${target} HTTP/1.1\r\n${host}Connection: close\r\n${headers}\r\n`;
  const post = (headers: string, body = "") =>
    `POST /v1/agents/x/challenge HTTP/1.1\r\n${host}Connection: close\r\n${headers}\r\n${body}`;
  const chunked = "Transfer-Encoding: chunked\r\n";
  const requests: [string, string | Buffer, number[]][] = [
    ["a NUL in a header", get("X-Request-Id: a\0b\r\n"), [400]],
    ["a bare line feed in a header", get("X-Request-Id: a\nX-Evil: 1\r\n"), [200, 400]],
    ["a folded header", get("X-Request-Id: a\r\n b\r\n"), [200, 400]],
    ["a blank before the colon", get("X-Request-Id : a\r\n"), [400]],
    ["no host", "GET /v1/protocol HTTP/1.1\r\nConnection: close\r\n\r\n", [400]],
    ["two hosts", get("Host: evil.example\r\n"), [200, 400]],
    ["an unknown method", `BREW /v1/protocol HTTP/1.1\r\n${host}\r\n`, [400, 405]],
    ["headers of 100 KB", get(`X-Filler: ${"y".repeat(100_000)}\r\n`), [431]],
    ["a target with a backslash", get("", "/v1\\protocol"), [400]],
    ["a host with a blank", `GET /v1/protocol HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n`, [400]],
    ["a target with an authority", get("", "http://evil.example/v1/protocol"), [200, 400, 404]],
    ["a target that is not a URL", get("", "//"), [200, 400, 404]],
    ["a target with a bad escape", get("", "/v1/contracts/%zz/checkpoints"), [400, 404]],
    ["a target with raw bytes", Buffer.from(get("", "/v1/\xff\xfe"), "latin1"), [400, 404]],
    ["a length and chunks at once", post(`Content-Length: 5\r\n${chunked}`, "0\r\n\r\n"), [400]],
    ["two lengths", post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"), [400]],
    ["a negative length", post("Content-Length: -1\r\n"), [400]],
    ["a broken chunk", post(chunked, "zz\r\n"), [400]],
    ["HTTP/0.9", "GET /v1/protocol\r\n\r\n", [200, 400]],
    ["no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00", [400]],
  ];
  for (const [name, request, statuses] of requests) {
    test.skipIf(!isLocal).concurrent(name, async () => {
      const answer = await sendRaw(scene.url, request);
      expect(statuses, `${answer.status} ${answer.body}`).toContain(answer.status);
      expect(answer.headers.has("x-evil")).toBe(false);
      if (/backslash|blank$/.test(name))
        expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "invalid_request" } });
      expect(answer.body).not.toMatch(/node:|\.ts:|\.js:|at \w+ \(/);
    });
  }

  test.concurrent("more actions than there are cannot be left to the operator", async () => {
    const body = { operatorActions: Array(1000).fill("approve") };
    const refused = await scene.call("POST", `/v1/agents/${UNKNOWN}/challenge`, { body });
    expect(refusal(refused)).toBe("400 invalid_request");
    expect(refused.error?.message).toContain('must be "all", "none" or a list of: ');
  });

  says("nothing that a caller sends can add a header to the response", async () => {
    const injected = "/v1/contracts/%0d%0aX-Evil:%201?cursor=%0d%0aX-Evil:%201";
    const answer = await (await agent()).get(injected);
    expect([400, 404]).toContain(answer.status);
    expect(answer.headers.get("x-evil")).toBeNull();
    const title = "a\r\nX-Evil: 1\r\n\r\n";
    const quoted = await (await agent()).post("/v1/contracts", await draft(scene, { title }));
    expect(quoted.headers.get("x-evil")).toBeNull();
    expect([400, 402]).toContain(quoted.status);
  });

  says("an API key, a signature and a stack never show in a response", async () => {
    const { apiKey } = await agent();
    const answers = [
      await (await agent()).get(`/v1/nothing/${apiKey.slice(0, 8)}`),
      await scene.call("GET", "/v1/contracts", { headers: { authorization: `Bearer ${apiKey}x` } }),
      await scene.call("POST", `/v1/agents/${UNKNOWN}/api-key`, {
        body: { challengeId: "x", signature: "0x1234abcd" },
      }),
    ];
    for (const { body } of answers) {
      expect(JSON.stringify(body)).not.toContain(apiKey);
      expect(JSON.stringify(body)).not.toMatch(/1234abcd|node_modules|\.ts:\d|at \w+ \(/);
    }
  });
});
