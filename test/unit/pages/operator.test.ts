/** Access to the operator's page. The browser tests cover its content. */
import { generateSignedCookie } from "hono/cookie";
import { describe, expect, it } from "vitest";
import { testApp } from "../http/fixtures.js";

const OPERATOR_KEY = "correct horse battery staple";
const FORM = { "content-type": "application/x-www-form-urlencoded" };
const enter = (key: string) => ({
  method: "POST",
  headers: FORM,
  body: new URLSearchParams({ key }).toString(),
});

describe("the operator's page", () => {
  it("does not exist if no key is configured", async () => {
    const { app } = testApp();
    expect((await app.request("/operator")).status).toBe(404);
    expect((await app.request("/operator", enter("anything at all"))).status).toBe(404);
  });

  it("asks everyone else for the key, and is never stored", async () => {
    const { app } = testApp({ OPERATOR_KEY });
    const forged = `operator=9999999999.${Buffer.alloc(32).toString("base64")}`;
    const ended = await generateSignedCookie("operator", "1700000000", OPERATOR_KEY);
    for (const headers of [{}, { cookie: "operator=" }, { cookie: forged }, { cookie: ended }]) {
      const answer = await app.request("/operator", { headers });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      expect(await answer.text()).toContain('type="password"');
    }
  });

  it("opens a session that no script and no other site can use, and logs no key", async () => {
    const { app, logs } = testApp({ OPERATOR_KEY, BASE_URL: "https://contracts.example" });
    const answer = await app.request("/operator", enter(OPERATOR_KEY));
    expect(answer.status).toBe(303);
    expect(answer.headers.get("location")).toBe("/operator");
    expect(answer.headers.get("set-cookie")).toMatch(
      /^operator=\d+\.(?:\w|%2[BF]){43}%3D; Max-Age=43200; Path=\/operator; HttpOnly; Secure; SameSite=Strict$/,
    );
    expect(logs.join("\n")).not.toContain("horse");
  });

  it("rejects another key, and more than ten tries a minute", async () => {
    const { app, logs } = testApp({ OPERATOR_KEY });
    for (let i = 0; i < 10; i++) {
      const answer = await app.request("/operator", enter(`${OPERATOR_KEY}!`));
      expect(answer.status).toBe(401);
      expect(answer.headers.get("set-cookie")).toBeNull();
    }
    expect((await app.request("/operator", enter(OPERATOR_KEY))).status).toBe(429);
    expect(logs.join("\n")).not.toContain("horse");
  });

  it("is not opened by a session of a former key", async () => {
    const former = testApp({ OPERATOR_KEY: "the key of the month before" });
    const session = (await former.app.request("/operator", enter("the key of the month before"))).headers.get(
      "set-cookie",
    );
    const { app } = testApp({ OPERATOR_KEY });
    const cookie = session?.split(";")[0] ?? "";
    expect(cookie).toContain("operator=");
    expect((await app.request("/operator", { headers: { cookie } })).status).toBe(401);
  });
});
