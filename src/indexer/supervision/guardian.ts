/** The process that ends this one's children once it is gone. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export type Guardian = ReturnType<typeof startGuardian>;

/** Starts it. It ends the children that it watches even if this process is killed. */
export function startGuardian() {
  const path = fileURLToPath(new URL("./guardian.mjs", import.meta.url));
  // A separate session: Ctrl-C in the terminal must reach only the supervisor, not the guardian or the children.
  const child = spawn(process.execPath, [path], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
  const stdin = child.stdin;
  stdin.on("error", () => {});
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  let isStopping = false;
  return {
    pid: child.pid ?? 0,
    /** Once it is being stopped, no one would end a new child. */
    get isStopping(): boolean {
      return isStopping;
    },
    watch: (pid: number) => stdin.write(`+${pid}\n`),
    forget: (pid: number) => stdin.write(`-${pid}\n`),
    /** Has the guardian end all remaining children, and resolves once it has exited itself. */
    async stop(): Promise<void> {
      isStopping = true;
      stdin.end();
      await exited;
    },
  };
}
