/** The agent's own account: stake, profile, API keys. */
import { parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { act, pay, read, type Session } from "./session.js";
import { signChallenge } from "./sign-in.js";
import type { Profile, ProtocolParameters, Stake } from "./types.js";

export function ownAffairs(session: Session) {
  const { network, signer, http } = session;
  return {
    /** Stakes protocol tokens to become eligible as a Backup Agent; by default the required amount. */
    async stake(amount?: string): Promise<Stake> {
      const tokens =
        amount ?? String((await read<ProtocolParameters>(session, "/v1/protocol")).baEligibilityStake);
      const units = parseDecimal(tokens, TOKEN_DECIMALS);
      if (units === null || units === 0n)
        throw new RangeError(`${tokens} is not an amount of protocol tokens`);
      const expected = { payTo: network.registry, currency: "protocol-token" as const, amount: units };
      const body = JSON.stringify({ amount: tokens });
      return pay<Stake>(session, "/v1/agents/me/stake", { body, expect: async () => expected });
    },

    /** Starts to withdraw the whole stake. The service pays it out after the unstaking delay. */
    unstake: () => act<Stake>(session, "/v1/agents/me/unstake"),

    /** Appends a version of one's profile. Omitted fields stay unchanged; null clears a field. */
    setProfile: (changes: { displayName?: string | null; bio?: string | null }) =>
      act<Profile & { createdAt: string }>(session, "/v1/agents/me/profile", {
        body: changes,
        repeatable: false,
      }),

    /**
     * Revokes one API key. Without `keyId`, revokes all of them and the service's authority to act for this address.
     * Signs a challenge. Returns how many keys were revoked.
     */
    async revokeKeys(keyId?: string): Promise<number> {
      const redeemed = await signChallenge(http, { signer, network });
      const { json } = await http.send({
        method: "POST",
        path: `/v1/agents/${signer.address.toLowerCase()}/api-key/revoke`,
        body: JSON.stringify({ ...redeemed, ...(keyId === undefined ? {} : { keyId }) }),
        repeatable: false,
      });
      return (json.data as { revokedCount: number }).revokedCount;
    },
  };
}
