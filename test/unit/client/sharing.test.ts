import { seal, sharing } from "@working-contracts/client/sealing";
import { deliveriesKey, type Session } from "@working-contracts/client/session";
import { waitUntil } from "@working-contracts/client/wait";
import { keyText, ownKeysOf } from "@working-contracts/client/wallets";
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterEach, expect, it, vi } from "vitest";

const ID = `0x${"11".repeat(20)}`;
const network = { chainId: 1, domain: "contracts.example", factory: `0x${"22".repeat(20)}` };
afterEach(() => void vi.useRealTimers());

/** What the agent sealed. */
let submitted: string[] = [];
const sessionOf = () => {
  const store = { read: (key: string) => (key === deliveriesKey(ID) ? submitted : []) };
  const signer = privateKeyToAccount(generatePrivateKey());
  return { signer, network, node: "http://node", submitted: store } as unknown as Session;
};

it("shares with each Backup Agent although the service refuses one, hides the text, does not end its log or invents agents", async () => {
  const worker = sessionOf();
  const keys = await ownKeysOf(worker);
  const sealed = await seal("ipfs://summary", ID, [{ address: worker.signer.address, key: keys.key }]);
  const jurors = new Map<string, { key: string; signature: string }>();
  for (let i = 0; i < 3; i++) {
    const juror = sessionOf();
    const { address } = juror.signer;
    // An agent can sign a key that is none.
    const key = i === 0 ? "none" : (await ownKeysOf(juror)).key;
    const signature = await juror.signer.signMessage({ message: keyText(juror, address, key) });
    jurors.set(address.toLowerCase(), { key, signature });
  }
  const proven = new Set(jurors.keys());
  const [, refused, last] = [...proven];
  let invented: object[] = [];
  const mayVote = vi.fn(async (_: string) => true);
  const [isHidden, isEndless, isLogless] = [vi.fn(() => false), vi.fn(() => false), vi.fn(() => false)];
  const send = async ({ method, path, body }: { method: string; path: string; body?: string }) => {
    if (path.startsWith("/v1/events")) {
      if (isEndless()) await new Promise((resolve) => setTimeout(resolve, 1000));
      const data = isLogless() ? [{ data: { backupAgent: refused } }] : invented;
      return { json: { data, hasMore: isEndless(), nextAfter: "1" } };
    }
    if (method === "GET") return { json: { data: jurors.get(path.split("/")[3] as string) } };
    if (body?.includes(refused as string)) throw new Error("refused");
    return { json: {} };
  };
  const session = { ...worker, http: { send, until: () => ({ send }) } } as unknown as Session;
  const { share } = sharing(session, {
    escrowOf: async () => ({
      status: async () => "disputed",
      backupAgents: async () => {
        if (isLogless()) throw new Error("no event of the dispute");
        return proven;
      },
      mayVote,
      deliveryHash: async () => keccak256(stringToHex(sealed)),
    }),
    ownKeys: async () => keys,
    waitUntil,
    committedReference: async (_: string, __: string, kept?: string) => kept ?? (isHidden() ? null : sealed),
  } as never);
  const copies: string[] = [];
  const failures: Error[] = [];
  const onShare = (_: string, recipient: string) => void copies.push(recipient);
  const onFailure = (error: Error) => void failures.push(error);
  expect(await share(ID, { onShare, onFailure })).toEqual([last]);
  expect(copies).toEqual([refused, last]);
  expect(failures).toHaveLength(2);
  await expect(share(ID, {})).rejects.toThrow(failures[0]?.message);
  isHidden.mockReturnValue(true);
  await expect(share(ID, { onShare, onFailure })).rejects.toThrow(`shows no delivery of ${ID}`);
  // The service hides the text from its Worker, which kept it.
  submitted = [stringToHex("an earlier attempt"), stringToHex(sealed)];
  await expect(share(ID, { onShare })).rejects.toThrow(failures[0]?.message);
  expect(copies.splice(0).at(-1)).toBe(refused);
  // A node without logs can still say who may vote.
  isLogless.mockReturnValueOnce(true).mockReturnValueOnce(true);
  expect(await share(ID, { onShare, onFailure })).toEqual([]);
  expect(copies.splice(0)).toEqual([refused]);
  expect(failures.slice(-2).map(({ message }) => message)).toEqual(["no event of the dispute", "refused"]);
  // A log without an end keeps no share back, and ends.
  vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
  isEndless.mockReturnValue(true);
  const endless = share(ID, { onShare, onFailure });
  await vi.waitUntil(() => copies.includes(refused as string));
  await vi.advanceTimersByTimeAsync(600_000);
  expect(await endless).toEqual([]);
  expect(failures.at(-1)?.message).toContain("no response in time");
  // Nor do agents that the service invents; those that may vote are served, if they are among the first.
  isEndless.mockReturnValue(false);
  const newcomer = sessionOf();
  const address = newcomer.signer.address.toLowerCase();
  const { key } = await ownKeysOf(newcomer);
  const signature = await newcomer.signer.signMessage({ message: keyText(newcomer, address, key) });
  jurors.set(address, { key, signature });
  const names = [address, ...Array.from({ length: 4_000 }, (_, i) => `0x${String(i).padStart(40, "0")}`)];
  invented = names.map((backupAgent) => ({ data: { backupAgent } }));
  mayVote.mockImplementation(async (agent) => {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    return agent === address;
  });
  const crowded = share(ID, { onShare, onFailure });
  await vi.waitUntil(() => mayVote.mock.calls.length > 1);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(await crowded).toEqual([address]);
  expect(mayVote.mock.calls.length).toBeLessThan(700);
});

it("asks the node about no one if the delivery is not sealed", async () => {
  submitted = [];
  const text = "ipfs://summary";
  const json = {
    data: [{ data: { role: "backup-agent", releasedTo: ID } }],
    hasMore: false,
    nextAfter: "1",
  };
  const http = { send: async () => ({ json }), until: () => http };
  const mayVote = vi.fn();
  const escrow = {
    status: async () => "disputed",
    backupAgents: async () => [],
    deliveryHash: async () => keccak256(stringToHex(text)),
    mayVote,
  };
  const access = { escrowOf: async () => escrow, waitUntil, committedReference: async () => text };
  const { share } = sharing({ ...sessionOf(), http } as never, access as never);
  expect(await share(ID, {})).toEqual([]);
  expect(mayVote).not.toHaveBeenCalled();
});
