/**
 * Ends the supervisor's children once the supervisor is gone, even after kill -9. Reads `+pid` and `-pid` lines on
 * stdin; the end of stdin means that the supervisor has died. Plain JavaScript, so that it starts at once and needs
 * nothing.
 */
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";

const GRACE_MS = 10_000;
const pids = new Set();

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});

for await (const line of createInterface({ input: process.stdin })) {
  const pid = Number(line.slice(1));
  if (line[0] === "+") pids.add(pid);
  else pids.delete(pid);
}

// SIGINT makes Postgres shut down cleanly at once; SIGTERM would wait for its clients.
signalAll("SIGINT");
const deadline = performance.now() + GRACE_MS;
while (signalAll(0) > 0 && performance.now() < deadline) await delay(50);
signalAll("SIGKILL");

function signalAll(signal) {
  let alive = 0;
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
      alive++;
    } catch {
      pids.delete(pid);
    }
  }
  return alive;
}
