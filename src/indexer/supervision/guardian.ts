/** The process that ends this one's children once it is gone. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface Guardian {
  readonly pid: number;
  watch(pid: number): void;
  forget(pid: number): void;
  /** Once it is being stopped, no one would end a new child. */
  readonly isStopping: boolean;
  /** Has the guardian end all remaining children, and resolves once it has exited itself. */
  stop(): Promise<void>;
}

export function startGuardian(): Guardian {
  const path = fileURLToPath(new URL("./guardian.mjs", import.meta.url));
  // A separate session: Ctrl-C in the terminal must reach only the supervisor, not the guardian or the children.
  const child = spawn(process.execPath, [path], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  const stdin = child.stdin;
  stdin.on("error", () => {});
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let isStopping = false;
  return {
    pid: child.pid ?? 0,
    get isStopping() {
      return isStopping;
    },
    watch: (pid) => stdin.write(`+${pid}\n`),
    forget: (pid) => stdin.write(`-${pid}\n`),
    async stop() {
      isStopping = true;
      stdin.end();
      await exited;
    },
  };
}
