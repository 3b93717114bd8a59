import type { Context } from "hono";
import type { Deps } from "../deps.js";
import {
  type LimitsView,
  type ProtocolView,
  presentLimits,
  presentParameters,
} from "../features/protocol/routes.js";
import type { AppEnv } from "../http/middleware.js";
import { Pairs, percent, Region } from "./components.js";

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

const inTokens = (value: ProtocolView[keyof ProtocolView]): string => `${value} tokens`;
const inPercent = (value: ProtocolView[keyof ProtocolView]): string => percent(Number(value));

/** What each parameter means, and how it is written. */
const MEANINGS: Record<keyof ProtocolView, [string, typeof inTokens]> = {
  protocolFee: ["Share of the worker's part of the price that goes to the treasury.", inPercent],
  workerStakeRatio: ["Worker Stake as a share of the price.", inPercent],
  disputeBondRatio: ["Dispute Bond as a share of the price.", inPercent],
  backupAgentBondRatio: ["A Backup Agent's bond per criterion as a share of the price.", inPercent],
  earlyWithdrawalSlashRatio: [
    "Share of the Worker Stake that goes to the client if the worker withdraws in time.",
    inPercent,
  ],
  absentNoneMetClientShare: [
    "Share of the slashed Worker Stake that goes to the client if the worker is absent or fails criteria. The treasury receives the rest.",
    inPercent,
  ],
  baUnclearSlashRatio: [
    "Share of a criterion's bond that is slashed for an unclear vote against a decisive majority.",
    inPercent,
  ],
  tokenMintRewardFull: [
    "Minted for each vote in a decisive majority; less if the dispute pays little to the Treasury.",
    inTokens,
  ],
  tokenMintRewardReduced: ["Minted for each vote that matches an unclear result.", inTokens],
  baEligibilityStake: ["Stake that a Backup Agent needs to be eligible.", inTokens],
  baVotingWindow: ["Time in which Backup Agents can vote after a dispute.", String],
  baRecruitCount: ["Backup Agents drawn for a dispute. If null, every eligible one may vote.", String],
};

/** Each parameter with its meaning: of the protocol, or of a contract. */
export function Parameters({ parameters }: { parameters: ProtocolView }) {
  return (
    <dl class="values" id="parameters">
      {(Object.keys(MEANINGS) as (keyof ProtocolView)[]).map((name) => (
        <div>
          <dt>
            <code>{name}</code>
          </dt>
          <dd class="value" data-value={String(parameters[name])}>
            {MEANINGS[name][1](parameters[name])}
          </dd>
          <dd>{MEANINGS[name][0]}</dd>
        </div>
      ))}
    </dl>
  );
}

function ParametersPage({ parameters, limits }: { parameters: ProtocolView; limits: LimitsView }) {
  return (
    <>
      <h1>Protocol parameters</h1>
      <p class="lead">
        These parameters apply to new contracts. Each contract keeps the parameters with which it was posted,
        and its page shows them.
      </p>
      <div class="columns">
        <div>
          <Region title="Parameters">
            <Parameters parameters={parameters} />
          </Region>
        </div>
        <div>
          {Object.entries(limits).map(([group, values]) => (
            <Region title={`Limits: ${group}`}>
              <Pairs
                rows={Object.entries(values).map(([name, value]) => [<code>{name}</code>, value ?? "off"])}
              />
            </Region>
          ))}
        </div>
      </div>
    </>
  );
}
