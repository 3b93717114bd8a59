/** Listens to one Postgres channel on a dedicated connection that reconnects whenever it breaks. */
import pg from "pg";

const RECONNECT_DELAY_MS = 500;
/** Often enough that a working connection never counts as silent (client.ts). */
const PING_INTERVAL_MS = 5000;

export interface Listener {
  stop(): Promise<void>;
}

export interface ListenerOptions {
  /** Supplies the connection settings; none of its connections is used. */
  pool: pg.Pool;
  /** Must be a Postgres identifier: it becomes part of a statement. */
  channel: string;
  applicationName: string;
  onNotification(payload: string): void;
}

/** Calls `onNotification` while connected. Notifications during a reconnect are lost, so callers must also poll. */
export function listen({ pool, channel, applicationName, onNotification }: ListenerOptions): Listener {
  let client: pg.Client | undefined;
  let reconnect: NodeJS.Timeout | undefined;
  let isStopped = false;

  const connect = async (): Promise<void> => {
    const opened = new pg.Client({ ...pool.options, keepAlive: true, application_name: applicationName });
    client = opened;
    const lost = (): void => {
      if (client !== opened) return;
      client = undefined;
      opened.end().catch(() => undefined);
      if (!isStopped) reconnect = setTimeout(() => void connect(), RECONNECT_DELAY_MS).unref();
    };
    opened.on("notification", ({ payload }) => onNotification(payload ?? ""));
    opened.on("error", lost);
    opened.on("end", lost);
    try {
      await opened.connect();
      await opened.query(`listen ${pg.escapeIdentifier(channel)}`);
    } catch {
      lost();
    }
  };
  void connect();
  const ping = setInterval(
    () => void client?.query("select 1").catch(() => undefined),
    PING_INTERVAL_MS,
  ).unref();

  return {
    async stop() {
      isStopped = true;
      clearInterval(ping);
      clearTimeout(reconnect);
      const last = client;
      client = undefined;
      await last?.end().catch(() => undefined);
    },
  };
}
