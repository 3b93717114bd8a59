/**
 * The command line, as people and scripts use it: results, files, exit codes. Runs in a separate process if that
 * matters.
 */
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onChain } from "@working-contracts/client/index";
import { escrowAbi } from "@working-contracts/protocol/abi";
import type { Address, Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it } from "vitest";
import { ROOT } from "../../src/root.js";
import { isDelegated } from "../support/chain.js";
import { laterThan } from "../support/contracts.js";
import { listen } from "../support/listen.js";
import { runProcess, startProcess } from "../support/run-process.js";
import { useWorld } from "../support/world.js";
import { openMiddle, type User, useUsers, WC } from "./cli-actors.js";

const POST = [
  ...["post", "--title", "Summarise a paper", "--task", "One page.", "--price", "50"],
  ...["--criterion", "One page", "--criterion", "Names the method"],
];

const world = await useWorld();
const users = useUsers(world);
const { newUser } = users;

interface Shown {
  id: string;
  status: string;
  plain: Record<string, string>;
}
interface Verified {
  equal: boolean;
  fields: { field: string; equal: boolean }[];
  steps: { step: string; party: string; allowedBy: string }[];
}

/** The API's report of the contract matches the chain. */
async function expectVerified(user: User, id: string) {
  const { equal, fields, steps } = await user.json<Verified>("verify", id);
  expect(fields.filter((one) => !one.equal)).toEqual([]);
  expect(equal).toBe(true);
  return {
    fields: fields.map(({ field }) => field),
    steps: steps.map(({ step, party, allowedBy }) => [step, party, allowedBy]),
  };
}

/** A user that can vote on contracts that are matched from now on. */
async function newJuror(): Promise<User> {
  const juror = await newUser();
  await world.grantTokens(juror.address, 1000);
  await laterThan(world, (await juror.json<{ stakedSince: string }>("stake", "1000")).stakedSince);
  return juror;
}

/** A reference that could look like a line of ours. */
const LINES = "ipfs://summary\nstatus  settled-all-met";

/** A disputed contract of two new users. */
async function disputed(): Promise<{ client: User; worker: User; id: string }> {
  const [client, worker] = await Promise.all([newUser(), newUser()]);
  const { id } = await client.json<Shown>(...POST);
  await worker.json("--yes", "accept", id);
  await worker.json("deliver", id, LINES);
  expect((await client.json<Shown>("--yes", "dispute", id)).status).toBe("disputed");
  return { client, worker, id };
}

const GONE = ["--url", "http://127.0.0.1:9"];
const paid = "its payment authorization";
const signed = "its signed action";
const byAnyone = "no one: anyone can send it";

describe("a contract by command line", () => {
  it("goes from post to payout, and matches the chain at every step", async () => {
    const [client, worker] = await Promise.all([newUser(), newUser()]);
    const { id } = await client.json<Shown>(...POST, "--materials", "ipfs://paper");
    expect((await expectVerified(client, id)).fields.length).toBeGreaterThan(40);

    const listed = await worker.spawn("list", "--status", "open", "--client", client.address);
    expect(listed.stdout).toContain(id);
    expect((await worker.json<Shown>("--max-pay", "2.5", "accept", id)).status).toBe("matched");
    expect((await worker.json<Shown>("show", id)).plain).toEqual({ supplementaryMaterials: "ipfs://paper" });
    await worker.json("deliver", id, "ipfs://summary");
    expect((await client.run("show", id)).stdout).toContain("delivery: ipfs://summary");
    await expectVerified(client, id);

    const [watched] = await Promise.all([
      worker.run("watch", id, "--until", "settled-*", "--timeout", "60s"),
      client.json("approve", id),
    ]);
    expect(watched).toMatchObject({ code: 0, stdout: "settled-all-met\n" });
    expect(watched.stderr).toContain(`${id} is under-review`);
    const settled = await client.run("settle", id);
    expect(settled.stdout).toMatch(/worker-pay\s+worker\s+0x[0-9a-f]{40}\s+47\.5\s+confirmed/);
    expect((await expectVerified(worker, id)).steps).toEqual([
      ["Created", client.address, paid],
      ["Matched", worker.address, paid],
      ["Delivered", worker.address, signed],
      ["Approved", client.address, signed],
      ["Settled", expect.any(String), byAnyone],
    ]);
  });

  it("is disputed, judged and settled, down to each voter's payout", async () => {
    const [juror, other, alone, withheld] = await Promise.all([
      newJuror(),
      newJuror(),
      newJuror(),
      newJuror(),
    ]);
    const { client, worker, id } = await disputed();
    await Promise.all([
      juror.json("--yes", "vote", "--no-wait", id, "met", "not-met"),
      other.json("--yes", "vote", "--entrust", id, "met", "unclear"),
      alone.json("--yes", "vote", "--no-wait", id, "met", "not-met"),
    ]);
    for (const { address } of [alone, withheld])
      await world.testClient.setBalance({ address, value: 10n ** 18n });
    // A service that withholds an entrusted vote leaves its voter the salt.
    const salt = `0x${"5a".repeat(32)}` as const;
    const account = privateKeyToAccount(withheld.key as Hex);
    const own = await onChain({ rpcUrl: world.info.rpcUrl, account, network: world.deployment });
    await own.vote(id, ["met", "unclear"], salt);
    const copies = mkdtempSync(join(tmpdir(), "copies-"));
    const { shared } = await worker.json<{ shared: string[] }>("share", id, "--save", copies);
    expect(shared.sort()).toEqual([juror, other, alone, withheld].map(({ address }) => address).sort());
    const copy = join(copies, `${id}-${juror.address}.json`);
    expect((await juror.json<Shown>(...GONE, "show", id, "--copy", copy)).plain).toEqual({ delivery: LINES });
    const shown = `delivery: ${LINES.replace("\n", "\n  ")}\n`;
    expect((await juror.run(...GONE, "show", id, "--copy", copy)).stdout).toBe(shown);
    expect((await other.run("show", id, "--copy", copy)).code).not.toBe(0);
    rmSync(copies, { recursive: true });
    await expectVerified(client, id);
    await world.increaseTime(86_400);
    expect(await juror.json("open-votes")).toEqual({ opened: [id] });
    // Without the service.
    await alone.json(...GONE, "on-chain", "open-vote", id);
    expect((await withheld.run(...GONE, "on-chain", "open-vote", id)).stderr).toContain("this salt opens");
    await withheld.json(...GONE, "on-chain", "open-vote", id, salt);

    const { legs } = await client.json<{ legs: { name: string; state: string }[] }>("settle", id);
    expect(legs.filter(({ name }) => name === "jury-payout")).toHaveLength(4);
    const { fields, steps } = await expectVerified(client, id);
    expect(fields).toContain(`transferred to ${juror.address}`);
    expect(steps.slice(3)).toEqual(
      expect.arrayContaining([
        ["Disputed", client.address, paid],
        ["VoteSealed", juror.address, paid],
        ["VoteSealed", other.address, paid],
        ["VoteOpened", juror.address, expect.stringContaining("its sealed vote, opened by 0x")],
        ["Tallied", expect.any(String), byAnyone],
        ["VoteClaimed", expect.any(String), byAnyone],
      ]),
    );
  });

  it("is judged by a vote that waits, and opens itself although the service lists none", async () => {
    const hiding = await openMiddle(world, {
      change(path, data) {
        if (path.startsWith("/v1/votes?") && Array.isArray(data)) data.length = 0;
      },
    });
    const juror = await newJuror();
    const { id } = await disputed();
    const at = { address: id as Address, abi: escrowAbi } as const;
    const opened = () => world.publicClient.readContract({ ...at, functionName: "openedVotes" });
    const voting = juror.run("--url", hiding.url, "--yes", "vote", id, "met", "not-met");
    const sealed = async () =>
      (await world.publicClient.readContract({ ...at, functionName: "jury" })).sealedVotes;
    await expect.poll(sealed).toBe(1);
    expect(await juror.json("open-votes", "--now")).toEqual({ opened: [] });
    await world.increaseTime(86_400);
    const { code, stderr } = await voting;
    hiding.close();
    expect(code, stderr).toBe(0);
    expect(stderr).toContain("waiting until voting has ended");
    expect(await opened()).toBe(1n);
  });

  it("ends by time: no one accepts, nothing is delivered, no one reviews", async () => {
    const [client, worker] = await Promise.all([newUser({ usd: "200" }), newUser()]);
    const hours = ["--match", "1h", "--withdrawal", "2h", "--delivery", "3h", "--review", "4h"];
    const post = (): Promise<Shown> => client.json(...POST, ...hours);
    const contracts = { unmatched: await post(), absent: await post(), "review-timeout": await post() };
    await worker.json("--yes", "accept", contracts.absent.id);
    await worker.json("--yes", "accept", contracts["review-timeout"].id);
    await worker.json("deliver", contracts["review-timeout"].id, "ipfs://summary");
    await world.increaseTime(5 * 3600);
    for (const [ending, { id }] of Object.entries(contracts)) {
      expect(await client.json("settle", id)).toMatchObject({ ending });
      await expectVerified(client, id);
    }
  });
});

describe("a service", () => {
  it("is not needed to settle on chain", async () => {
    const client = await newUser();
    await world.testClient.setBalance({ address: client.address, value: 10n ** 18n });
    const { id } = await client.json<Shown>(...POST, "--on-chain");
    await client.json(...GONE, "on-chain", "cancel", id);
    await client.json(...GONE, "on-chain", "settle", id);
    expect(await client.json("settle", id)).toMatchObject({ ending: "cancelled" });
    const { steps } = await expectVerified(client, id);
    expect(steps[1]).toEqual(["Cancelled", client.address, "its own transaction"]);
  });

  it("is not needed to change what it may do", async () => {
    const user = await newUser();
    await world.testClient.setBalance({ address: user.address, value: 10n ** 18n });
    const onChain = (...args: string[]) => user.json(...GONE, "on-chain", ...args);
    const grant = () => isDelegated(world, user, "approve");
    await onChain("register", "--operator", "all");
    expect(await grant()).toBe(true);
    await onChain("register");
    expect(await grant()).toBe(false);
    await onChain("register", "--operator", "all");
    await onChain("revoke");
    expect(await grant()).toBe(false);
  });

  it("acts without a signature for each action if that is left to it", async () => {
    const [client, worker] = [await newUser(), await newUser({ env: { WC_OPERATOR: "all" } })];
    const { id } = await client.json<Shown>(...POST, "--worker", worker.address);
    await worker.json("decline", id);
    const delegation = expect.stringMatching(/^its delegation to the operator, registered in 0x/);
    const { steps } = await expectVerified(client, id);
    expect(steps[1]).toEqual(["Declined", worker.address, delegation]);
  });

  it("gets no signature for other addresses than at the first sign-in", async () => {
    let isLying = false;
    const middle = await openMiddle(world, {
      change(path, data) {
        if (isLying && path === "/v1/network") data.factory = `0x${"66".repeat(20)}`;
      },
    });
    const user = await newUser({ env: { WC_URL: middle.url } });
    const directory = user.env.WC_CONFIG_DIR as string;
    mkdirSync(directory, { recursive: true });
    const older = { [`${middle.url} ${user.address.toLowerCase()}`]: "wc_test_of_an_earlier_release" };
    writeFileSync(join(directory, "api-keys.json"), JSON.stringify(older), { mode: 0o600 });
    await user.json("list");
    isLying = true;
    // The first addresses are the real ones: the escrow is where they predict it.
    expect((await user.json<Shown>(...POST)).status).toBe("created");
    const stranger = await newUser({ env: { WC_URL: middle.url } });
    const { code, stderr } = await stranger.run(...POST);
    expect(code).not.toBe(0);
    expect(stderr).toContain("Refused to sign");
    middle.close();
  });
});

describe.concurrent("verify", () => {
  it("points out each field in which a service differs from the chain, and exits with 1", async () => {
    const [client, worker] = await Promise.all([newUser(), newUser()]);
    const { id } = await client.json<Shown>(...POST);
    await worker.json("--yes", "accept", id);
    await worker.json("withdraw", id);
    await client.json("settle", id);
    const path = `/v1/contracts/${id}`;
    const differing = async (change: (path: string, data: Record<string, unknown>) => void) => {
      const liar = await openMiddle(world, { change });
      await client.run("--url", liar.url, "list");
      const { code, stdout, stderr } = await client.run("--url", liar.url, "--json", "verify", id);
      liar.close();
      expect(code).toBe(1);
      const { equal, fields } = JSON.parse(stdout) as Verified;
      expect(equal).toBe(false);
      const named = fields.filter((one) => !one.equal).map(({ field }) => field);
      expect(stderr).toContain(`${named.length} of ${fields.length} fields differ`);
      return named;
    };

    const money = differing((called, data) => {
      if (called === path)
        Object.assign(data, { status: "resolved", budgetOrPrice: "5.0", worker: client.address });
      if (called !== `${path}/settlement`) return;
      const [first] = data.legs as { amount: string }[];
      Object.assign(first as object, { amount: "1.0" });
    });
    // Text that was changed everywhere still does not match the hash on chain.
    const text = differing((called, data) => {
      if (called === path) data.title = "Rob a bank";
      if (called !== `${path}/terms`) return;
      data.canonicalDocument = String(data.canonicalDocument).replace("Summarise a paper", "Rob a bank");
    });

    expect((await Promise.all([money, text]))[0]).toEqual([
      "status",
      "worker",
      "budgetOrPrice",
      expect.stringMatching(/^settlement\.\S+ to /),
    ]);
    expect(await text).toEqual(expect.arrayContaining(["text of the terms, hash", "title in the terms"]));

    const hiding = await openMiddle(world, {
      change(called, data) {
        if (called === `${path}/settlement`) data.legs = [];
      },
    });
    await client.run("--url", hiding.url, "list");
    const { code, stdout } = await client.run("--url", hiding.url, "verify", id);
    hiding.close();
    expect([code, stdout]).toEqual([1, expect.stringMatching(/DIFFERS +settlement\.legs, count/)]);
  });

  it("needs no service and no key, signs in to none, and says what it could not compare", async () => {
    const client = await newUser();
    const { id } = await client.json<Shown>(...POST);
    const alone = await newUser({ usd: "0", env: { WC_PRIVATE_KEY: "" } });
    const stranger = await newUser({ usd: "0" });
    let isGone = false;
    let requests = 0;
    const gone = await openMiddle(world, {
      loses: () => {
        requests++;
        return isGone;
      },
    });
    await client.json("--url", gone.url, "list");
    isGone = true;
    for (const user of [alone, stranger, client]) {
      requests = 0;
      const verifying = user.run("--url", gone.url, "--patience", "1s", "--json", "verify", id);
      const { code, stdout, stderr } = await verifying;
      expect(code, stderr).toBe(0);
      const { equal, fields, notCompared, steps } = JSON.parse(stdout);
      expect(equal).toBe(true);
      expect(fields).toContainEqual({ field: "status", chain: "created", api: null, equal: null });
      expect(notCompared.length).toBeGreaterThan(3);
      expect(steps).toMatchObject([{ step: "Created", party: client.address }]);
      expect(stderr).toContain("not compared: settlement: ");
      // Only an agent that has signed in there asks.
      expect(requests > 0).toBe(user === client);
    }
    gone.close();
    const { stdout } = await alone.run("verify", id);
    expect(stdout).toMatch(/not compared\s+status\s+created/);
  });

  it("points out a node that hides an event", async () => {
    const client = await newUser();
    const { id } = await client.json<Shown>(...POST);
    await client.json("cancel", id);
    await client.json("settle", id);
    const hiding = await openMiddle(world, {
      to: world.info.rpcUrl,
      change(_, answers) {
        for (const { result } of [answers].flat() as { result?: unknown }[])
          if (Array.isArray(result)) result.pop();
      },
    });
    const honest = await client.run("verify", id, "--also-rpc", world.info.rpcUrl);
    const { code, stdout } = await client.run("--json", "verify", id, "--also-rpc", hiding.url);
    hiding.close();
    expect([honest.code, code]).toEqual([0, 1]);
    const { fields } = JSON.parse(stdout) as Verified;
    const named = fields.filter(({ equal }) => !equal).map(({ field }) => field);
    expect(named).toEqual([`node ${new URL(hiding.url).host}`]);
  });

  it("does not accept another deployment's escrow as a contract", async () => {
    const user = await newUser({ usd: "0" });
    const { code, stderr } = await user.run("verify", world.deployment.asset.address);
    expect(code).toBe(1);
    expect(stderr).toContain("No escrow at");
  });
});

describe("a payment", () => {
  it("is not made beyond the limits of the command line", async () => {
    const [client, worker] = await Promise.all([newUser(), newUser()]);
    const { id } = await client.json<Shown>(...POST);
    const silent = await worker.spawn("accept", id);
    expect(silent.code).toBe(4);
    expect(silent.stderr).toContain("2.5");
    const limited = await worker.run("--max-pay", "2.49", "accept", id);
    expect(limited.code).toBe(4);
    expect(await world.usdOf(worker.address)).toBe(100_000_000n);
  });

  it("leaves a receipt that is checked without the service, and not if it was changed", async () => {
    const client = await newUser();
    const { id } = await client.json<Shown>(...POST);
    const alone = [...GONE, "receipts", "check"];
    const kept = await client.json<unknown[]>(...alone);
    const transaction = expect.stringMatching(/^0x/);
    expect(kept).toMatchObject([{ payTo: id, amount: "50000000", transaction, fault: null }]);
    const [line = ""] = readFileSync(join(client.cwd, "config/receipts.jsonl"), "utf8").split("\n");
    const changes: [change: (proof: Record<string, unknown>) => object, fault: string][] = [
      [
        ({ receipt }) => ({ receipt: String(receipt).replace(/\.[^.]+\./, ".e30.") }),
        "signature verification failed",
      ],
      [() => ({ receipt: null }), "the service signed no receipt"],
      [() => ({ keys: {} }), "the service does not publish the key of its offer"],
      [() => ({ fault: "the offer had ended" }), "the offer had ended"],
    ];
    const nothing = { keys: [], fault: "the service signed no offer" };
    const file = join(client.cwd, "changed.jsonl");
    const lines = changes.map(([change]) => ({ ...JSON.parse(line), ...change(JSON.parse(line)) }));
    writeFileSync(file, [...lines, null].map((one) => JSON.stringify(one)).join("\n"));
    const { code, stdout, stderr } = await client.run("--json", ...alone, file);
    expect(JSON.parse(stdout)).toMatchObject([...changes.map(([, fault]) => ({ fault })), nothing]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("5 of 5 receipts prove nothing")]);
  });

  it("is made only once if its responses are lost", async () => {
    const client = await newUser();
    let lost = 0;
    const middle = await openMiddle(world, {
      loses: (headers) => headers["payment-signature"] !== undefined && lost++ < 2,
    });
    const posted = await client.run("--url", middle.url, "--patience", "0s", ...POST);
    middle.close();
    expect(posted.stdout).toContain("is created");
    expect(posted.stderr).toContain("outcome not known yet");
    expect(lost).toBe(3);
    expect(await world.usdOf(client.address)).toBe(50_000_000n);
  });
});

describe("exit codes", () => {
  it("distinguish wrong usage, rejection and no response", async () => {
    const user = await newUser({ usd: "0" });
    expect((await user.spawn("no-such-command")).code).toBe(2);
    expect((await user.run("post", "--title", "x")).code).toBe(2);
    expect((await user.run("show", `0x${"00".repeat(20)}`)).code).toBe(3);
    const poor = await user.run(...POST);
    expect(poor.code).toBe(4);
    const unknown = await user.run("--json", "show", `0x${"00".repeat(20)}`);
    expect(JSON.parse(unknown.stderr)).toMatchObject({ error: { code: "not_found" } });
    const other = await newUser({ usd: "0", env: { WC_PRIVATE_KEY: "" } });
    expect((await other.run("list")).code).toBe(2);
    const silent = await openMiddle(world, { loses: () => true });
    expect((await user.run("--url", silent.url, "--patience", "0s", "list")).code).toBe(5);
    silent.close();
  });
});

describe("the key", () => {
  it("is stored in an encrypted file that only its owner can read, and is never printed", async () => {
    const password = "correct horse";
    const imported = await newUser({ usd: "0", env: { WC_PASSWORD: password } });
    const made = await imported.run("key", "import");
    expect(made).toMatchObject({ code: 0, stdout: `${imported.address}\n` });
    const path = /saved to (\S+);/.exec(made.stderr)?.[1] as string;
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ version: 3, crypto: { kdf: "scrypt" } });

    const outputs = [made.stdout, made.stderr, readFileSync(path, "utf8")];
    for (const args of [["key", "show"], ["key", "import"], ["list"], ["--help"]]) {
      const { stdout, stderr } = await imported.run(...args);
      outputs.push(stdout, stderr);
    }
    const apiKeys = join(imported.env.WC_CONFIG_DIR as string, "api-keys.json");
    expect(statSync(apiKeys).mode & 0o777).toBe(0o600);
    outputs.push(readFileSync(apiKeys, "utf8"));
    expect(outputs.join("").toLowerCase()).not.toContain(imported.key.slice(2).toLowerCase());

    // The file works without the environment. Another password does not, and an existing file is kept.
    const kept = readFileSync(path, "utf8");
    const fromFile = await newUser({
      usd: "0",
      env: { WC_PRIVATE_KEY: "", WC_KEYSTORE: path, WC_PASSWORD: password },
    });
    expect((await fromFile.run("key", "check")).stdout).toContain(imported.address);
    const wrong = await newUser({
      usd: "0",
      env: { WC_PRIVATE_KEY: "", WC_KEYSTORE: path, WC_PASSWORD: "wrong" },
    });
    expect((await wrong.run("key", "check")).code).toBe(2);
    expect((await fromFile.run("key", "new")).code).toBe(2);
    expect(readFileSync(path, "utf8")).toBe(kept);
  });

  it("has API keys that it can list and revoke", async () => {
    const user = await newUser({ usd: "0" });
    expect(await user.json("key", "list")).toMatchObject([{ label: "wcontract", revokedAt: null }]);
    expect((await user.run("key", "revoke")).stdout).toBe("1 revoked\n");
    // The next command signs in again.
    const { stdout } = await user.run("key", "list");
    expect(stdout.match(/active$/gm)).toHaveLength(1);
    expect(stdout.trim().split("\n")).toHaveLength(3);
  });

  it("opens in cast, and a new one is created with a password from a file", async () => {
    const folder = users.newFolder();
    const passwordFile = join(folder, "password");
    writeFileSync(passwordFile, "correct horse\n");
    const keystore = join(folder, "agent.json");
    const user = await newUser({
      usd: "0",
      env: { WC_PRIVATE_KEY: "", WC_KEYSTORE: keystore, WC_PASSWORD_FILE: passwordFile },
    });
    const address = (await user.run("key", "new")).stdout.trim();
    expect(existsSync(keystore)).toBe(true);
    const cast = await runProcess(join(ROOT, "node_modules/.bin/cast"), [
      ...["wallet", "address", "--keystore", keystore, "--password", "correct horse"],
    ]);
    expect(cast.stdout.trim().toLowerCase()).toBe(address);
  });

  it("is read from a keystore of cast, which does not say its address", async () => {
    const folder = users.newFolder();
    const made = await runProcess(join(ROOT, "node_modules/.bin/cast"), [
      ...["wallet", "new", folder, "from-cast", "--unsafe-password", "correct horse"],
    ]);
    const address = /0x[0-9a-fA-F]{40}/.exec(made.stdout)?.[0]?.toLowerCase();
    const keystore = join(folder, "from-cast");
    expect(JSON.parse(readFileSync(keystore, "utf8"))).not.toHaveProperty("address");
    const env = { WC_PRIVATE_KEY: "", WC_KEYSTORE: keystore };
    const owner = await newUser({ usd: "0", env: { ...env, WC_PASSWORD: "correct horse" } });
    expect((await owner.run("key", "show")).stdout.trim()).toBe(address);
    expect((await owner.run("key", "check")).code).toBe(0);
    const stranger = await newUser({ usd: "0", env });
    expect(await stranger.run("key", "show")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("WC_PASSWORD"),
    });
  });
});

it.runIf(process.platform === "linux")(
  "the process list does not show the arguments of a command",
  async () => {
    const silent = createServer();
    const { url } = await listen(silent);
    const { env, cwd, address } = await newUser({ usd: "0", env: { WC_URL: url } });
    const asked = once(silent, "request");
    const { child, exited } = startProcess("node", [WC, "vote", address, "met", "not-met"], { env, cwd });
    await asked;
    expect(readFileSync(`/proc/${child.pid}/cmdline`, "utf8")).toMatch(/^wcontract\0*$/);
    child.kill();
    await exited;
    silent.close();
  },
);
