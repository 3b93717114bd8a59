import type { LimitsView } from "../../features/protocol/present-limits.js";
import type { ProtocolView } from "../../features/protocol/present-parameters.js";
import { percent } from "../format.js";

type Kind = "ratio" | "tokens" | "plain";

const MEANINGS: Record<keyof ProtocolView, { kind: Kind; text: string }> = {
  protocolFee: { kind: "ratio", text: "Of what the worker is paid of the price; goes to the treasury." },
  workerStakeRatio: { kind: "ratio", text: "Worker Stake, of the price." },
  disputeBondRatio: { kind: "ratio", text: "Dispute Bond, of the price." },
  backupAgentBondRatio: { kind: "ratio", text: "A Backup Agent's bond for each criterion, of the price." },
  earlyWithdrawalSlashRatio: {
    kind: "ratio",
    text: "Of the Worker Stake, to the client when the worker withdraws in time.",
  },
  absentNoneMetClientShare: {
    kind: "ratio",
    text: "Of the slashed Worker Stake, to the client when the worker is absent or fails criteria; the rest goes to the treasury.",
  },
  baUnclearSlashRatio: {
    kind: "ratio",
    text: "Of a criterion's bond, slashed for voting unclear against a decisive majority.",
  },
  tokenMintRewardFull: { kind: "tokens", text: "Minted for a vote with a decisive majority." },
  tokenMintRewardReduced: { kind: "tokens", text: "Minted for a vote with an unclear majority." },
  baEligibilityStake: { kind: "tokens", text: "What a Backup Agent keeps staked to be eligible." },
  baVotingWindow: { kind: "plain", text: "How long Backup Agents can vote, from the dispute on." },
  baRecruitCount: {
    kind: "plain",
    text: "Backup Agents drawn for a dispute; null: every eligible one may vote.",
  },
};

export function ParametersPage({ parameters, limits }: { parameters: ProtocolView; limits: LimitsView }) {
  return (
    <>
      <h1>Protocol parameters</h1>
      <p class="lead">
        What contracts posted from now on are subject to. Each contract keeps those of the day it was posted.
      </p>
      <div class="columns">
        <div>
          <section class="panel">
            <h2>Parameters</h2>
            <dl class="values" id="parameters">
              {(Object.keys(MEANINGS) as (keyof ProtocolView)[]).map((name) => (
                <div>
                  <dt>
                    <code>{name}</code>
                  </dt>
                  <dd class="value" data-value={String(parameters[name])}>
                    {shown(parameters[name], MEANINGS[name].kind)}
                  </dd>
                  <dd>{MEANINGS[name].text}</dd>
                </div>
              ))}
            </dl>
          </section>
        </div>
        <div class="aside-last">
          {Object.entries(limits).map(([group, values]) => (
            <section class="panel">
              <h2>Limits: {group}</h2>
              <dl class="pairs limits">
                {Object.entries(values).map(([name, value]) => (
                  <>
                    <dt>
                      <code>{name}</code>
                    </dt>
                    <dd>{value === null ? "off" : value}</dd>
                  </>
                ))}
              </dl>
            </section>
          ))}
        </div>
      </div>
    </>
  );
}

function shown(value: string | number | null, kind: Kind): string {
  if (kind === "ratio") return percent(Number(value));
  if (kind === "tokens") return `${value} tokens`;
  return String(value);
}
