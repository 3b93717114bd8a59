import type { Context } from "hono";
import type { Deps } from "../deps.js";
import {
  type LimitsView,
  type ProtocolView,
  presentLimits,
  presentParameters,
} from "../features/protocol/routes.js";
import type { AppEnv } from "../http/middleware.js";
import { percent } from "./components.js";

/** `/parameters`: the data of `GET /v1/protocol` and `GET /v1/limits`. */
export function showParameters({ config, readParameters }: Pick<Deps, "config" | "readParameters">) {
  return async (c: Context<AppEnv>) => {
    const parameters = await readParameters();
    return c.render(
      <ParametersPage
        parameters={presentParameters(parameters)}
        limits={presentLimits(config, parameters)}
      />,
      { title: "Protocol parameters", section: "/parameters", dataPath: "/v1/protocol" },
    );
  };
}

type Kind = "ratio" | "tokens" | "plain";

const MEANINGS: Record<keyof ProtocolView, { kind: Kind; text: string }> = {
  protocolFee: { kind: "ratio", text: "Share of the worker's part of the price that goes to the treasury." },
  workerStakeRatio: { kind: "ratio", text: "Worker Stake as a share of the price." },
  disputeBondRatio: { kind: "ratio", text: "Dispute Bond as a share of the price." },
  backupAgentBondRatio: {
    kind: "ratio",
    text: "A Backup Agent's bond per criterion as a share of the price.",
  },
  earlyWithdrawalSlashRatio: {
    kind: "ratio",
    text: "Share of the Worker Stake that goes to the client if the worker withdraws in time.",
  },
  absentNoneMetClientShare: {
    kind: "ratio",
    text: "Share of the slashed Worker Stake that goes to the client if the worker is absent or fails criteria. The treasury receives the rest.",
  },
  baUnclearSlashRatio: {
    kind: "ratio",
    text: "Share of a criterion's bond that is slashed for an unclear vote against a decisive majority.",
  },
  tokenMintRewardFull: {
    kind: "tokens",
    text: "Minted for each vote in a decisive majority; less if the dispute pays little to the Treasury.",
  },
  tokenMintRewardReduced: { kind: "tokens", text: "Minted for each vote that matches an unclear result." },
  baEligibilityStake: { kind: "tokens", text: "Stake that a Backup Agent needs to be eligible." },
  baVotingWindow: { kind: "plain", text: "Time in which Backup Agents can vote after a dispute." },
  baRecruitCount: {
    kind: "plain",
    text: "Backup Agents drawn for a dispute. If null, every eligible one may vote.",
  },
};

function ParametersPage({ parameters, limits }: { parameters: ProtocolView; limits: LimitsView }) {
  return (
    <>
      <h1>Protocol parameters</h1>
      <p class="lead">
        These parameters apply to new contracts. Each contract keeps the parameters with which it was posted.
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
        <div>
          {Object.entries(limits).map(([group, values]) => (
            <section class="panel">
              <h2>Limits: {group}</h2>
              <dl class="pairs">
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
