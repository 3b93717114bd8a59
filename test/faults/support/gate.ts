/**
 * Stops a process at a write to the database, from outside: a trigger waits for an advisory lock that the test holds.
 * The process can then be killed, and its write dropped as if it had never been sent, or let through.
 */
import pg from "pg";
import { until } from "../../../tools/local/processes.js";

/** The gates, each with the trigger that implements it. */
const GATES = {
  /** A paid call or action is about to be stored. */
  operation_insert: "before insert on app.operation for each row",
  /** A batch is signed and about to be stored. */
  batch_insert: "before insert on app.batch for each row",
  /** A receipt was read and is about to be stored. */
  batch_mined: `before update on app.batch for each row
    when (new.state in ('mined', 'final') and old.state not in ('mined', 'final'))`,
  /** Responses are about to be committed. After the update: one statement can store several, and has locked all by then. */
  answer_keep:
    "after update on app.operation for each row when (old.response is null and new.response is not null)",
  /** A complaint is about to be stored. */
  complaint_insert: "before insert on app.complaint for each row",
  /** A share of a sealed delivery is about to be stored. */
  share_insert: "before insert on app.delivery_share for each row",
} as const;
export type GateName = keyof typeof GATES;

const LOCK = 7_402_900;

/** A backend that waits at a gate, and the port from which it is connected. */
interface Writer {
  pid: number;
  port: number;
}

export async function installGates(databaseUrl: string) {
  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: databaseUrl, application_name: "fault-gate" });
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  const once = async <Row extends pg.QueryResultRow>(
    text: string,
    values: unknown[] = [],
  ): Promise<Row[]> => {
    const client = await connect();
    try {
      return (await client.query<Row>(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  await once("create schema fault");
  await once(`create function fault.pause() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(${LOCK}, hashtext(tg_argv[0]));
      return new;
    end $$`);
  for (const [name, when] of Object.entries(GATES)) {
    await once(`create trigger fault_${name} ${when} execute function fault.pause('${name}')`);
  }

  const closed = new Map<GateName, pg.Client>();
  const open = async (name: GateName): Promise<void> => {
    const holder = closed.get(name);
    closed.delete(name);
    await holder?.end().catch(() => {});
  };
  /** Those who wait at the gate now. */
  const writers = (name: GateName): Promise<Writer[]> =>
    once<Writer>(
      `select a.pid, a.client_port as port from pg_locks l join pg_stat_activity a on a.pid = l.pid
       where l.locktype = 'advisory' and not l.granted and l.classid = $1
         and l.objid = (hashtext($2)::bigint & 4294967295)`,
      [LOCK, name],
    );
  return {
    /** Stops every writer that arrives from now on. */
    async close(name: GateName): Promise<void> {
      const holder = await connect();
      await holder.query("select pg_advisory_lock($1, hashtext($2))", [LOCK, name]);
      closed.set(name, holder);
    },
    writers,
    /** Resolves once a writer waits at the gate. */
    async reached(name: GateName): Promise<Writer> {
      let writer: Writer | undefined;
      const isThere = async (): Promise<boolean> => {
        [writer] = await writers(name);
        return writer !== undefined;
      };
      await until(`a writer reaches ${name}`, isThere, { timeoutMs: 60_000, intervalMs: 20 });
      return writer as Writer;
    },
    /** Ends the writer's connection, so that its write never happens. */
    async drop({ pid }: Pick<Writer, "pid">): Promise<void> {
      await once("select pg_terminate_backend($1, 5000)", [pid]);
    },
    open,
    async stop(): Promise<void> {
      for (const name of [...closed.keys()]) await open(name);
    },
  };
}
