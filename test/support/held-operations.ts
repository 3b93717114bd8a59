/** Operations that wait in the outbox until a test releases them. */
import { onTestFinished } from "vitest";
import { eventually } from "./contracts.js";
import type { World } from "./world.js";

/** No relayer takes operations of this kind on the escrow before they are released, until the test ends or `end`. */
export async function holdOperations({ query }: World, { escrow, kind }: { escrow: string; kind: string }) {
  const name = `hold_${escrow}`;
  await query(`
    create function ${name}() returns trigger language plpgsql as
      'begin new.state = ''held''; new.retry_at = now() + interval ''1 hour''; return new; end';
    create trigger ${name} before insert on app.operation for each row
      when (new.escrow = '${escrow}' and new.kind = '${kind}') execute function ${name}()`);
  const end = async () => void (await query(`drop function if exists ${name} cascade`));
  onTestFinished(end);
  const held = "escrow = $1 and kind = $2 and state = 'held' and retry_at is not null";
  const of = [escrow, kind];
  return {
    arrived: () =>
      eventually(async () => (await query(`select 1 from app.operation where ${held}`, of)).length, 1),
    release: () => query(`update app.operation set retry_at = null where ${held}`, of),
    end,
  };
}
