/**
 * Ends the supervisor's children when the supervisor is gone, however it went (kill -9 included).
 * Reads `+pid` and `-pid` lines on stdin; the end of stdin is the supervisor's death. Plain JavaScript: it must start
 * at once and depend on nothing.
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

// Postgres takes SIGINT as "stop now, cleanly"; SIGTERM would wait for its clients.
signalAll("SIGINT");
const deadline = Date.now() + GRACE_MS;
while (signalAll(0) > 0 && Date.now() < deadline) await delay(50);
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
