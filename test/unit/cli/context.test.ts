/** Commands at a service that this process plays, and their messages. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createContext, signedIn } from "@working-contracts/cli/context";
import { EXIT_HELP } from "@working-contracts/cli/errors";
import { submittedIn, writePrivateJson } from "@working-contracts/cli/files";
import { run } from "@working-contracts/cli/main";
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import { voteDeposit } from "@working-contracts/protocol/ledger";
import { DEFAULT_PARAMETERS } from "@working-contracts/protocol/terms";
import { base64url, CompactEncrypt } from "jose";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { account, CODE, fakeNode, NETWORK, quoted } from "../client/fake-service.js";
import { servedTerms } from "../client/served-terms.js";

const URL_ = NETWORK.baseUrl;
const ID = `0x${"11".repeat(20)}` as const;
const PATH = "/v1/agents/me/stake";
const KEYS = "/v1/agents/me/api-keys";
let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), "context-"));
  const signIn = { apiKey: "key", operator: "none", network: NETWORK };
  writePrivateJson(join(cwd, "api-keys.json"), { [`${URL_} ${account.address.toLowerCase()}`]: signIn });
});
afterEach(() => {
  vi.unstubAllGlobals();
  rmSync(cwd, { recursive: true });
});

type Answers = Record<string, (init: RequestInit) => Response | Promise<Response>>;
const command = (...args: string[]) => commandAt({}, ...args);

function stake({ headers }: RequestInit): Response {
  if (new Headers(headers).has("payment-signature")) return Response.json({ data: { staked: "1.0" } });
  const token = { asset: NETWORK.protocolToken, extra: { name: "Token", version: "1" } };
  return quoted(PATH, { ...token, payTo: NETWORK.registry, amount: String(10n ** 21n) });
}

/** A service that quotes a stake, and takes it, unless `served` says otherwise; and the world of a command there. */
function worldOf(served: Answers) {
  const requests: string[] = [];
  const answers: Answers = {
    "/v1/network": () => Response.json({ data: { ...NETWORK, time: new Date().toISOString() } }),
    "/v1/agents/me/api-keys": () => Response.json({ data: [], nextCursor: null }),
    "/v1/protocol": () => Response.json({ data: { baEligibilityStake: "1000.0" } }),
    [PATH]: stake,
    ...served,
  };
  vi.stubGlobal("fetch", async (input: string, init: RequestInit = {}) => {
    const { pathname } = new URL(input);
    requests.push(`${init.method ?? "GET"} ${pathname}`);
    return answers[pathname]?.(init) ?? Response.json({}, { status: 404 });
  });
  const output = { stdout: "", stderr: "" };
  const world = {
    env: { WC_URL: URL_, WC_CONFIG_DIR: cwd, WC_PRIVATE_KEY: `0x${"17".repeat(32)}` },
    cwd,
    stdout: (text: string) => (output.stdout += text),
    stderr: (text: string) => (output.stderr += text),
  };
  return { world, requests, output };
}

async function commandAt(served: Answers, ...args: string[]) {
  const { world, requests, output } = worldOf(served);
  const code = await run(args, world);
  return { code, requests, ...output };
}

it("a stake without consent names how to consent, as a limit or --yes for a contract's terms do not", async () => {
  const { code, stderr } = await command("--max-pay", "1000", "--yes", "stake");
  expect([code, stderr]).toEqual([4, expect.stringContaining("name the amount (stake <amount>).")]);
  expect((await command("stake", "1000")).code).toBe(0);
});

it("the salt of an entrusted vote is printed before it is paid for, whatever becomes of it", async () => {
  const { id, terms } = servedTerms();
  const path = `/v1/contracts/${id}/votes`;
  const error = { code: "conflict", message: "Too late" };
  let sent = "";
  const served: Answers = {
    [`/v1/contracts/${id}/terms`]: () => Response.json({ data: terms }),
    [path]({ headers, body }) {
      sent = String(body);
      if (new Headers(headers).has("payment-signature")) return Response.json({ error }, { status: 409 });
      return quoted(path, { payTo: id, amount: String(voteDeposit(50_000_000n, 1, DEFAULT_PARAMETERS)) });
    },
  };
  const { code, stderr } = await commandAt(served, "--yes", "vote", "--entrust", id, "met");
  const opening = `wcontract on-chain open-vote ${id} ${JSON.parse(sent).salt}\n`;
  expect([code, stderr]).toEqual([3, expect.stringContaining(opening)]);
});

it("a contract is shown with the text, price and deadlines behind its address", async () => {
  const { id, terms } = servedTerms();
  const shown = {
    ...{ id, status: "created" },
    budgetOrPrice: "1.0",
    reviewDeadline: "false",
    delivery: null,
  };
  const served = {
    [`/v1/contracts/${id}`]: () => Response.json({ data: shown }),
    [`/v1/contracts/${id}/terms`]: () => Response.json({ data: terms }),
    [`/v1/contracts/${id}/keys`]: () => Response.json({ error: { code: "forbidden" } }, { status: 403 }),
  };
  const { stdout } = await commandAt(served, "--json", "show", id);
  expect(JSON.parse(stdout)).toMatchObject({
    status: "created",
    acceptanceCriteria: ["One page"],
    budgetOrPrice: "50.0",
    reviewDeadline: "2027-01-15T08:05:00.000Z",
  });
});

it("a dispute of the delivery is advised if its text is not what was delivered, not if the node cannot say", async () => {
  const { id, code, terms } = servedTerms();
  const [kid, secret] = ["1", new Uint8Array(32)];
  const header = { alg: "dir", enc: "A256GCM", kid };
  const delivery = await new CompactEncrypt(new TextEncoder().encode("ipfs://summary"))
    .setProtectedHeader(header)
    .encrypt(secret);
  const key = { kty: "oct", kid, k: base64url.encode(secret), field: "delivery" };
  const shown = { id, status: "under-review", delivery, supplementaryMaterials: null };
  const chain = fakeNode({}, (address) => (address === id ? code : CODE));
  const showAt = async (logs: () => object, changes = {}, keys: unknown = [key]) => {
    const served: Answers = {
      [`/v1/contracts/${id}`]: () => Response.json({ data: { ...shown, ...changes } }),
      [`/v1/contracts/${id}/terms`]: () => Response.json({ data: terms }),
      [`/v1/contracts/${id}/keys`]: () => Response.json({ data: { keys } }),
      async "/node"({ body }) {
        const call = JSON.parse(String(body));
        if (call.method === "eth_getLogs") return Response.json(logs());
        const isNumber = call.method === "eth_blockNumber";
        return Response.json({ result: isNumber ? "0x1" : await chain.request(call) });
      },
    };
    const { code: exit, stdout } = await commandAt(served, "--rpc-url", `${URL_}/node`, "--json", "show", id);
    const { status, unopened } = JSON.parse(stdout);
    expect([exit, status]).toEqual([0, "under-review"]);
    return unopened;
  };
  const deliveredWith = (hash: string) => () => ({ result: [{ topics: [], data: hash }] });
  expect(await showAt(deliveredWith(keccak256(stringToHex("ipfs://summary"))))).toBeUndefined();
  expect(await showAt(deliveredWith(keccak256("0x01")))).toMatch(
    /does not match its hash .* dispute it before/,
  );
  // Whatever the service serves in place of text and key.
  const { k: _, ...broken } = key;
  const isClient = { client: account.address.toLowerCase() };
  const served: [changes: object, keys: unknown][] = [
    [{ delivery: "x" }, [key]],
    [{}, [broken]],
    [isClient, null],
  ];
  for (const [changes, keys] of served)
    expect(await showAt(() => ({ result: [] }), changes, keys)).toMatch(/cannot be opened.* dispute it/);
  const refused = await showAt(() => ({ error: { message: "up to a 500 block range" } }));
  expect(refused).toMatch(/^eth_getLogs: up to a 500 block range\. .*another node$/);
});

it("a sealed vote that could have been cast names the command that opens it, whatever becomes of it", async () => {
  const { id, terms } = servedTerms();
  const path = `/v1/contracts/${id}/votes`;
  const amount = String(voteDeposit(50_000_000n, 1, DEFAULT_PARAMETERS));
  const failures = [
    ({ headers }: RequestInit) => (new Headers(headers).has("payment-signature") ? 409 : 402),
    () => 409,
    () => 503,
  ];
  const vote = (fail: (init: RequestInit) => number, ...outcomes: string[]) => {
    const answer = (status: number) =>
      Response.json({ error: { code: "conflict", message: "No" } }, { status });
    const served: Answers = {
      [`/v1/contracts/${id}/terms`]: () => Response.json({ data: terms }),
      [path]: (init) => (fail(init) === 402 ? quoted(path, { payTo: id, amount }) : answer(fail(init))),
    };
    return commandAt(served, "--patience", "0s", "--yes", "vote", id, ...outcomes);
  };
  for (const fail of failures) expect((await vote(fail, "met")).stderr).toMatch(/wcontract open-votes`\.\n$/);
  expect((await vote(() => 402, "met", "met")).stderr).not.toContain("open-votes");
});

it.each([
  [ID, ID],
  [`${ID}; sh`, "(no address)"],
])("%s is listed as the id of a contract only if it is safe in a shell", async (id, shown) => {
  const served = {
    "/v1/contracts": () =>
      Response.json({ data: [{ id, status: "created", budgetOrPrice: "1.0", title: "x" }] }),
  };
  expect((await commandAt(served, "list")).stdout).toContain(`\n${shown}  created`);
});

it.each([
  ["WyJhIl0", "Next page: --cursor WyJhIl0"],
  ["a; sh", "price  title"],
])("the next page of %s is named only if it is safe in a shell", async (nextCursor, last) => {
  const served = { "/v1/contracts": () => Response.json({ data: [], nextCursor }) };
  expect((await commandAt(served, "list")).stdout.trim().split("\n").at(-1)).toContain(last);
});

it.each([
  ["7c1e-1", "7c1e-1"],
  ["x; sh", "(no id)"],
  ["--yes", "(no id)"],
])("%s is listed as the id of an API key only if it is safe in a shell", async (id, shown) => {
  const data = [{ id, label: null, createdAt: "2030", revokedAt: null }];
  const served = { [KEYS]: () => Response.json({ data, nextCursor: null }) };
  expect((await commandAt(served, "key", "list")).stdout).toContain(`\n${shown} `);
});

it("a command names the contract on which it acted, whatever the service names", async () => {
  const data = { id: `0x${"22".repeat(20)}`, status: "cancelled-by-initiator" };
  const served = { [`/v1/contracts/${ID}/cancel`]: () => Response.json({ data }) };
  const { stdout } = await commandAt(served, "cancel", ID);
  expect(stdout).toBe(`cancelled: ${ID} is cancelled-by-initiator\n`);
});

it("a payment's payee is printed, and kept before the payment is sent", async () => {
  let kept = "";
  const served = {
    [PATH](init: RequestInit) {
      const response = stake(init);
      if (response.ok) kept = readFileSync(join(cwd, "payments.jsonl"), "utf8");
      return response;
    },
  };
  const { stderr } = await commandAt(served, "stake", "1000");
  const { registry: payTo } = NETWORK;
  expect(stderr).toContain(`paying 1000.0 protocol tokens to ${payTo} for ${URL_}${PATH}\n`);
  expect(JSON.parse(kept)).toMatchObject({ service: URL_, payTo, decimal: "1000.0" });
});

it("a payment beyond the limit is neither printed nor kept", async () => {
  const { world, output } = worldOf({});
  const { agent } = await signedIn(createContext({}, world), { spendingLimit: {} });
  await expect(agent.stake("1000")).rejects.toMatchObject({ name: "SpendingLimitError" });
  expect(output.stderr).toBe("");
  expect(existsSync(join(cwd, "payments.jsonl"))).toBe(false);
});

it("a price that the caller named is not too high, however high it is", async () => {
  const work = ["--title", "x", "--task", "x", "--criterion", "x", "--price", "1208925819614629174.706175"];
  const { requests, stderr } = await command("post", ...work);
  expect(stderr).not.toContain("spendingLimit");
  expect(requests).toContain("POST /v1/contracts");
});

it("a payment or receipt that cannot be stored is reported, and the payment counts", async () => {
  for (const file of ["payments.jsonl", "receipts.jsonl"]) mkdirSync(join(cwd, file));
  const { code, stderr } = await command("stake", "1000");
  expect(code).toBe(0);
  expect(stderr).toMatch(/payment could not be stored: EISDIR(.|\n)*receipt could not be stored: EISDIR/);
});

it("a receipt that a crash cut off is one fault among the others", async () => {
  writeFileSync(join(cwd, "receipts.jsonl"), '{"at":"2030\n{"offer":null}\n');
  const { code, stdout, stderr } = await command("--json", "receipts", "check");
  const faults = [expect.stringContaining("JSON"), "the service signed no offer"];
  expect(JSON.parse(stdout)).toMatchObject(faults.map((fault) => ({ keys: [], fault })));
  expect([code, stderr]).toEqual([1, expect.stringContaining("2 of 2 receipts prove nothing")]);
});

it.each([
  ["--deployment", ["--deployment", "none", "--rpc-url", "http://127.0.0.1:9", "verify", ID]],
  [
    "--checkpoints",
    ["--rpc-url", "http://127.0.0.1:9", "on-chain", "deliver", ID, "a", "--checkpoints", "none"],
  ],
  ["--copy", ["--rpc-url", "http://127.0.0.1:9", "show", ID, "--copy", "none"]],
  ["receipts", ["receipts", "check", "none"]],
])("a file of %s that does not exist is wrong usage", async (_, args) => {
  const { code, stderr } = await command(...args);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/^wcontract: Cannot read none( \(--deployment or DEPLOYMENT\))?: ENOENT/),
  ]);
});

it("no API key is made if it cannot be saved, or if the record of sign-ins is something else", async () => {
  const file = join(cwd, "api-keys.json");
  writeFileSync(file, "{}");
  writeFileSync(`${file}.lock`, "");
  const locked = await command("list");
  expect(locked.stderr).toContain("api-keys.json.lock is held");
  rmSync(`${file}.lock`);
  writeFileSync(file, "[]");
  const other = await command("list");
  expect(other.stderr).toBe(`wcontract: ${file} is not a record of sign-ins. Repair or delete it.\n`);
  expect([...locked.requests, ...other.requests]).toEqual([]);
});

it("a command reads one page of API keys, however many a service offers", async () => {
  const endless = () => Response.json({ data: [], nextCursor: "x" });
  const { code, requests } = await commandAt({ [KEYS]: endless }, "stake", "1000");
  expect([code, requests.filter((one) => one.endsWith(KEYS))]).toEqual([0, [`GET ${KEYS}`]]);
});

it("nothing is signed for another network than that of the deployment file, nor is one sign-in replaced by another", async () => {
  const path = join(cwd, "deployment.json");
  const fileWith = (changes: object) => {
    const deployment = { ...NETWORK, networkName: "base-sepolia", ...changes };
    writeFileSync(path, JSON.stringify(deployment));
  };
  const other = `0x${"bb".repeat(20)}`;
  const signed: string[] = [];
  const served: Answers = {
    [`/v1/agents/${account.address.toLowerCase()}/challenge`]: () =>
      Response.json({ error: { code: "asked" } }, { status: 400 }),
  };
  const staking = (url: string) =>
    commandAt(served, "--url", url, "--domain", NETWORK.domain, "--deployment", path, "stake", "1000").then(
      ({ code, stderr, requests }) => {
        signed.push(...requests.filter((request) => request.startsWith("POST")));
        return [code, stderr];
      },
    );
  for (const [changes, field] of [
    [{ factory: other }, "factory"],
    [{ chainId: 1 }, "chainId"],
    [{ domain: "x" }, "domain"],
    [{ startBlock: 1 }, "startBlock"],
    [{ asset: { ...NETWORK.asset, address: other } }, "asset"],
  ] as const) {
    fileWith(changes);
    const refused = (source: string) => [
      4,
      expect.stringMatching(new RegExp(`\\(${field}\\): the deployment file .*, ${source} `)),
    ];
    expect(await staking(URL_)).toEqual(refused("your earlier sign-in .*"));
    expect(await staking("https://other.example")).toEqual(refused("the service https://other.example"));
  }
  expect(signed).toEqual([]);
  fileWith({});
  expect((await staking(URL_))[0]).toBe(0);
  expect((await staking("https://other.example"))[0]).toBe(3);
});

it("open-votes asks the node about the votes that it remembers, whatever the service answers", async () => {
  const submitted = submittedIn(join(cwd, "submitted", account.address.toLowerCase()));
  await submitted.add(`votes/${NETWORK.factory}`, ID);
  const open = (answer: () => Response) => {
    const node = () => Response.json({ error: { message: "the node was asked" } });
    const args = ["--patience", "0s", "--rpc-url", "http://127.0.0.1:9/node", "open-votes", "--now"];
    return commandAt({ [KEYS]: answer, "/node": node }, ...args);
  };
  for (const status of [401, 403, 503]) {
    const code = status === 401 ? "unauthorized" : "forbidden";
    const refused = () => Response.json({ error: { code, message: "No" } }, { status });
    const { code: exit, stderr } = await open(refused);
    expect(exit).not.toBe(0);
    expect(stderr).toMatch(new RegExp(`^not signed in: .*\n${ID}: .*the node was asked\n`));
  }
});

it("the help says that a repeated stake pays again, as a post does", () => {
  expect(EXIT_HELP).toContain("a post and a stake pay each time");
});
