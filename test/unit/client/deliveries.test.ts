import { deliveriesKey } from "@working-contracts/client/session";
import { keyText, ownKeysOf } from "@working-contracts/client/wallets";
import { stringToHex } from "@working-contracts/protocol/hex";
import { expect, it, vi } from "vitest";
import { account, agentOf, NETWORK } from "./fake-service.js";
import { servedTerms } from "./served-terms.js";

const ID = `0x${"11".repeat(20)}`;
const copy = JSON.stringify(["a text of anyone", "a share"]);

it("reads a copy only of a delivery, and only with a node that proves it", async () => {
  const node = "http://127.0.0.1:9";
  const [without, agent] = [await agentOf(() => undefined), await agentOf(() => undefined, { node })];
  await expect(without.readReference(ID, "delivery", { copy })).rejects.toMatchObject({ field: "delivery" });
  const materials = agent.readReference(ID, "supplementaryMaterials", { copy });
  await expect(materials).rejects.toMatchObject({ name: "RefusedToSign" });
  for (const other of ["null", "[]", "[1, 2]", '"text"', "root:x:0"])
    await expect(agent.readReference(ID, "delivery", { copy: other })).rejects.toThrow(
      "Not a copy of a delivery",
    );
  await expect(agent.readReference(ID, "delivery", { copy })).rejects.toMatchObject({
    name: "ConnectionError",
  });
});

it("asks the wallet for one key for two calls at a time, and again after a refusal", async () => {
  const asked: string[] = [];
  const signMessage: typeof account.signMessage = async ({ message }) => {
    asked.push(String(message));
    if (asked.length === 1) throw new Error("refused");
    return account.signMessage({ message });
  };
  const agent = await agentOf(() => undefined, { account: { ...account, signMessage } });
  await expect(agent.publishKey()).rejects.toThrow("refused");
  await Promise.allSettled([agent.publishKey(), agent.publishKey()]);
  // The key's signature is asked for twice, because it must be the same.
  expect(asked).toHaveLength(3);
});

it("keeps a sealed text before it is sent: only the service would have it", async () => {
  const { id, terms } = servedTerms({ initiator: account.address });
  const session = { signer: account, network: NETWORK } as never;
  const { key } = await ownKeysOf(session);
  const signature = await account.signMessage({ message: keyText(session, account.address, key) });
  const steps: string[][] = [];
  const submitted = { read: () => [], add: (...kept: string[]) => void steps.push(kept) };
  const serve = (request: string, { body }: RequestInit) => {
    if (request.endsWith("/terms")) return Response.json({ data: terms });
    if (request.endsWith("/encryption-key")) return Response.json({ data: { key, signature } });
    if (request.endsWith("/checkpoints")) return Response.json({ data: [] });
    if (!request.endsWith("/delivery")) return undefined;
    steps.push([request, stringToHex(JSON.parse(String(body)).delivery)]);
    throw new TypeError("fetch failed");
  };
  const agent = await agentOf(serve, { submitted });
  await expect(agent.deliver(id, "ipfs://page", { seal: true })).rejects.toThrow("fetch failed");
  const text = steps[1]?.[1];
  expect(steps).toEqual([
    [deliveriesKey(id), text],
    [`POST /v1/contracts/${id}/delivery`, text],
  ]);
});

it("shares nothing again only because it follows the events again", async () => {
  const code = "@working-contracts/client/sealing";
  const sharing = vi.fn(() => ({ share: async () => [], shareAll: async () => {} }));
  vi.doMock(code, () => ({ sharing }));
  const agent = await agentOf(() => undefined);
  for (let i = 0; i < 2; i++) await agent.shareDeliveries();
  expect(sharing).toHaveBeenCalledTimes(1);
  // What a thief of the API key posted is replaced.
  for (let i = 0; i < 2; i++) await agent.shareDelivery(ID);
  expect(sharing).toHaveBeenCalledTimes(3);
  vi.doUnmock(code);
});
