/** Requests of one signed-in address; each returns the data of the response. */
import type { Answer, Http, Request } from "./http.js";
import { type PaidCall, type Payer, sendPaid } from "./paid-call.js";

export interface Session extends Payer {
  http: Http;
  apiKey: string;
}

type Query = Record<string, string | number | undefined>;

export async function read<T>(session: Session, path: string, query: Query = {}): Promise<T> {
  return (await readWhole<{ data: T }>(session, path, query)).data;
}

/** Like {@link read}, but returns the whole body, including the fields beside `data`. */
export async function readWhole<T>(session: Session, path: string, query: Query = {}): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]));
  const answer = await session.http.send({
    ...authorized(session),
    method: "GET",
    path: given.length === 0 ? path : `${path}?${search}`,
    repeatable: true,
  });
  return answer.json as T;
}

/** An unpaid action. By default it is retried, because the service performs it once however often it is requested. */
export async function act<T>(
  session: Session,
  path: string,
  { body, repeatable = true }: { body?: unknown; repeatable?: boolean } = {},
): Promise<T> {
  const answer = await session.http.send({ ...post(session, path, body), repeatable });
  return answer.json.data as T;
}

/** A request that can cost money; see {@link sendPaid}. */
export function pay<T>(
  session: Session,
  path: string,
  {
    body,
    expect,
    open = dataOf,
  }: Pick<PaidCall<T>, "expect"> & { body?: string; open?: PaidCall<T>["open"] },
): Promise<T> {
  const request = { ...authorized(session), method: "POST" as const, path, body };
  return sendPaid(session, { request, expect, open });
}

function dataOf<T>({ json }: Answer): T {
  return json.data as T;
}

function post(session: Session, path: string, body: unknown): Omit<Request, "repeatable"> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  return { ...authorized(session), method: "POST", path, body: text };
}

function authorized({ apiKey }: Session): { headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${apiKey}` } };
}
