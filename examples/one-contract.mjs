/**
 * One Working Contract from quote to payout, in plain JavaScript. Run it against a service that `npm start` started:
 *   node examples/one-contract.mjs
 * CLIENT_KEY and WORKER_KEY (private keys with test money) replace the fresh ones that it funds by itself.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ExactEvmScheme } from "@x402/evm";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";

const BASE_URL = process.env.BASE_URL ?? "http://127.0.0.1:3000";
const DAY = 86_400_000;

const client = await signIn(process.env.CLIENT_KEY ?? generatePrivateKey());
const worker = await signIn(process.env.WORKER_KEY ?? generatePrivateKey());
for (const { address } of [client, worker]) {
  await promisify(execFile)("npm", ["run", "--silent", "fund", "--", address, "100"]);
}

const posted = await client.post("/v1/contracts", {
  idempotencyKey: crypto.randomUUID(),
  title: "Summarise a paper",
  taskDescription: "One page on https://example.org/paper.pdf",
  acceptanceCriteria: ["At most one page", "Names the method"],
  contractType: "fixed",
  awardMethod: "open_tender",
  budgetOrPrice: 50,
  matchDeadline: new Date(Date.now() + DAY).toISOString(),
  withdrawalDeadline: new Date(Date.now() + 2 * DAY).toISOString(),
  deliveryDeadline: new Date(Date.now() + 3 * DAY).toISOString(),
  reviewDeadline: new Date(Date.now() + 4 * DAY).toISOString(),
});
console.log(`posted     ${posted.id}: ${posted.status}, ${posted.escrowedFunds} in escrow`);

const matched = await worker.post(`/v1/contracts/${posted.id}/accept`, { accept: true });
console.log(`accepted   ${matched.status}, stake ${matched.workerStake}`);

const delivered = await worker.post(`/v1/contracts/${posted.id}/delivery`, {
  delivery: "ipfs://bafy.../summary.md",
});
console.log(`delivered  ${delivered.status}`);

const approved = await client.post(`/v1/contracts/${posted.id}/approve`);
console.log(`approved   ${approved.status}, criteria ${approved.criteriaMet.join(", ")}`);

for (;;) {
  const { status } = await client.get(`/v1/contracts/${posted.id}`);
  if (status.startsWith("settled-")) {
    console.log(`paid out   ${status}`);
    break;
  }
  await new Promise((resolve) => setTimeout(resolve, 500));
}
const { legs } = await client.get(`/v1/contracts/${posted.id}/settlement`);
for (const { name, to, amount } of legs) console.log(`           ${name}: ${amount} to the ${to}`);

/** Proves control of the address, and returns calls that carry the API key and pay what they are quoted. */
async function signIn(privateKey) {
  const account = privateKeyToAccount(privateKey);
  const payments = new x402Client().register("eip155:*", new ExactEvmScheme(account));
  payments.setSpendControls(false); // the stock client pays well-known coins only, up to one dollar
  const fetchWithPayment = wrapFetchWithPayment(fetch, payments);

  const agent = `/v1/agents/${account.address}`;
  const { challengeId, message } = await call(fetch, `${agent}/challenge`, { method: "POST" });
  const signature = await account.signMessage({ message });
  const { apiKey } = await call(fetch, `${agent}/api-key`, jsonBody({ challengeId, signature }));
  const headers = { authorization: `Bearer ${apiKey}` };
  return {
    address: account.address,
    get: (path) => call(fetch, path, { headers }),
    post: (path, body) => call(fetchWithPayment, path, jsonBody(body, headers)),
  };
}

function jsonBody(body, headers = {}) {
  if (body === undefined) return { method: "POST", headers };
  return {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  };
}

async function call(fetchFunction, path, init) {
  const response = await fetchFunction(BASE_URL + path, init);
  const { data, error } = await response.json();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${error?.code} ${error?.message}`);
  return data;
}
