/** GET /v1/contracts/{id}/keys: who may have which key of the encrypted references (docs/decisions.md 34). */
import { parseEther } from "viem";
import { registryAbi } from "../../chain/abi.js";
import { keyRelease } from "../../db/schema.js";
import { AppError } from "../../errors.js";
import { statusOf } from "../../protocol/status.js";
import type { Address } from "../../protocol/types.js";
import { type ContractRow, factsOf, loadContract } from "../contracts/view.js";
import type { Deps } from "../deps.js";
import { type ReferenceField, readReferenceKey } from "./vault.js";

export type ReleaseRole = "client" | "worker" | "backup-agent";

/** A symmetric key as a JWK (RFC 7517); `kid` is the one in the header of the JWE that it opens. */
export interface ReferenceJwk {
  kty: "oct";
  alg: "A256GCM";
  use: "enc";
  kid: string;
  k: string;
  field: ReferenceField;
}

interface Entitlement {
  role: ReleaseRole;
  fields: ReferenceField[];
}

/**
 * The keys that the caller may have now, of the references that exist. Every key that is handed out is logged first.
 * Throws 404, and 403 where the caller may have none.
 */
export async function releaseKeys(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "deployment" | "config">,
  { id, caller }: { id: Address; caller: Address },
): Promise<ReferenceJwk[]> {
  const row = await loadContract(deps.db, id);
  const { role, fields } = await entitlementOf(deps, row, caller);
  const keys: ReferenceJwk[] = [];
  for (const field of fields) {
    const key = await readReferenceKey(deps.db, { ...deps.config, contractId: id, field });
    if (key !== null) keys.push(toJwk({ id, field, key }));
  }
  if (keys.length > 0) {
    await deps.db
      .insert(keyRelease)
      .values(keys.map(({ field }) => ({ contractId: id, field, releasedTo: caller, role })));
  }
  return keys;
}

async function entitlementOf(
  deps: Pick<Deps, "clock" | "publicClient" | "deployment">,
  row: ContractRow,
  caller: Address,
): Promise<Entitlement> {
  const { client, worker, matchedAt, deliveredAt } = row.chain;
  if (caller === client) {
    return {
      role: "client",
      fields: deliveredAt === null ? ["supplementaryMaterials"] : ["supplementaryMaterials", "delivery"],
    };
  }
  if (caller === worker) {
    return {
      role: "worker",
      fields: matchedAt === null ? ["supplementaryMaterials"] : ["supplementaryMaterials", "delivery"],
    };
  }
  if (await isJuror(deps, row, caller)) {
    return { role: "backup-agent", fields: ["supplementaryMaterials", "delivery"] };
  }
  throw new AppError("forbidden", {
    message:
      "The keys are for the contract's client and worker, and for eligible Backup Agents while the contract is disputed.",
  });
}

/** Eligibility is read from the chain itself: a stake that is being withdrawn opens nothing, however late the index. */
async function isJuror(
  { clock, publicClient, deployment }: Pick<Deps, "clock" | "publicClient" | "deployment">,
  row: ContractRow,
  caller: Address,
): Promise<boolean> {
  const { baEligibilityStake, disputedAt } = row.chain;
  if (statusOf(factsOf(row), clock.now()) !== "disputed" || disputedAt === null) return false;
  return publicClient.readContract({
    address: deployment.registry,
    abi: registryAbi,
    functionName: "isEligible",
    args: [caller, parseEther(baEligibilityStake.toString()), Number(disputedAt)],
  });
}

function toJwk({ id, field, key }: { id: Address; field: ReferenceField; key: Uint8Array }): ReferenceJwk {
  return {
    kty: "oct",
    alg: "A256GCM",
    use: "enc",
    kid: `${id}#${field}`,
    k: Buffer.from(key).toString("base64url"),
    field,
  };
}
