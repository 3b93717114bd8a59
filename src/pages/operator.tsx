import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import { deleteCookie, getSignedCookie, setSignedCookie } from "hono/cookie";
import type { Deps } from "../deps.js";
import { type OperatorOverview, readOverview } from "../features/operator/read-overview.js";
import { checkReadiness, type Readiness } from "../features/system/routes.js";
import { type AppEnv, createRateLimiter, takeOrRefuse } from "../http/middleware.js";
import {
  AgentLink,
  Amount,
  ChainLink,
  ContractLink,
  plural,
  Region,
  Rows,
  ScrollTable,
  say,
  Time,
} from "./components.js";

/** Sign-in attempts per minute and client; independent of the configured limits. */
const TRIES = 10;
/** When the session ends, signed with the operator's key (HMAC), which signs nothing else: changing it ends every session. */
const COOKIE = "operator";
const COOKIE_OPTIONS = { path: "/operator", httpOnly: true, sameSite: "Strict" } as const;
const LIFETIME_SECONDS = 12 * 3600;
const nowSeconds = (): number => Math.floor(Date.now() / 1000);

/** `/operator`: every page of it requires the operator's key. */
export function operatorPages(
  deps: Pick<Deps, "db" | "clock" | "publicClient" | "config">,
  operatorKey: string,
) {
  const options = { ...COOKIE_OPTIONS, secure: deps.config.baseUrl.startsWith("https:") };
  const limiter = createRateLimiter(TRIES);
  const signIn = (c: Context<AppEnv>, fault: string | null) => {
    c.status(401);
    c.header("Cache-Control", "no-store");
    return c.render(<SignInPage fault={fault} />, { title: "Operator" });
  };

  return {
    async show(c: Context<AppEnv>) {
      // Not a number if the signature is wrong; it is compared in constant time.
      const endsAt = Number(await getSignedCookie(c, operatorKey, COOKIE));
      if (!(endsAt > nowSeconds())) return signIn(c, null);
      const [overview, readiness] = await Promise.all([readOverview(deps), checkReadiness(deps)]);
      c.header("Cache-Control", "no-store");
      return c.render(<OperatorPage overview={overview} readiness={readiness} />, { title: "Operator" });
    },
    async enter(c: Context<AppEnv>) {
      takeOrRefuse(c, "operator", limiter, c.get("ip"));
      const key = new URLSearchParams(c.get("rawBody").toString()).get("key") ?? "";
      if (!isSame(key, operatorKey)) return signIn(c, "This is not the operator's key.");
      const endsAt = String(nowSeconds() + LIFETIME_SECONDS);
      await setSignedCookie(c, COOKIE, endsAt, operatorKey, { ...options, maxAge: LIFETIME_SECONDS });
      return c.redirect("/operator", 303);
    },
    async leave(c: Context<AppEnv>) {
      deleteCookie(c, COOKIE, options);
      return c.redirect("/operator", 303);
    },
  };
}

function SignInPage({ fault }: { fault: string | null }) {
  return (
    <>
      <h1>Operator</h1>
      {fault !== null && (
        <p class="notice bad" role="alert">
          {fault}
        </p>
      )}
      <form class="panel stack narrow" method="post" action="/operator">
        <label>
          Operator's key
          <input type="password" name="key" required autocomplete="current-password" />
        </label>
        <div class="actions">
          <button type="submit">Sign in</button>
        </div>
      </form>
    </>
  );
}

function OperatorPage({ overview, readiness }: { overview: OperatorOverview; readiness: Readiness }) {
  const { queue, signers, gas, rejections, heldPayouts, dueSettlements, deferredPayouts } = overview;
  return (
    <>
      <h1>Operator</h1>
      <form method="post" action="/operator/leave">
        <button type="submit">Sign out</button>
      </form>
      <div class="columns">
        <div>
          <Health readiness={readiness} />
          <Region title="Outbox">
            {queue.length === 0 ? (
              <p>Empty.</p>
            ) : (
              <ScrollTable label="Pending operations">
                <Rows
                  columns={["State", "Kind", "#Count", "Oldest"]}
                  rows={queue.map(({ state, kind, count, oldestAt }) => [
                    state,
                    kind,
                    count,
                    <Time at={oldestAt} />,
                  ])}
                />
              </ScrollTable>
            )}
          </Region>
          <Signers signers={signers} />
          <Gas gas={gas} />
        </div>
        <div>
          <Region title="Held payouts">
            <p>{plural(dueSettlements, "settlement is", "settlements are")} due but not on chain yet.</p>
            <ul class="entries" id="held">
              {heldPayouts.map(({ contractId, title, price, endedAt, heldUntil }) => (
                <li>
                  <a href={`/contracts/${contractId}`}>
                    <bdi>{title}</bdi>
                  </a>
                  <Amount value={price} />
                  <small>
                    ended <Time at={endedAt} />, held until <Time at={heldUntil} />
                  </small>
                </li>
              ))}
            </ul>
            {heldPayouts.length === 0 && <p>No payouts are held.</p>}
            {deferredPayouts.length > 0 && (
              <>
                <h3>Refused by the token</h3>
                <ul class="entries">
                  {deferredPayouts.map(({ contractId, payee, amount }) => (
                    <li>
                      <span>
                        <AgentLink address={payee} /> from <ContractLink id={contractId} />
                      </span>
                      <Amount value={amount} />
                    </li>
                  ))}
                </ul>
              </>
            )}
          </Region>
          <Region title="Recent rejections">
            <ul class="entries">
              {rejections.map(({ kind, escrow, reason, at }) => (
                <li>
                  <span>
                    {kind} {escrow !== null && <ContractLink id={escrow} />}
                  </span>
                  <span>{reason}</span>
                  <small>
                    <Time at={at} />
                  </small>
                </li>
              ))}
            </ul>
            {rejections.length === 0 && <p>None.</p>}
          </Region>
        </div>
      </div>
    </>
  );
}

function Health({ readiness: { ready, database, chain, indexer } }: { readiness: Readiness }) {
  const word = (ok: boolean) => <span class={ok ? "badge good" : "badge bad"}>{ok ? "ok" : "failing"}</span>;
  return (
    <Region title="Health">
      <p class={ready ? "notice good" : "notice bad"}>{ready ? "Ready." : "Not ready."}</p>
      <dl class="pairs">
        <dt>Database</dt>
        <dd>{word(database.ok)}</dd>
        <dt>Chain</dt>
        <dd>
          {word(chain.ok)} block {chain.block ?? "unknown"}, {chain.ageSeconds ?? "?"} s old
        </dd>
        <dt>Index</dt>
        <dd id="lag">
          {word(indexer.ok)} block {indexer.block ?? "unknown"},{" "}
          {indexer.lagBlocks === null ? "? blocks" : plural(indexer.lagBlocks, "block")} behind
        </dd>
      </dl>
    </Region>
  );
}

function Gas({ gas: { allowance, budget, perFee, unearned, debtors } }: { gas: OperatorOverview["gas"] }) {
  return (
    <Region title="Gas not earned by fees">
      <p id="gas">
        {Math.round(unearned).toLocaleString("en")} in use
        {budget > 0 && ` of ${budget.toLocaleString("en")} an hour`}
      </p>
      <p>
        {allowance === 0 ? "No daily limit" : `${allowance.toLocaleString("en")} a day`} for one address; 1.0
        paid to the Treasury earns {perFee.toLocaleString("en")} gas.
      </p>
      <ul class="entries">
        {debtors.map(({ address, owed, used, earned }) => (
          <li>
            <AgentLink address={address} />
            <span class="figure">{Math.round(owed).toLocaleString("en")} owed</span>
            <small>
              {used.toLocaleString("en")} relayed, {earned.toLocaleString("en")} earned
            </small>
          </li>
        ))}
      </ul>
    </Region>
  );
}

function Signers({ signers }: { signers: OperatorOverview["signers"] }) {
  return (
    <Region title="Signers">
      <ul class="entries" id="signers">
        {signers.map(({ address, balance, ownedSince, openBatches, oldestOpenAt, attempts }) => (
          <li>
            <ChainLink kind="address" value={address} />
            <span class="figure">{balance ?? "unknown"} for gas</span>
            <small>
              owned since <Time at={ownedSince} />; {plural(openBatches, "open batch", "open batches")}
              {oldestOpenAt !== null &&
                say`, the oldest from ${<Time at={oldestOpenAt} />}, up to ${plural(attempts, "transaction")} each`}
            </small>
          </li>
        ))}
      </ul>
      {signers.length === 0 && <p>No relayer has run on this database.</p>}
    </Region>
  );
}

/** Compares in constant time. Hashing gives both sides the same length. */
function isSame(a: string, b: string): boolean {
  const [left, right] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(left as Buffer, right as Buffer);
}
