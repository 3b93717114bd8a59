/** Postgres notifications: one dedicated connection per process for every channel, which reconnects if it breaks. */
import pg from "pg";

const RECONNECT_DELAY_MS = 500;
const PING_INTERVAL_MS = 300;
/** See {@link Notifications.isCurrent}. */
export const NOTIFICATION_LEASE_MS = 1000;

export interface Subscriber {
  onNotification(payload: string): void;
  /** From now on no notification is missed; called on every connection. Read here what was missed before. */
  onListening?(): void;
  /** The connection broke: notifications are missed until the next {@link onListening}. */
  onLost?(): void;
}

export interface Notifications {
  /**
   * Subscribes until the returned function is called. The channel must be a Postgres identifier. Notifications during a
   * reconnect are lost, so callers must also poll, or distrust what they know.
   */
  listen(channel: string, subscriber: Subscriber): () => void;
  /** Whether every notification that was sent more than {@link NOTIFICATION_LEASE_MS} ago has arrived. */
  isCurrent(): boolean;
  stop(): Promise<void>;
}

/** Connects with the settings of `pool`; none of its connections is used. */
export function createNotifications({ pool }: { pool: pg.Pool }): Notifications {
  const subscribers = new Map<string, Set<Subscriber>>();
  let client: pg.Client | undefined;
  let reconnect: NodeJS.Timeout | undefined;
  let isStopped = false;
  let currentUntil = 0;
  let idle: Promise<unknown> = Promise.resolve();

  /** One statement at a time, as the driver wants it. */
  const run = (on: pg.Client, statement: string): Promise<unknown> => {
    const done = idle.then(() => on.query(statement));
    idle = done.catch(() => undefined);
    return done;
  };

  const connect = async (): Promise<void> => {
    const opened = new pg.Client({ ...pool.options, keepAlive: true, application_name: "notifications" });
    let isLost = false;
    const lost = (): void => {
      if (isLost) return;
      isLost = true;
      if (client === opened) {
        client = undefined;
        currentUntil = 0;
        for (const channel of subscribers.values()) for (const subscriber of channel) subscriber.onLost?.();
      }
      opened.end().catch(() => undefined);
      if (!isStopped) reconnect = setTimeout(() => void connect(), RECONNECT_DELAY_MS).unref();
    };
    opened.on("notification", ({ channel, payload }) => {
      for (const subscriber of subscribers.get(channel) ?? []) subscriber.onNotification(payload ?? "");
    });
    opened.on("error", lost);
    opened.on("end", lost);
    try {
      await opened.connect();
      if (isStopped) return void opened.end().catch(() => undefined);
      client = opened;
      for (const [channel, all] of subscribers) void subscribe(opened, channel, all);
    } catch {
      lost();
    }
  };

  /** A failed statement means a broken connection, which reports itself. */
  const subscribe = async (on: pg.Client, channel: string, added: Iterable<Subscriber>): Promise<void> => {
    const waiting = [...added];
    try {
      await run(on, `listen ${pg.escapeIdentifier(channel)}`);
    } catch {
      return;
    }
    if (client !== on) return;
    const current = subscribers.get(channel);
    for (const subscriber of waiting) if (current?.has(subscriber)) subscriber.onListening?.();
  };

  void connect();
  let isPinging = false;
  /** Postgres sends a connection's notifications before the response to its next statement. */
  const ping = setInterval(async () => {
    const pinged = client;
    if (pinged === undefined || isPinging) return;
    isPinging = true;
    const sentAt = performance.now();
    try {
      await run(pinged, "select 1");
      if (client === pinged) currentUntil = sentAt + NOTIFICATION_LEASE_MS;
    } catch {
      // The connection reports its own end.
    }
    isPinging = false;
  }, PING_INTERVAL_MS).unref();

  return {
    listen(channel, subscriber) {
      const all = subscribers.get(channel) ?? new Set();
      subscribers.set(channel, all.add(subscriber));
      if (client !== undefined) void subscribe(client, channel, [subscriber]);
      return () => void all.delete(subscriber);
    },
    isCurrent: () => performance.now() < currentUntil,
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
