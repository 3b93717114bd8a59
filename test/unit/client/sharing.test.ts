import { seal, sharing } from "@working-contracts/client/sealing";
import { deliveriesKey, type Session } from "@working-contracts/client/session";
import { keyText, ownKeysOf } from "@working-contracts/client/wallets";
import { keccak256, stringToHex } from "@working-contracts/protocol/hex";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { expect, it, vi } from "vitest";

const ID = `0x${"11".repeat(20)}`;
const network = { chainId: 1, domain: "contracts.example", factory: `0x${"22".repeat(20)}` };
/** What the agent sealed. */
let submitted: string[] = [];
const sessionOf = () => {
  const store = { read: (key: string) => (key === deliveriesKey(ID) ? submitted : []) };
  const signer = privateKeyToAccount(generatePrivateKey());
  return { signer, network, node: "http://node", submitted: store } as unknown as Session;
};

it("shares with each Backup Agent although the service refuses the share or the key of another", async () => {
  const worker = sessionOf();
  const keys = await ownKeysOf(worker);
  const sealed = await seal("ipfs://summary", [{ address: worker.signer.address, key: keys.key }]);
  const jurors = new Map<string, { key: string; signature: string }>();
  for (let i = 0; i < 3; i++) {
    const juror = sessionOf();
    const { address } = juror.signer;
    // An agent can sign a key that is none.
    const key = i === 0 ? "none" : (await ownKeysOf(juror)).key;
    const signature = await juror.signer.signMessage({ message: keyText(juror, address, key) });
    jurors.set(address.toLowerCase(), { key, signature });
  }
  const [, refused, last] = [...jurors.keys()];
  const send = async ({ method, path, body }: { method: string; path: string; body?: string }) => {
    if (path.startsWith("/v1/events")) return { json: { data: [], hasMore: false } };
    if (method === "GET") return { json: { data: jurors.get(path.split("/")[3] as string) } };
    if (body?.includes(refused as string)) throw new Error("refused");
    return { json: {} };
  };
  const session = { ...worker, http: { send } } as unknown as Session;
  const isHidden = vi.fn(() => false);
  const { share } = sharing(session, {
    escrowOf: async () => ({
      status: async () => "disputed",
      backupAgents: async () => new Set(jurors.keys()),
      deliveryHash: async () => keccak256(stringToHex(sealed)),
    }),
    ownKeys: async () => keys,
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
  // The service hides the text from its Worker, which kept it.
  isHidden.mockReturnValue(true);
  submitted = [stringToHex("an earlier attempt"), stringToHex(sealed)];
  await expect(share(ID, { onShare })).rejects.toThrow(failures[0]?.message);
  expect(copies.at(-1)).toBe(refused);
});
