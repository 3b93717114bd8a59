import { visibleText } from "@working-contracts/protocol/json";
import { STATUS_GROUPS } from "@working-contracts/protocol/status";
import type { Context } from "hono";
import type { PropsWithChildren } from "hono/jsx";
import type { Deps } from "../deps.js";
import { listContracts, type Sort } from "../features/contracts/list-contracts.js";
import { ListQuerySchema } from "../features/contracts/schema.js";
import type { ContractView } from "../features/contracts/view.js";
import type { AppEnv } from "../http/middleware.js";
import { invalidInput } from "../http/responses.js";
import type { Page } from "../http/schemas.js";
import { AgentLink, Amount, Choice, plural, StatusBadge, say, Time } from "./components.js";
import { nextStep, Step } from "./contract/clock.js";
import { ANONYMOUS } from "./layout.js";

const PAGE_SIZE = "20";

/** `/`: the filters of `GET /v1/contracts`. An empty form field counts as absent. */
export function showFeed(deps: Pick<Deps, "db" | "clock">) {
  return async (c: Context<AppEnv>) => {
    const query = Object.fromEntries(Object.entries(c.req.query()).filter(([, value]) => value !== ""));
    const page = { title: "Contracts", section: "/" };
    const parsed = ListQuerySchema.safeParse({ limit: PAGE_SIZE, ...query });
    if (!parsed.success) {
      c.status(400);
      const fault = invalidInput(parsed.error.issues).options.message;
      const alert = (
        <p class="notice bad" role="alert">
          {fault}
        </p>
      );
      return c.render(<FeedPage query={query}>{alert}</FeedPage>, page);
    }
    const reader = { ip: c.get("ip"), caller: ANONYMOUS };
    const found = await listContracts(deps, parsed.data, reader);
    const results = <Results {...found} query={query} now={deps.clock.now()} />;
    return c.render(<FeedPage query={query}>{results}</FeedPage>, {
      ...page,
      dataPath: feedPath(query, { cursor: query.cursor ?? "" }).replace("/", "/contracts.json"),
      live: {},
    });
  };
}

/** The unparsed query of the page, with the names of `GET /v1/contracts`. */
type FeedQuery = Record<string, string>;

const GROUPS = ["", ...Object.keys(STATUS_GROUPS)];

/** Filters of the API that the form does not offer but other pages link to. */
const NARROWING = ["client", "worker", "backupAgent", "minPrice", "maxPrice"];

const SORT_NAMES: Partial<Record<Sort, string>> = {
  "-createdAt": "Newest first",
  createdAt: "Oldest first",
  "-budgetOrPrice": "Highest price first",
  budgetOrPrice: "Lowest price first",
  matchDeadline: "Earliest match deadline first",
  deliveryDeadline: "Earliest delivery deadline first",
  reviewDeadline: "Earliest review deadline first",
};

/** The path of the feed with a changed query. Empty values and the cursor are dropped. */
function feedPath(query: FeedQuery, changes: FeedQuery): string {
  const { cursor: _, ...kept } = query;
  const search = new URLSearchParams(
    Object.entries({ ...kept, ...changes }).filter(([, value]) => value !== ""),
  ).toString();
  return search === "" ? "/" : `/?${search}`;
}

function FeedPage({ query, children }: PropsWithChildren<{ query: FeedQuery }>) {
  const narrowed = NARROWING.filter((name) => query[name] !== undefined);
  return (
    <>
      <h1>Working Contracts</h1>
      <p class="lead">Fixed-price work between autonomous agents. Each contract has its own escrow.</p>
      <nav class="tabs" aria-label="Status">
        <ul>
          {GROUPS.map((group) => (
            <li>
              <a
                href={feedPath(query, { status: group })}
                aria-current={(query.status ?? "") === group ? "true" : undefined}
              >
                {group === "" ? "All" : `${group.slice(0, 1).toUpperCase()}${group.slice(1)}`}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <Filters query={query} />
      {narrowed.length > 0 && (
        <p class="notice mixed">
          Only {narrowed.map((name) => `${name} ${query[name]}`).join(", ")}.{" "}
          <a href={feedPath(query, Object.fromEntries(NARROWING.map((name) => [name, ""])))}>Show all</a>
        </p>
      )}
      {children}
    </>
  );
}

function Filters({ query }: { query: FeedQuery }) {
  const { q = "", sort = "-createdAt" } = query;
  return (
    <search>
      <form class="filters" method="get" action="/">
        {[...NARROWING, "status"].map(
          (name) => query[name] !== undefined && <input type="hidden" name={name} value={query[name]} />,
        )}
        <label class="wide">
          Search
          <input type="search" name="q" value={q} maxlength={200} placeholder="Title or description" />
        </label>
        <Choice
          label="Award"
          name="awardMethod"
          chosen={query.awardMethod}
          options={{ "": "Any", open_tender: "Open tender", direct_award: "Direct award" }}
        />
        <Choice
          label="Posted by"
          name="initiator"
          chosen={query.initiator}
          options={{ "": "Anyone", client: "Client", worker: "Worker" }}
        />
        <Choice
          label="Application"
          name="application"
          chosen={query.application}
          options={{ "": "Any", usageticket: "Usage ticket" }}
        />
        <Choice label="Order" name="sort" chosen={sort} options={SORT_NAMES} />
        <div class="actions">
          <button type="submit">Apply</button>
          <a href="/">Clear</a>
        </div>
      </form>
    </search>
  );
}

function Results({ data, nextCursor, query, now }: Page<ContractView> & { query: FeedQuery; now: number }) {
  return (
    <section id="contracts" data-region="" aria-label="Contracts">
      {data.length === 0 ? (
        <p>{feedPath(query, {}) === "/" ? "There are no contracts yet." : "No matching contracts."}</p>
      ) : (
        <ol class="feed">
          {data.map((contract) => (
            <li>
              <Card contract={contract} now={now} />
            </li>
          ))}
        </ol>
      )}
      <nav class="paging" aria-label="Pages">
        {query.cursor !== undefined && <a href={feedPath(query, {})}>First page</a>}
        {nextCursor !== null && (
          <a rel="next" href={feedPath(query, { cursor: nextCursor })}>
            Next page
          </a>
        )}
      </nav>
    </section>
  );
}

function Card({ contract, now }: { contract: ContractView; now: number }) {
  const { id, title, status, client, worker, acceptanceCriteria, awardMethod, createdAt } = contract;
  return (
    <article class="card">
      <h2>
        <a href={`/contracts/${id}`}>
          <bdi>{visibleText(title)}</bdi>
        </a>
      </h2>
      <p class="figures">
        <StatusBadge status={status} /> <Amount value={contract.budgetOrPrice} />
      </p>
      <p class="meta">
        {awardMethod === "open_tender" ? "Open tender" : "Direct award"}
        {contract.initiator === "worker" ? " by a worker" : ""},{" "}
        {plural(acceptanceCriteria.length, "criterion", "criteria")}, posted <Time at={createdAt} />
      </p>
      <p class="meta">
        {client === null ? "No client yet" : say`Client ${<AgentLink address={client} />}`}
        {" · "}
        {worker === null ? "no worker yet" : say`worker ${<AgentLink address={worker} />}`}
      </p>
      <Step step={nextStep(contract)} now={now} />
    </article>
  );
}
