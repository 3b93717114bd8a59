/** A person with a browser wallet plays both sides of a contract and a dispute, without a terminal. */
import { type Address, type Hex, hexToString, numberToHex, parseEther } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { setParameters, tokensOf } from "../support/chain.js";
import { type Json, laterThan, newJuror, vote } from "../support/contracts.js";
import { useWorld } from "../support/world.js";
import {
  DESKTOP,
  expectAccessible,
  expectNoSidewaysScroll,
  faultsOf,
  leadOn,
  PHONE,
  useBrowser,
} from "./support/browser.js";

const isSkipped = inject("chromium") === null;
const surfer = useBrowser();
const world = isSkipped ? (undefined as never) : await useWorld();

type Person = Awaited<ReturnType<typeof newPerson>>;

interface WalletOptions {
  usd?: string;
  tokens?: number;
  /** Blocks its storage. */
  noStorage?: boolean;
  /** Rejects every message but the sign-in. */
  onlySignsIn?: boolean;
  /** Is on this chain at a node of another network, and does not know the service's. */
  elsewhere?: Hex;
}

/** A person whose wallet announces itself (EIP-6963) and signs with a real key. */
async function newPerson(options: WalletOptions = {}) {
  const { usd = "1000", tokens = 0, noStorage, onlySignsIn, elsewhere } = options;
  const account = privateKeyToAccount(generatePrivateKey());
  await world.fundUsd(account.address, usd);
  if (tokens > 0) await world.grantTokens(account.address, tokens);
  const page = await surfer.open("about:blank");
  const asked: string[] = [];
  const own = numberToHex(world.chainId);
  let chain = elsewhere ?? own;
  /** Node by chain. */
  const nodes = new Map([[chain, elsewhere === undefined ? world.info.rpcUrl : "https://another.example"]]);
  await page.context().exposeFunction("walletRequest", async (method: string, params: string[] = []) => {
    asked.push(method);
    const asks = (params[0] ?? {}) as { chainId?: Hex; rpcUrls?: string[] };
    const { chainId = own, rpcUrls: [node = ""] = [] } = asks;
    if (method === "eth_chainId") return chain;
    if (method === "wallet_addEthereumChain") return void nodes.set(chainId, node);
    if (method === "wallet_switchEthereumChain") {
      if (!nodes.has(chainId)) throw new Error("Unrecognized chain ID");
      chain = chainId;
      return null;
    }
    if (method === "eth_getCode" && nodes.get(chain) !== world.info.rpcUrl) return "0x";
    if (method === "personal_sign") {
      const message = hexToString(params[0] as Hex);
      if (message.includes("Nonce: ")) asked.push("sign-in");
      else if (onlySignsIn) throw new Error("The user rejected the request");
      return account.signMessage({ message });
    }
    if (method === "eth_accounts" || method === "eth_requestAccounts") return [account.address];
    if (method !== "eth_signTypedData_v4") return world.publicClient.request({ method, params } as never);
    return account.signTypedData(JSON.parse(params[1] as string));
  });
  await page.addInitScript(`
    const provider = {
      request: ({ method, params }) => walletRequest(method, params),
      on: (event, listener) => { globalThis[event] = listener; },
    };
    const info = { uuid: "1", name: "Test Wallet", rdns: "test.wallet", icon: "data:," };
    const announce = () => dispatchEvent(
      new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info, provider }) }));
    addEventListener("eip6963:requestProvider", announce);
    // All messages of the page, in order.
    globalThis.messages = [];
    new MutationObserver(() => {
      const text = document.getElementById("message")?.textContent;
      if (text !== messages.at(-1)) messages.push(text);
    }).observe(document, { childList: true, subtree: true, characterData: true });`);
  if (noStorage)
    await page.addInitScript(`for (const name of ["localStorage", "sessionStorage"])
      Object.defineProperty(globalThis, name, { get() { throw new Error("Access is denied"); } });`);
  await page.goto("/");
  await page.getByRole("button", { name: "Connect wallet" }).dblclick();
  await page.getByText("Signed in").waitFor();
  const address = account.address.toLowerCase() as Address;
  /** Clicks the visible button, and the confirmation of a payment if there is one. */
  const press = async (name: string, { pay = false } = {}): Promise<void> => {
    await page.getByRole("button", { name, exact: true }).click();
    if (pay) await page.getByRole("dialog").getByRole("button", { name: "Pay", exact: true }).click();
  };
  /** Waits until the page says that the action is done. */
  const done = (name: string) => page.getByText(`${name}: done`).waitFor();
  return {
    address,
    page,
    /** Methods that the pages called on the wallet. */
    asked,
    /** The button that shows the account while the page is connected. */
    account: page.getByRole("button", { name: `${address.slice(0, 6)}…${address.slice(-4)}` }),
    press,
    done,
    /** Presses the button, and waits until its action is done. */
    async perform(name: string, options: { pay?: boolean } = {}): Promise<void> {
      await press(name, options);
      await done(name);
    },
  };
}

interface PostOptions {
  listing?: boolean;
  counterparty?: Address;
  materials?: string;
}

async function fillIn({ page }: Person, { listing, counterparty, materials }: PostOptions = {}) {
  await page.goto("/post");
  await page.getByLabel("Title").fill("Draw a map");
  await page.getByLabel("Task, in full").fill("Of the old town.");
  await page.getByRole("textbox", { name: "Criterion 1" }).fill("Names the streets");
  await page.getByRole("button", { name: "Add a criterion" }).click();
  await page.getByRole("textbox", { name: "Criterion 2" }).fill("Is in colour");
  await page.getByRole("button", { name: "Add a criterion" }).click();
  await page.getByRole("textbox", { name: "Criterion 3" }).fill("Shows the river");
  await page.getByRole("button", { name: "Remove" }).nth(1).click();
  await page.getByLabel("Price in").fill("50");
  if (listing) await page.getByLabel("I offer work").check();
  if (counterparty !== undefined) await page.getByLabel("Reserve it for this address").fill(counterparty);
  if (materials !== undefined) await page.getByLabel("supporting data").fill(materials);
  expect(await page.locator("output.quote").innerText()).toBe(
    listing
      ? "You pay a stake of 2.5 USDC now, and get it back with the price, less a fee of 2.5 USDC, when the work is accepted."
      : "You pay 50.0 USDC into the escrow now. The worker stakes 2.5 USDC, and receives the price less a fee of 2.5 USDC.",
  );
}

/** Fills in the form and presses its button. The contract's page opens once the payment succeeded. */
async function fillAndPay(by: Person, options?: PostOptions): Promise<void> {
  await fillIn(by, options);
  await by.press("Post and pay", { pay: true });
}

async function post(by: Person, options?: PostOptions): Promise<string> {
  await fillAndPay(by, options);
  await by.page.waitForURL(/\/contracts\/0x/);
  // A page that is left before it has resumed the session forgets it.
  await by.account.waitFor();
  return new URL(by.page.url()).pathname;
}

/** Opens a contract's page, and accepts there. */
async function accept(by: Person, path: string): Promise<void> {
  await by.page.goto(path);
  await by.perform("Accept", { pay: true });
}

/** The data that the page at the path names. */
async function dataOf(path: string): Promise<Json> {
  return (await world.call<Json>("GET", `${path}.json`)).data;
}

const usdOf = ({ address }: Person): Promise<bigint> => world.usdOf(address);

/** Waits until exactly so many millionths of a dollar are there. */
const expectUsd = (person: Person, amount: bigint) => expect.poll(() => usdOf(person)).toBe(amount);

describe.skipIf(isSkipped)("with a browser wallet", () => {
  // Signed in for all tests: each person starts another process.
  let client: Person;
  let worker: Person;
  let poor: Person;
  beforeAll(async () => {
    [client, worker, poor] = await Promise.all([newPerson(), newPerson(), newPerson({ usd: "1" })]);
  });

  test("two people agree, deliver, read and approve", async () => {
    const before = await usdOf(worker);
    const path = await post(client);
    await client.page.getByRole("button", { name: "Cancel", exact: true }).waitFor();
    expect(await client.page.getByRole("button", { name: "Accept", exact: true }).isVisible()).toBe(false);

    await accept(worker, path);
    expect(await worker.page.evaluate("messages")).toEqual([
      "Accept: working",
      "Quoted",
      "Waiting for the signature in your wallet",
      "Signed; waiting for the chain. Keep this page open",
      "Paid",
      "Accept: done",
    ]);
    await worker.page.getByLabel("Hash or URI of your work").fill("ipfs://map");
    await worker.page.getByLabel("Do not deliver if the service could read it").check();
    await expectAccessible(worker.page);
    await worker.page.setViewportSize(PHONE);
    await expectNoSidewaysScroll(worker.page);
    await worker.page.setViewportSize(DESKTOP);
    await worker.perform("Deliver");

    // The open page follows the contract, and asks the wallet for nothing until the delivery is opened.
    const signed = () => client.asked.filter((method) => method === "personal_sign").length;
    await client.page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    const first = signed();
    await client.page.getByText("Delivery: open to decrypt").click();
    await client.page.getByText("Delivery: decrypted for you").waitFor();
    const delivery = client.page.locator("pre[data-reference=delivery]");
    expect(await delivery.innerText()).toBe("ipfs://map");
    const after = signed();
    expect(after).toBeGreaterThan(first);
    await client.perform("Approve");
    await expectUsd(worker, before + 47_500_000n);
    await client.page.locator("#summary .badge[title=settled-all-met]").waitFor();
    // The update replaced the task, and shows again what was decrypted.
    await client.page.locator("#task .badge", { hasText: "met" }).first().waitFor();
    expect(await delivery.innerText()).toBe("ipfs://map");
    expect(signed()).toBe(after);

    // Back brings the page as it was left: first in the same session, then after it has ended.
    const comeBack = () =>
      client.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
    await comeBack();
    await client.page.getByText("Delivery: close and open to decrypt").waitFor();
    expect(await delivery.innerText()).not.toBe("ipfs://map");
    const text = client.page.getByText(/^Delivery:/);
    await text.click();
    await text.click();
    await client.page.getByText("Delivery: decrypted for you").waitFor();
    const stored = await client.page.evaluate(`sessionStorage.getItem("working-contracts")`);
    await client.page.evaluate("sessionStorage.clear()");
    await comeBack();
    await client.page.getByRole("button", { name: "Connect wallet" }).waitFor();
    expect(await delivery.innerText()).not.toBe("ipfs://map");
    await client.page.evaluate(`sessionStorage.setItem("working-contracts", ${JSON.stringify(stored)})`);
    await client.page.reload();

    await client.press("Check against the chain");
    await client.page.getByText(/All \d+ facts match the chain/).waitFor();
    const steps = await client.page.locator("#verified tr").allInnerTexts();
    expect(steps.map((row) => row.split("\t")[0])).toEqual([
      ...["Step", "Created", "Matched", "Delivered", "Approved", "Settled"],
    ]);
    expect(steps[3]).toContain(`${worker.address}\tits signed action`);
    await expectAccessible(client.page);

    await worker.page.reload();
    await worker.page.getByLabel("What happened").fill("Approved, but rude.");
    await worker.perform("File a complaint");
    // A browser logs a quote as a failed request.
    for (const { page } of [client, worker])
      expect(faultsOf(page).filter((fault) => !fault.includes("status of 402"))).toEqual([]);
  });

  test("the named worker declines an award, and withdraws from another", async () => {
    const [ofClient, ofWorker] = await Promise.all([usdOf(client), usdOf(worker)]);
    const award = { counterparty: worker.address };
    await worker.page.goto(await post(client, award));
    await worker.perform("Decline");
    await worker.page.locator("#summary .badge[title=cancelled-unmatched]").waitFor();
    await expectUsd(client, ofClient);

    const path = await post(client, { ...award, materials: "ipfs://streets" });
    await accept(worker, path);
    await worker.page.getByText("Supplementary materials: open to decrypt").click();
    await worker.page.getByText("Supplementary materials: decrypted for you").waitFor();
    expect(await worker.page.locator("pre[data-reference=supplementaryMaterials]").innerText()).toBe(
      "ipfs://streets",
    );
    await worker.perform("Withdraw");
    await worker.page.locator("#summary .badge[title=cancelled-withdrawn]").waitFor();
    await Promise.all([expectUsd(client, ofClient + 750_000n), expectUsd(worker, ofWorker - 750_000n)]);
    expect(await dataOf(path)).toMatchObject({
      status: "cancelled-withdrawn",
      awardMethod: "direct_award",
      worker: worker.address,
      acceptanceCriteria: ["Names the streets", "Shows the river"],
    });
  });

  test("the named client declines a listing, and no one else is offered it", async () => {
    const before = await usdOf(worker);
    const path = await post(worker, { listing: true, counterparty: client.address });
    await Promise.all([client.page.goto(path), poor.page.goto(path)]);
    await client.page.getByRole("button", { name: "Accept", exact: true }).waitFor();
    await client.perform("Decline");
    await expectUsd(worker, before);
    await poor.account.waitFor();
    for (const name of ["Accept", "Decline"])
      expect(await poor.page.getByRole("button", { name, exact: true }).isVisible()).toBe(false);
  });

  test("a second click on the button does not sign in twice, and a browser without storage signs in", async () => {
    const { account, page, asked } = await newPerson({ noStorage: true });
    await account.waitFor();
    expect(asked.filter((method) => method === "sign-in")).toHaveLength(1);
    await page.goto(`/contracts/${inject("seed").open}`);
    expect(faultsOf(page)).toEqual([]);
    await page.getByRole("button", { name: "Connect wallet" }).click();
    await page.getByRole("button", { name: "Accept", exact: true }).waitFor();
    await account.click();
    await page.getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("Disconnected.").waitFor();
    await page.getByRole("button", { name: "Connect wallet" }).waitFor();
  });

  test("a contract has one to ten criteria", async () => {
    const { page } = client;
    await page.goto("/post");
    const add = page.getByRole("button", { name: "Add a criterion" });
    const remove = (number: number) =>
      page.getByRole("button", { name: `Remove criterion ${number}`, exact: true });
    await remove(1).waitFor();
    expect(await remove(1).isDisabled()).toBe(true);
    for (let count = 1; count < 10; count++) await add.click();
    expect(await add.isDisabled()).toBe(true);
    for (let number = 10; number > 1; number--) await remove(number).click();
    expect([await add.isDisabled(), await remove(1).isDisabled()]).toEqual([false, true]);
  });

  test("a payment whose outcome is unknown is resumed, and no other is signed", async () => {
    const { page } = client;
    const before = await usdOf(client);
    const payments: (string | undefined)[] = [];
    const canLeave = () => page.evaluate("dispatchEvent(new Event('beforeunload', { cancelable: true }))");
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/v1/contracts", async (route) => {
      const payment = route.request().headers()["payment-signature"];
      if (payment === undefined) return route.continue();
      payments.push(payment);
      if (payments.length === 1) {
        await held;
        return route.abort();
      }
      const response = await route.fetch();
      if (payments.length > 3) return route.fulfill({ response });
      const error = { code: "internal_error", message: "The response is lost." };
      return route.fulfill({ status: 500, json: { error } });
    });
    await fillAndPay(client);
    await page.getByText("Signed; waiting for the chain").waitFor();
    expect(await canLeave()).toBe(false);
    release();
    await page.getByText("Post: payment signed, outcome not known yet").waitFor();
    expect(await page.locator("form#post").evaluate((form) => form.matches("[inert]"))).toBe(true);
    await page.waitForURL(/\/contracts\/0x/);
    await client.account.waitFor();
    await page.unroute("**/v1/contracts");
    expect(await canLeave()).toBe(true);
    expect(payments).toHaveLength(4);
    expect(new Set(payments).size).toBe(1);
    expect(await usdOf(client)).toBe(before - 50_000_000n);
  });

  test("a payment and the contract's page name the fee of its own terms, whatever the form or a new contract says", async () => {
    const { page } = client;
    await fillIn(client);
    const former = await setParameters(world, { protocolFee: 1000 });
    await client.press("Post and pay");
    await page.getByRole("dialog").getByText("The contract's protocol fee is 10 %.").waitFor();
    await client.press("Pay");
    await page.waitForURL(/\/contracts\/0x/);
    await setParameters(world, former);
    await client.account.waitFor();
    expect(await page.locator("#terms dl").first().innerText()).toMatch(/Protocol fee\s+10 %/);
  });

  test("Enter declines a payment by default, and focus returns to the form", async () => {
    const { page } = client;
    await fillIn(client);
    await page.getByRole("button", { name: "Post and pay" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("Nothing was signed").waitFor();
    const focused = () => page.evaluate("document.activeElement.textContent");
    await expect.poll(focused).toBe("Post and pay");
  });

  test("a declined payment keeps its quote until the form changes", async () => {
    const { page } = client;
    const before = await usdOf(client);
    const bodies: { idempotencyKey: string; title: string }[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST" && new URL(request.url()).pathname === "/v1/contracts")
        bodies.push(request.postDataJSON());
    });
    const decline = async () => {
      await page.getByRole("dialog").getByRole("button", { name: "Do not pay" }).click();
      await page.getByRole("alert").getByText("Nothing was signed").waitFor();
    };
    await fillIn(client);
    // One more than the unpaid attempts that an address can have.
    for (let attempt = 0; attempt < 6; attempt++) {
      await client.press("Post and pay");
      await decline();
    }
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    await page.getByLabel("Title").fill("Draw two maps");
    await client.press("Post and pay", { pay: true });
    await page.waitForURL(/\/contracts\/0x/);
    await client.account.waitFor();
    expect(bodies.at(-1)).toMatchObject({ title: "Draw two maps" });
    expect(new Set(bodies.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(2);
    expect(await usdOf(client)).toBe(before - 50_000_000n);
  });

  test("a draft that is refused once its payment is signed is sent again as it is", async () => {
    const { page } = client;
    const bodies: string[] = [];
    await page.route("**/v1/contracts", (route) => {
      bodies.push(String(route.request().postData()));
      const isPaid = route.request().headers()["payment-signature"] !== undefined;
      if (!isPaid && bodies.length !== 3) return route.continue();
      const error = isPaid
        ? { code: "conflict", message: "The payment was published." }
        : { code: "internal_error", message: "There is no quote." };
      return route.fulfill({ status: isPaid ? 409 : 500, json: { error } });
    });
    await fillIn(client);
    for (const reason of ["can still be used", "There is no quote.", "can still be used"]) {
      await client.press("Post and pay", { pay: reason === "can still be used" });
      await page.getByRole("alert").getByText(reason).waitFor();
    }
    await page.unroute("**/v1/contracts");
    expect(bodies).toHaveLength(5);
    expect(new Set(bodies).size).toBe(1);
  });

  test.each([
    ["another chain", () => "0x1" as const],
    ["a public chain with the same id", () => numberToHex(world.chainId)],
  ])("a wallet on %s gets the service's once, when it signs in", async (_, elsewhere) => {
    const person = await newPerson({ elsewhere: elsewhere() });
    const { account, address, page } = person;
    await account.click();
    await page.getByRole("dialog").getByRole("button", { name: "My page" }).click();
    await page.getByLabel("Name").fill("Ada");
    await page.getByLabel("About you").fill("Draws maps.");
    await leadOn(page, () => person.press("Save the profile"));
    await page.getByRole("heading", { level: 1, name: "Ada" }).waitFor();
    const { data } = await (await world.newAgent()).get(`/v1/agents/${address}/profile`);
    expect(data).toMatchObject({ displayName: "Ada", bio: "Draws maps." });
    await post(person);
    expect(person.asked.filter((method) => method.startsWith("wallet_"))).toEqual([
      "wallet_switchEthereumChain",
      "wallet_addEthereumChain",
      "wallet_switchEthereumChain",
    ]);
  });

  test("a wallet that signs in and makes no encryption key is still signed in", async () => {
    const { address } = await newPerson({ onlySignsIn: true });
    const served = await fetch(`${world.url}/v1/agents/${address}/encryption-key`, {
      headers: { authorization: `Bearer ${(await world.newAgent()).apiKey}` },
    });
    expect(await served.json()).toMatchObject({ data: { key: null } });
  });

  test("the account's dialog disconnects the wallet only if asked to, and of several wallets one is chosen", async () => {
    const { account, page } = client;
    await account.click();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await account.click();
    await page.getByRole("button", { name: "Disconnect" }).click();
    await page.evaluate(`dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: {
      info: { uuid: "2", name: "Other Wallet", rdns: "other.wallet" }, provider: {} } }))`);
    await page.getByRole("button", { name: "Connect wallet" }).click();
    await page.getByRole("dialog", { name: "Which wallet?" }).getByText("Test Wallet").click();
    await account.waitFor();
  });

  test("a key that the service does not know is forgotten, and the wallet can connect again", async () => {
    const { page } = client;
    await page.evaluate(`{
      const stored = JSON.parse(sessionStorage.getItem("working-contracts"));
      sessionStorage.setItem("working-contracts", JSON.stringify({ ...stored, apiKey: "revoked" }));
    }`);
    await page.goto(`/contracts/${inject("seed").open}`);
    await page.getByRole("alert").getByText("Connect your wallet again").waitFor();
    await page.getByRole("button", { name: "Connect wallet" }).click();
    await page.getByText("Signed in").waitFor();
    await page.getByRole("button", { name: "Accept", exact: true }).waitFor();
  });

  test("a refused request costs neither the key nor later actions, and a refused sign-in says why", async () => {
    const { account, page, press } = client;
    const refuseOnce = (status: number, code: string) => {
      const refusal = {
        status,
        headers: { "retry-after": "1" },
        json: { error: { code, message: "Not now." } },
      };
      return page.route("**/v1/network", (route) => route.fulfill(refusal), { times: 1 });
    };
    await refuseOnce(429, "rate_limited");
    await page.goto(`/contracts/${inject("seed").open}`);
    await account.waitFor();
    await press("Check against the chain");
    await page.getByText(/All \d+ facts match the chain/).waitFor();

    await refuseOnce(500, "internal_error");
    await page.reload();
    await page.getByRole("alert").getByText("Connecting your wallet: Not now.").waitFor();
    await page.reload();
    await account.waitFor();

    await account.click();
    await press("Disconnect");
    await refuseOnce(429, "rate_limited");
    await press("Connect wallet");
    await page.getByRole("alert").getByText("Not now.").waitFor();
    await press("Connect wallet");
    await account.waitFor();
  });

  test("the page disconnects if the wallet selects another account or none, and only then", async () => {
    const { account, address, page } = client;
    const select = (...accounts: string[]) => page.evaluate(`accountsChanged(${JSON.stringify(accounts)})`);
    await select(address.toUpperCase().replace("X", "x"));
    await account.waitFor();
    for (const accounts of [[], [`0x${"11".repeat(20)}`]]) {
      await select(...accounts);
      await page.getByRole("status").getByText("Disconnected").waitFor();
      await page.getByRole("button", { name: "Connect wallet" }).click();
      await account.waitFor();
    }
  });

  test("voters decide a dispute, and open their votes themselves", async () => {
    const newVoter = async () => {
      const voter = await newPerson({ tokens: 1000 });
      await voter.page.goto(`/agents/${voter.address}`);
      await voter.press("Stake", { pay: true });
      await voter.page.waitForEvent("load");
      return voter;
    };
    const [reader, other, third] = await Promise.all([newVoter(), newVoter(), newJuror(world)]);
    await laterThan(world, new Date((await world.chainNow()) * 1000).toISOString());
    const before = await usdOf(worker);
    const path = await post(worker, { listing: true });
    await accept(client, path);
    await worker.page.getByLabel("Hash or URI of your work").fill("ipfs://map");
    await worker.perform("Deliver");
    await client.perform("Dispute", { pay: true });

    await worker.press("Share the delivery");
    await worker.page.getByRole("alert").getByText("no Backup Agent has asked for it").waitFor();
    await reader.page.goto(path);
    const delivery = reader.page.locator("summary[data-name=Delivery]");
    await delivery.getByText("open to decrypt").click();
    await reader.page.getByText("a party has to share it with you").waitFor();
    await worker.perform("Share the delivery");
    // Closes it, and opens it again.
    await delivery.click();
    await delivery.click();
    await delivery.getByText("decrypted for you").waitFor();
    const decrypted = reader.page.locator("pre[data-reference=delivery]");
    expect(await decrypted.innerText()).toBe("ipfs://map");
    // As a live update after a reorg with another delivery.
    await reader.page.evaluate(`{
      const pre = document.querySelector("pre[data-reference=delivery]");
      const other = pre.cloneNode();
      other.textContent = "another";
      pre.replaceWith(other);
      dispatchEvent(new Event("page-updated"));
    }`);
    expect(await decrypted.innerText()).toBe("another");

    const fillInVote = async ({ page, perform }: Person) => {
      await page.goto(path);
      await page.getByRole("group", { name: "Names the streets" }).getByLabel("met", { exact: true }).check();
      await page.getByRole("group", { name: "Shows the river" }).getByLabel("not met").check();
      await perform("Vote", { pay: true });
    };
    const id = path.replace("/contracts/", "");
    await Promise.all([fillInVote(reader), fillInVote(other), vote(third, id, "met", "not met")]);
    const opening = other.page.getByRole("button", { name: "Open your vote" });
    expect(await opening.isVisible()).toBe(false);
    await worker.press("Share the delivery");
    await worker.page.getByText(`done. Not shared: ${third.address} cannot read`).waitFor();
    await other.page.reload();
    await other.page.locator("summary[data-name=Delivery]").getByText("open to decrypt").click();
    await other.page.getByText("decrypted for you").waitFor();
    await world.increaseTime(86_400);
    // Also if the service's list of votes hides it: the browser remembers it.
    await reader.page.route(/\/v1\/votes/, (route) =>
      route.fulfill({ json: { data: [], nextCursor: null } }),
    );
    const question = reader.page.getByRole("dialog").getByText(/Voting on 0x\w+ has ended/);
    const isAsked = async () => {
      await reader.page.goto("/");
      await question.waitFor({ timeout: 5_000 });
      return true;
    };
    await expect.poll(() => isAsked().catch(() => false)).toBe(true);
    await reader.press("Open it now");
    await reader.done("Open your vote");
    // Without a reload: the update that ends voting brings the form.
    await other.press("Later");
    const open = async () => {
      await other.press("Open your vote");
      return other.page.locator("#message", { hasText: /Open your vote: (?!working)/ }).innerText();
    };
    await expect.poll(open, { interval: 1000 }).toBe("Open your vote: done");
    await expectUsd(worker, before + 23_750_000n);
    await expect
      .poll(() => dataOf(path))
      .toMatchObject({ status: "settled-partial", initiator: "worker", criteriaMet: ["met", "not met"] });

    const page = `/agents/${reader.address}`;
    await reader.page.goto(page);
    await leadOn(reader.page, () => reader.press("Unstake"));
    await reader.page.getByText("being withdrawn").waitFor();
    expect(await reader.page.getByRole("button", { name: "Unstake" }).isVisible()).toBe(false);

    const complaint = client.page.getByRole("button", { name: "File a complaint" });
    await client.page.reload();
    await complaint.waitFor();
    // Seven days after the review deadline.
    await world.increaseTime(11 * 86_400);
    await client.page.reload();
    await client.page.getByText("Delivery: open to decrypt").waitFor();
    expect(await complaint.isVisible()).toBe(false);

    // The stake, and the reward for votes with the majority.
    const { tokens } = (await dataOf(page)).asBackupAgent;
    expect(tokens).toBeGreaterThan(0);
    await expect.poll(() => tokensOf(world, reader.address)).toBe(parseEther(String(1000 + tokens)));
  }, 300_000);

  test("what fails is said in words, and a payment that is not confirmed is not signed", async () => {
    const before = await usdOf(client);
    const path = await post(client);
    await poor.page.goto(path);
    await poor.press("Accept");
    await poor.page.getByRole("dialog").getByRole("button", { name: "Do not pay" }).click();
    await poor.page.getByRole("alert").getByText("Nothing was signed").waitFor();
    await poor.press("Accept", { pay: true });
    await poor.page.getByRole("alert").getByText("Accept:").waitFor();
    expect(await usdOf(poor)).toBe(1_000_000n);

    await client.perform("Cancel");
    await expectUsd(client, before);
  });

  test("the account's dialog revokes all keys", async () => {
    const { account, page } = poor;
    const { apiKey } = JSON.parse(await page.evaluate(`sessionStorage.getItem("working-contracts")`));
    const statusOf = async () => {
      const headers = { authorization: `Bearer ${apiKey}` };
      return (await fetch(`${world.url}/v1/agents/me/api-keys`, { headers })).status;
    };
    expect(await statusOf()).toBe(200);
    await account.click();
    await page.getByRole("button", { name: "Revoke all keys" }).click();
    await page.getByText("Keys revoked: 1").waitFor();
    await page.getByRole("button", { name: "Connect wallet" }).waitFor();
    expect(await statusOf()).toBe(401);
  });
});
