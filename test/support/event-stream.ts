/** A minimal reader of server-sent events. It keeps every message since it was opened. */

export interface Message {
  id: string;
  event: string;
  data: { id: string; type: string; contractId: string; data: Record<string, unknown> };
}

export interface EventStreamReader {
  status: number;
  headers: Headers;
  messages: Message[];
  /** The id that a reconnecting reader would send, heartbeats included. */
  lastEventId(): string;
  /** The number of comments, which are not messages. */
  comments(): number;
  ended: Promise<void>;
  close(): void;
}

export async function openEventStream(
  url: string,
  { apiKey, lastEventId }: { apiKey: string; lastEventId?: string },
): Promise<EventStreamReader> {
  const closing = new AbortController();
  const response = await fetch(url, {
    headers: {
      authorization: `Bearer ${apiKey}`,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
    },
    signal: closing.signal,
  });
  const messages: Message[] = [];
  let last = "";
  let comments = 0;
  const take = (block: string): void => {
    const fields = new Map(
      block.split("\n").map((line): [string, string] => {
        const colon = line.indexOf(": ");
        return [line.slice(0, colon), line.slice(colon + 2)];
      }),
    );
    last = fields.get("id") ?? last;
    const data = fields.get("data");
    if (data === undefined) comments += 1;
    else messages.push({ id: last, event: fields.get("event") ?? "message", data: JSON.parse(data) });
  };
  const read = async (): Promise<void> => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) take(block);
    }
  };
  const ended = response.ok ? read().catch(() => undefined) : Promise.resolve();
  return {
    status: response.status,
    headers: response.headers,
    messages,
    lastEventId: () => last,
    comments: () => comments,
    ended,
    close: () => closing.abort(),
  };
}
