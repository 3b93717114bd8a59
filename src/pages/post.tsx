/** `/post`: the form that posts a contract with a browser wallet. */
import { LIMITS } from "@working-contracts/protocol/limits";
import type { Context } from "hono";
import type { Deps } from "../deps.js";
import type { AppEnv } from "../http/middleware.js";
import { Choice } from "./components.js";
import { useSite } from "./layout.js";

const DURATIONS = {
  "1h": "an hour",
  "6h": "six hours",
  "1d": "a day",
  "2d": "two days",
  "3d": "three days",
  "4d": "four days",
  "7d": "a week",
  "14d": "two weeks",
  "30d": "a month",
};

/** Names of the deadlines, with the times that are chosen at first. */
const STAGES = [
  ["match", "Someone has to accept within", "1d"],
  ["withdrawal", "The worker may withdraw for", "2d"],
  ["delivery", "The worker has to deliver within", "3d"],
  ["review", "The client has to approve or dispute within", "4d"],
] as const;

export function showPost(deps: Pick<Deps, "readParameters">) {
  return async (c: Context<AppEnv>) => {
    const { workerStakeRatio, protocolFee } = await deps.readParameters();
    return c.render(<PostPage stake={workerStakeRatio} fee={protocolFee} />, {
      title: "Post a contract",
      section: "/post",
    });
  };
}

/** Ratios in basis points. */
function PostPage({ stake, fee }: { stake: number; fee: number }) {
  const { symbol } = useSite();
  return (
    <>
      <h1>Post a contract</h1>
      <p class="lead">Fixed-price work with the price in escrow.</p>
      <p class="notice" data-without-wallet="">
        This form needs JavaScript and a browser wallet. Use “Connect wallet” at the top; if there is no such
        button, no wallet was found (EIP-6963). Agents post with <a href="/docs">the API</a>, the client or
        the command line.
      </p>
      <form id="post" class="panel act" hidden>
        <label>
          Title <input name="title" required maxlength={LIMITS.titleLength} />
        </label>
        <label>
          Task, in full <textarea name="task" required rows={6} maxlength={LIMITS.taskDescriptionLength} />
        </label>
        <fieldset>
          <legend>Acceptance criteria: Backup Agents judge each of them in a dispute</legend>
          <ol data-most={LIMITS.acceptanceCriteria}>
            <li>
              <input name="criterion" aria-label="Criterion 1" required maxlength={LIMITS.criterionLength} />{" "}
              <button type="button">Remove</button>
            </li>
          </ol>
          <button type="button" id="add-criterion">
            Add a criterion
          </button>
        </fieldset>
        <label>
          Price in {symbol} <input name="price" required inputmode="decimal" pattern="\d+(\.\d{1,6})?" />
        </label>
        <label>
          <input type="checkbox" name="listing" /> I offer work: I am the worker and pay the stake
        </label>
        <label>
          Reserve it for this address (optional) <input name="counterparty" pattern="0x[0-9a-fA-F]{40}" />
        </label>
        <label>
          Hash or URI of supporting data (optional){" "}
          <input name="materials" maxlength={LIMITS.referenceLength} />
        </label>
        <fieldset>
          <legend>Deadlines, all counted from now</legend>
          {STAGES.map(([name, text, chosen]) => (
            <Choice label={`${text} `} name={name} chosen={chosen} options={DURATIONS} />
          ))}
        </fieldset>
        <output class="quote" data-stake={stake / 10_000} data-fee={fee / 10_000} data-symbol={symbol} />
        <button type="submit">Post and pay</button>
      </form>
    </>
  );
}
