import { signersOf } from "@working-contracts/client/verify/authority";
import { createClient, custom, type Hex, HttpRequestError, RpcRequestError } from "viem";
import { expect, it } from "vitest";

const party = `0x${"11".repeat(20)}`;
const body = { method: "eth_call" };
const url = "http://node";
const reverted = { code: 3, message: "execution reverted" };
const limited = { code: -32005, message: "limit exceeded" };

/** The signer of a wallet's complaint, whose signature is of another key, as a node's answer shows it. */
async function signerBy(answer: Hex | Error, change: object = {}) {
  const request = async () => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const client = createClient({ transport: custom({ request }, { retryCount: 0 }) });
  const signed = { signature: `0x${"22".repeat(64)}1b`, nonce: "0", deadline: 1 };
  const complaint = { filedByRole: "client", evidence: {}, signed, ...change } as never;
  const parties = { client: party, worker: null } as never;
  const [one] = await signersOf(client, [complaint], { id: party as Hex, chainId: 1, parties });
  return one?.signer;
}

it("asks a contract wallet, and takes no failure of the node for its answer", async () => {
  expect(await signerBy(`0x1626ba7e${"00".repeat(28)}`)).toBe(party);
  for (const no of ["0x", "0x1626ba7e", `0x${"00".repeat(32)}`] as const)
    expect(await signerBy(no)).toContain("not by its key");
  expect(await signerBy(new RpcRequestError({ body, url, error: reverted }))).toContain("not by its key");
  for (const failure of [
    new RpcRequestError({ body, url, error: limited }),
    new HttpRequestError({ body, url, status: 503 }),
  ])
    await expect(signerBy(failure)).rejects.toThrow();
});

it.each([
  { signed: {} },
  { signed: { nonce: "x", signature: "0x12", deadline: 1 } },
  { signed: { nonce: "0", signature: "12", deadline: 1 } },
  { signed: { nonce: "0", signature: `0x${"22".repeat(4096)}`, deadline: 1 } },
  { evidence: JSON.parse("1e999") },
])("a complaint that cannot be read is signed by no one, and no node is asked: case %#", async (change) => {
  expect(await signerBy(`0x1626ba7e${"00".repeat(28)}`, change)).toBe("unreadable");
});
