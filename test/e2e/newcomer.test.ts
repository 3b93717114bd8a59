/** An agent that knows only the service's address finds enough there to complete a contract. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import { created, UNKNOWN } from "../support/contracts.js";
import { newProject, runProcess } from "../support/run-process.js";
import { codeBlocks } from "../support/text-blocks.js";
import { useWorld } from "../support/world.js";

const world = await useWorld();

const read = async (path: string): Promise<string> => {
  const response = await fetch(path.startsWith("http") ? path : world.url + path);
  expect(response.status, path).toBe(200);
  return response.text();
};

it("completes a contract by the steps to which /llms.txt leads", async () => {
  const llms = await read("/llms.txt");
  const guideUrl = /^- \[A complete contract, step by step\]\((\S+)\)/m.exec(llms)?.[1];
  const program = codeBlocks(await read(guideUrl as string), "js").join("\n");

  const [clientKey, workerKey] = [generatePrivateKey(), generatePrivateKey()];
  const client = privateKeyToAccount(clientKey).address;
  const worker = privateKeyToAccount(workerKey).address;
  // Exactly the amounts in the guide.
  await world.fundUsd(client, "5.0");
  await world.fundUsd(worker, "0.25");

  const project = newProject();
  writeFileSync(join(project.dir, "contract.mjs"), program);
  const { code, stdout, stderr } = await runProcess("node", ["contract.mjs"], {
    cwd: project.dir,
    env: { CLIENT_KEY: clientKey, WORKER_KEY: workerKey },
  });
  project.remove();

  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toContain("read       ipfs://bafy…/summary.md");
  expect(stdout).toContain("settled    settled-all-met");
  expect(await world.usdOf(client)).toBe(0n);
  expect(await world.usdOf(worker)).toBe(5_000_000n);
});

it("reads as JSON, without a key, what the pages show", async () => {
  const agent = await world.newAgent({ usd: "1000" });
  const { id } = await created(world, agent);
  const alternateOf = async (page: string): Promise<string> =>
    /<link rel="alternate" type="application\/json" href="([^"]+)"/.exec(await read(page))?.[1] as string;
  const query = `?client=${agent.address}&status=open`;
  const feed = await alternateOf(`/${query}`);
  expect(feed).toBe(`/contracts.json${query.replace("&", "&amp;")}`);
  const listed = await agent.call("GET", `/v1/contracts${query}`);
  expect(JSON.parse(await read(`/contracts.json${query}`))).toEqual(listed.body);
  const { data } = JSON.parse(await read(await alternateOf(`/contracts/${id}`)));
  expect(data).toEqual((await agent.get(`/v1/contracts/${id}`)).data);

  const own = await alternateOf(`/agents/${agent.address}`);
  const shown = JSON.parse(await read(own));
  expect(shown.data).toEqual((await agent.get(`/v1/agents/${agent.address}/record`)).data);
  expect(shown.earnings).toHaveLength(12);

  const codeOf = async (path: string): Promise<string> => {
    const { error } = (await (await fetch(world.url + path)).json()) as { error: { code: string } };
    return error.code;
  };
  expect(await codeOf("/contracts.json?limit=0")).toBe("invalid_request");
  expect(await codeOf(`/contracts/${UNKNOWN}.json`)).toBe("not_found");
  expect(await codeOf("/contracts/nothing.json")).toBe("not_found");
  expect(await codeOf("/agents/nobody.json")).toBe("not_found");
});

it("finds every address that /llms.txt names", async () => {
  const links = [...(await read("/llms.txt")).matchAll(/\]\((\S+)\)/g)].map(([, url]) => url as string);
  expect(links.length).toBeGreaterThan(5);
  for (const url of links) {
    expect(url.startsWith(world.url)).toBe(true);
    await read(url);
  }
});
