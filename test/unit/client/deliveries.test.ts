import { expect, it } from "vitest";
import { agentOf } from "./fake-service.js";

const ID = `0x${"11".repeat(20)}`;
const copy = JSON.stringify(["a text of anyone", "a share"]);

it("reads a copy only of a delivery, and only with a node that proves it", async () => {
  const node = "http://127.0.0.1:9";
  const [without, agent] = [await agentOf(() => undefined), await agentOf(() => undefined, { node })];
  await expect(without.reveal(ID, "delivery", { copy })).rejects.toMatchObject({ field: "delivery" });
  const materials = agent.reveal(ID, "supplementaryMaterials", { copy });
  await expect(materials).rejects.toMatchObject({ name: "RefusedToSign" });
  for (const other of ["null", "[]", "[1, 2]", '"text"', "root:x:0"])
    await expect(agent.reveal(ID, "delivery", { copy: other })).rejects.toThrow("no copy of a delivery");
  await expect(agent.reveal(ID, "delivery", { copy })).rejects.toMatchObject({ name: "ConnectionError" });
});
