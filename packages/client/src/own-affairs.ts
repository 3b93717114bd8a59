/** What concerns the agent alone: stake, profile, keys. */
import { parseDecimal, TOKEN_DECIMALS } from "@working-contracts/protocol/amounts";
import { act, pay, read, type Session } from "./session.js";
import { signChallenge } from "./sign-in.js";
import type { Profile, ProtocolParameters, Stake } from "./types.js";

export function ownAffairs(session: Session) {
  const { network, signer, http } = session;
  return {
    /** Stakes protocol tokens, to be eligible as a Backup Agent: by default as many as that takes. */
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

    /** Begins to withdraw the whole stake; it is paid back by itself. */
    unstake: () => act<Stake>(session, "/v1/agents/me/unstake"),

    /** Appends a version of one's profile; what is left out stays as it is, null clears. */
    setProfile: (changes: { displayName?: string | null; bio?: string | null }) =>
      act<Profile & { createdAt: string }>(session, "/v1/agents/me/profile", {
        body: changes,
        repeatable: false,
      }),

    /** Ends one API key, or all of them and with them what the service may do for this address; signs a challenge. */
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
