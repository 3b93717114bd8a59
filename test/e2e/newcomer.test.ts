/** An agent that knows only the service's address finds enough there to complete a contract. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, it } from "vitest";
import { created, UNKNOWN } from "../support/contracts.js";
import { newProject, runProcess } from "../support/run-process.js";
import { codeBlocks } from "../support/text-blocks.js";
import { useWorld } from "../support/world.js";
import { openMiddle } from "./cli-actors.js";

const world = await useWorld();

const read = async (path: string): Promise<string> => {
  const response = await fetch(path.startsWith("http") ? path : world.url + path);
  expect(response.status, path).toBe(200);
  return response.text();
};

/** Runs the program of the guide to which /llms.txt leads, by way of `url`, with exactly the amounts in the guide. */
async function runGuide(url: string) {
  const llms = await read("/llms.txt");
  const guideUrl = /^- \[A complete contract, step by step\]\((\S+)\)/m.exec(llms)?.[1];
  const program = codeBlocks(await read(guideUrl as string), "js")
    .join("\n")
    .replaceAll(world.url, url);

  const [clientKey, workerKey] = [generatePrivateKey(), generatePrivateKey()];
  const client = privateKeyToAccount(clientKey).address;
  const worker = privateKeyToAccount(workerKey).address;
  await world.fundUsd(client, "5.0");
  await world.fundUsd(worker, "0.25");

  const project = newProject();
  writeFileSync(join(project.dir, "contract.mjs"), program);
  const finished = await runProcess("node", ["contract.mjs"], {
    cwd: project.dir,
    env: { CLIENT_KEY: clientKey, WORKER_KEY: workerKey },
  });
  project.remove();
  return { ...finished, client, worker };
}

it("completes a contract by the steps to which /llms.txt leads, and pays once if the response to each payment is lost", async () => {
  const seen = new Set<unknown>();
  const middle = await openMiddle(world, {
    loses({ "payment-signature": payment }) {
      const isFirst = payment !== undefined && !seen.has(payment);
      seen.add(payment);
      return isFirst;
    },
  });
  const { code, stdout, stderr, client, worker } = await runGuide(middle.url);
  middle.close();
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toContain("read       ipfs://bafy…/summary.md");
  expect(stdout).toContain("settled    settled-all-met");
  expect(await world.usdOf(client)).toBe(0n);
  expect(await world.usdOf(worker)).toBe(5_000_000n);
});

it.concurrent.each<[string, (contract: Record<string, unknown>) => void]>([
  ["criteria", (contract) => Object.assign(contract, { acceptanceCriteria: ["Anything", "At all"] })],
  ["task", (contract) => Object.assign(contract, { taskDescription: "Nothing" })],
  ["deadlines", (contract) => Object.assign(contract, { deliveryDeadline: contract.reviewDeadline })],
])("signs no payment by the guide for a contract with other %s than it found", async (_, change) => {
  const middle = await openMiddle(world, {
    change(path, data) {
      if (path.startsWith("/v1/contracts?") && Array.isArray(data)) data.forEach(change);
    },
  });
  const { code, stderr, worker } = await runGuide(middle.url);
  middle.close();
  expect(code).toBe(1);
  expect(stderr).toContain('This quote is not for "Summarise a paper"');
  expect(await world.usdOf(worker)).toBe(250_000n);
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
