/** Ends a process with SIGKILL at a given write to the database, or at a given call to the node. */
import { until } from "../../../tools/local/processes.js";
import type { Cluster } from "./cluster.js";
import type { GateName } from "./gate.js";
import { RESET, type RpcCall } from "./rpc-proxy.js";
import type { ServiceProcess } from "./service-process.js";

/** Starts the activity during the fault once `prepare` is done, and resolves with its end. */
export type Start = (prepare: () => Promise<void>) => Promise<{ done: Promise<unknown> }>;

/** Kills the process that reaches the gate: before its write, which then never arrives, or after it. */
export async function killAt(
  cluster: Cluster,
  { gate, when, start }: { gate: GateName; when: "before" | "after"; start: Start },
): Promise<ServiceProcess> {
  const { done } = await start(() => cluster.gates.close(gate));
  const writer = await cluster.gates.reached(gate);
  const victim = cluster.processAt(writer.port);
  await victim.kill();
  if (when === "before") await cluster.gates.drop(writer);
  await cluster.gates.open(gate);
  await done;
  return victim;
}

/** Kills the first relayer that makes such a call: before the node receives the call, or when its response is there. */
export async function killOnCall(
  cluster: Cluster,
  { isAwaited, when, start }: { isAwaited(call: RpcCall): boolean; when: "before" | "after"; start: Start },
): Promise<ServiceProcess> {
  let victim: ServiceProcess | undefined;
  let killed: Promise<void> | undefined;
  const lieInWait = async (): Promise<void> => {
    for (const relayer of cluster.relayers) {
      relayer.rpc.setRule(async (call, forward) => {
        if (!isAwaited(call) || (victim !== undefined && victim !== relayer)) return forward();
        if (when === "after") {
          const answer = await forward();
          if (!("result" in answer) || answer.result === null) return answer;
          if (victim !== undefined && victim !== relayer) return answer;
        }
        victim ??= relayer;
        killed ??= relayer.kill();
        return RESET;
      });
    }
  };
  const { done } = await start(lieInWait);
  await until("a relayer is killed", async () => killed !== undefined, { timeoutMs: 60_000 });
  await killed;
  cluster.setRules(null);
  await done;
  if (victim === undefined) throw new Error("no relayer was killed");
  return victim;
}
