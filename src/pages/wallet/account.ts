/** The connected wallet (EIP-6963) and its key for this tab; forms, questions and messages of the script. */
import {
  type Agent,
  connect,
  type Eip1193Provider,
  type Network,
  NotOnChain,
  type PlannedPayment,
  providerSigner,
  ServiceError,
  type SubmissionStore,
  untilOutcome,
} from "@working-contracts/client/index";
import { formatDecimal, MAX_AMOUNT, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import type { Hex } from "@working-contracts/protocol/types";

/** A wallet as it announces itself (EIP-6963). */
interface Announced {
  info: { uuid: string; name: string; rdns: string };
  provider: Eip1193Provider & {
    on?: (event: "accountsChanged", listener: (accounts: string[]) => void) => unknown;
  };
}

export type Account = ReturnType<typeof createAccount>;

/** The clock of a sandbox on this machine can be moved. */
const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
const STORED = "working-contracts";
/** No limit: every payment is confirmed by the person. */
const NO_LIMIT = { perCall: formatDecimal(MAX_AMOUNT), stake: formatDecimal(MAX_AMOUNT, TOKEN_DECIMALS) };
const STEPS = {
  quoted: "Quoted",
  signing: "Waiting for the signature in your wallet",
  sent: "Signed; waiting for the chain. Keep this page open",
  paid: "Paid",
} as const;

/** Shows the button that connects a wallet, or the connected address, in `container`. */
export function createAccount(container: HTMLElement) {
  const wallets = new Map<string, Announced>();
  const listeners: ((agent: Agent | null) => void)[] = [];
  let agent: Agent | null = null;
  let connected: Eip1193Provider | null = null;
  let isBusy = false;
  let selectOwnChain = async (): Promise<void> => {};
  /** Actions now. One that ends must not unguard the payment of another. */
  let running = 0;

  const button = document.createElement("button");
  button.type = "button";
  container.append(button);

  const show = (): void => {
    container.hidden = wallets.size === 0 && agent === null;
    const address = agent?.address;
    button.textContent = address ? `${address.slice(0, 6)}…${address.slice(-4)}` : "Connect wallet";
    button.title = address ?? "";
    for (const listener of listeners) listener(agent);
  };

  async function signIn({ info, provider }: Announced, apiKey?: string): Promise<void> {
    const signer = await providerSigner(provider);
    const { node } = container.dataset;
    // A sign-in reads at the wallet's node what an earlier one left to the operator.
    if (apiKey === undefined) await selectChain(provider, await readNetwork(), node);
    agent = await connect({
      baseUrl: location.origin,
      account: signer,
      node: provider,
      spendingLimit: NO_LIMIT,
      beforePayment: confirmPayment,
      onProgress({ step }) {
        if (step === "sent") addEventListener("beforeunload", keepOpen);
        tell(STEPS[step]);
      },
      clock: isLocal ? "service" : "local",
      label: "browser",
      submitted: submittedBy(signer.address),
      ...(apiKey !== undefined && { apiKey }),
    });
    connected = provider;
    const { network } = agent;
    selectOwnChain = () => selectChain(provider, network, node);
    session.write({ wallet: info.rdns, address: agent.address, apiKey: agent.apiKey });
    show();
  }

  /** A reload of the page continues the session of the tab. */
  async function resume(wallet: Announced): Promise<void> {
    try {
      const stored = session.read();
      if (agent !== null || stored?.wallet !== wallet.info.rdns) return;
      const accounts: string[] = await wallet.provider.request({ method: "eth_accounts" });
      if (accounts[0]?.toLowerCase() === stored.address) await signIn(wallet, stored.apiKey);
    } catch (error) {
      failed("Connecting your wallet", error);
    }
  }
  /** The browser can show a page again as it was left, while the tab has disconnected or the wallet has selected another account. */
  addEventListener("pageshow", ({ persisted }) => {
    if (!persisted || agent === null) return;
    agent = null;
    show();
    for (const wallet of wallets.values()) void resume(wallet);
  });

  async function choose(): Promise<Announced | undefined> {
    const found = [...wallets.values()];
    if (found.length < 2) return found[0];
    const name = await ask("Which wallet?", { choices: found.map(({ info }) => info.name) });
    return found.find(({ info }) => info.name === name);
  }

  button.addEventListener("click", async () => {
    // A second click would sign in twice, and make a key that no one knows.
    if (isBusy) return tell("Your wallet has not answered yet: open it, or reload this page");
    isBusy = true;
    try {
      if (agent !== null) {
        const { address } = agent;
        const choice = await ask(address, { choices: ["My page", "Disconnect", "Revoke all keys"] });
        if (choice === "My page") location.assign(`/agents/${address}`);
        if (choice === "Disconnect")
          disconnect(
            "Disconnected. This tab has forgotten its API key, which stays valid until it is revoked",
          );
        if (choice === "Revoke all keys") {
          tell("Confirm in your wallet to revoke the keys of all your tabs and programs");
          const revoked = await agent.revokeKeys().catch((error: unknown) => {
            // They are revoked, and the wallet, perhaps on another chain, does not show the end of the delegation.
            if (error instanceof NotOnChain) return error.message;
            throw error;
          });
          disconnect(`Disconnected. Keys revoked: ${revoked}`);
        }
        return;
      }
      const wallet = await choose();
      if (wallet === undefined) return;
      tell(
        "Sign in with your wallet: this costs no gas and moves no money. Afterwards, programs of your address have to sign each action. The next requests create the key with which you read sealed deliveries; you can reject them",
      );
      await signIn(wallet);
      tell("Signed in");
    } catch (error) {
      tell((error as Error).message, { isError: true });
    } finally {
      isBusy = false;
    }
  });

  function disconnect(message?: string): void {
    session.write(null);
    agent = null;
    show();
    if (message !== undefined) tell(message);
  }

  addEventListener("eip6963:announceProvider", (event) => {
    const wallet = (event as CustomEvent<Announced>).detail;
    if (!wallets.has(wallet.info.uuid))
      wallet.provider.on?.("accountsChanged", ([selected]) => {
        if (agent === null || connected !== wallet.provider) return;
        if (selected?.toLowerCase() !== agent.address)
          disconnect("Disconnected: your wallet has selected another account, or none");
      });
    wallets.set(wallet.info.uuid, wallet);
    show();
    void resume(wallet);
  });
  dispatchEvent(new Event("eip6963:requestProvider"));

  /** Says why something failed. If the service does not accept the key, forgets it: only a new sign-in can help. */
  function failed(what: string, error: unknown): void {
    const isOver = error instanceof ServiceError && error.code === "unauthorized";
    if (isOver) disconnect();
    const reason = isOver
      ? "this tab's API key is no longer valid. Connect your wallet again"
      : (error as Error).message;
    tell(`${what}: ${reason}`, { isError: true });
  }

  return {
    failed,
    /** Calls back with the signed-in agent, now and after each change; with null while there is none. */
    onChange(listener: (agent: Agent | null) => void): void {
      listeners.push(listener);
      listener(agent);
    },
    /**
     * Performs an action, then shows its result, and the note that `show` may return. Selects the service's chain first,
     * unless the action needs none. Reports progress and failure in words. While the outcome of a signed payment is unknown,
     * resumes the call with that payment, until it has expired. Returns whether the action succeeded, also if its result
     * cannot be shown.
     */
    async perform<T>(
      what: string,
      action: (agent: Agent) => Promise<T>,
      { show, isOffChain }: { show?: (result: T, agent: Agent) => unknown; isOffChain?: boolean } = {},
    ): Promise<boolean> {
      if (agent === null) return false;
      const by = agent;
      try {
        tell(`${what}: working`);
        if (!isOffChain) await selectOwnChain();
        const onUnknown = (reason: string): void =>
          tell(`${what}: payment signed, outcome not known yet. Keep this page open (${reason})`);
        running++;
        const result = await untilOutcome(() => action(by), { onUnknown }).finally(() => {
          if (--running === 0) removeEventListener("beforeunload", keepOpen);
        });
        try {
          const note = await show?.(result, by);
          tell(`${what}: done${typeof note === "string" && note !== "" ? `. ${note}` : ""}`);
        } catch (error) {
          failed(`${what}: done, but this page does not show it yet; reload it`, error);
        }
        return true;
      } catch (error) {
        failed(what, error);
        return false;
      }
    },
  };
}

/** The session of this tab. If the browser blocks its storage, it ends with the page. */
const session = {
  read() {
    try {
      return JSON.parse(sessionStorage.getItem(STORED) ?? "null");
    } catch {
      return null;
    }
  },
  write(value: { wallet: string; address: string; apiKey: string } | null): void {
    try {
      sessionStorage.setItem(STORED, JSON.stringify(value));
    } catch {}
  },
};

/**
 * Kept by this browser, to notice what the service hides. Each value has a separate key, because tabs write at the same
 * time. A browser that blocks its storage, or has no room, keeps nothing: that must not refuse a vote.
 */
export function submittedBy(address: string): SubmissionStore {
  const start = (key: string): string => `${STORED} ${address.toLowerCase()} ${key.replace("/", "-")} `;
  return {
    read(key) {
      try {
        const keys = Object.keys(localStorage).filter((one) => one.startsWith(start(key)));
        return keys.map((one) => one.slice(start(key).length) as Hex);
      } catch {
        return [];
      }
    },
    add(key, value) {
      try {
        localStorage.setItem(start(key) + value, "");
      } catch {}
    },
  };
}

/** The browser asks before it leaves the page: only this page has the signed payment. */
const keepOpen = (event: Event): void => event.preventDefault();

async function confirmPayment(payment: PlannedPayment): Promise<void> {
  const { decimal, currency, token, payTo, role, terms } = payment;
  const unit = currency === "stablecoin" ? "of the stablecoin" : "protocol tokens";
  const fee = terms ? ` The contract's protocol fee is ${terms.parameters.protocolFee / 100} %.` : "";
  const question = `As the ${role}, pay ${decimal} ${unit} (token ${token}) to ${payTo}?${fee}`;
  // The first one has the focus, so a stray Enter does not pay.
  const answer = await ask(question, { choices: ["Do not pay", "Pay"] });
  if (answer !== "Pay") throw new Error("You did not pay. Nothing was signed");
}

/** Throws the service's words if it refuses: this request has no key, so others can have used up its limit. */
async function readNetwork(): Promise<Network> {
  const response = await fetch("/v1/network");
  const { data, error } = await response.json().catch(() => ({}));
  if (!data) throw new Error(error?.message ?? `the service did not respond (status ${response.status})`);
  return data;
}

const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
/** EIP-1193: the person declined. */
const DECLINED = 4001;

/** Has the wallet select the chain (EIP-3326), or first add it (EIP-3085) by `node`. Throws if another one stays. */
async function selectChain(
  provider: Eip1193Provider,
  { chainId: id, factory }: Pick<Network, "chainId" | "factory">,
  node: string | undefined,
): Promise<void> {
  // A sandbox has the id of a public chain, on which its contracts do not exist.
  const isSelected = async (): Promise<boolean> =>
    Number(await provider.request({ method: "eth_chainId" })) === id &&
    (await provider.request({ method: "eth_getCode", params: [factory, "latest"] }).catch(() => "0x")) !==
      "0x";
  if (await isSelected()) return;
  const name = node === undefined ? `chain ${id}` : `chain ${id} at the node ${node}`;
  const chainId = `0x${id.toString(16)}`;
  const select = () => provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  tell(`Switch your wallet to ${name}`);
  try {
    await select().catch((error) => {
      // Not every wallet says with code 4902 that it does not know the chain.
      if (error.code === DECLINED || node === undefined) throw error;
    });
    if (node !== undefined && !(await isSelected())) {
      const chainName = `${location.hostname}, chain ${id}`;
      const added = { chainId, chainName, rpcUrls: [node], nativeCurrency };
      await provider.request({ method: "wallet_addEthereumChain", params: [added] });
      await select();
    }
  } catch (error) {
    throw new Error(`your wallet is on another network. Switch it to ${name} (${(error as Error).message})`);
  }
  if (!(await isSelected())) throw new Error(`your wallet is still on another network. Switch it to ${name}`);
}

/** Asks in a modal dialog. Returns the choice, or an empty text if it was dismissed. */
export function ask(question: string, { choices }: { choices: readonly string[] }): Promise<string> {
  const dialog = document.createElement("dialog");
  const text = document.createElement("p");
  text.textContent = question;
  dialog.setAttribute("aria-label", question);
  const form = document.createElement("form");
  form.method = "dialog";
  for (const choice of choices) {
    const button = document.createElement("button");
    button.value = choice;
    button.textContent = choice;
    form.append(button);
  }
  dialog.append(text, form);
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
  });
}

/** Shows a message at the bottom of the page until the next one. */
export function tell(message: string, { isError = false }: { isError?: boolean } = {}): void {
  let output = document.getElementById("message");
  if (output === null) {
    output = document.createElement("output");
    output.id = "message";
    document.body.append(output);
  }
  output.className = isError ? "notice bad" : "notice";
  output.setAttribute("role", isError ? "alert" : "status");
  output.textContent = message;
}

/** Runs `action` for each submission of a form, which takes no other one meanwhile. */
export function onSubmit(form: HTMLFormElement, action: () => Promise<unknown>): void {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const focused = document.activeElement as HTMLElement | null;
    form.inert = true;
    await action();
    form.inert = false;
    // An inert form loses the focus to the page.
    if (document.activeElement === document.body) focused?.focus();
  });
}
