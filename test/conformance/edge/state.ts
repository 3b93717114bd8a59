/** The stored state, and the money of everyone involved. It is compared before and after a request. */
import type { Address } from "viem";
import type { Scene } from "../../support/world.js";

/** Written only by calls, each before its response, so a rejected call leaves them unchanged. */
const WRITTEN_BY_CALLS = [
  ...["api_key", "terms", "reference_key", "delivery", "checkpoint", "complaint", "profile"].map(
    (table) => `app.${table}`,
  ),
  "app.entrusted_vote",
  "app.key_release",
  "(select id, caller, kind, escrow, nonce, request_hash from app.operation where caller is not null)",
  "(select id, owner, url, description, agent, contract_id, types, wrapped_secret from app.webhook)",
];
/** Written later as an effect of calls, through relayer, chain, indexer and event log. */
const FOLLOWING = [
  ...["app.operation", "app.batch", "app.event"],
  ...["working_contract", "vote", "draw", "stake", "deferred_payout"].map((view) => `onchain.${view}`),
];

interface State {
  written: string;
  followed: string;
}

/** `holders` are agents and contracts whose stablecoins count as state. */
export async function openState(scene: Scene, holders: readonly Address[]) {
  const sql = [...WRITTEN_BY_CALLS, ...FOLLOWING]
    .map((source) => `select count(*), sum(hashtextextended(t::text, 0)) from ${source} t`)
    .join(" union all ");
  const read = async (): Promise<State> => {
    const [rows, balances] = await Promise.all([scene.query(sql), Promise.all(holders.map(scene.usdOf))]);
    return {
      written: JSON.stringify(rows.slice(0, WRITTEN_BY_CALLS.length), null, 1),
      followed: JSON.stringify([...rows.slice(WRITTEN_BY_CALLS.length), ...balances.map(String)], null, 1),
    };
  };
  return {
    read,
    /** Resolves once no operation is pending. */
    async settled(): Promise<void> {
      let before = "";
      for (let quiet = 0; quiet < 4; ) {
        const [open] = await scene.query<{ count: string }>(
          "select count(*) from app.operation where state in ('queued', 'sent', 'mined', 'held')",
        );
        const { followed } = await read();
        quiet = followed === before && open?.count === "0" ? quiet + 1 : 0;
        before = followed;
        await new Promise((resolve) => setTimeout(resolve, 250));
      }
    },
  };
}
