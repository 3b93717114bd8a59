/** Payments of this code and of the code before it was made lighter; each is run by its own `npm start`. */
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "viem";
import { readDeployment } from "../../src/chain/deployment.js";
import { ROOT } from "../../src/root.js";
import { newFolder, startOwnPostgres } from "../../test/support/network.js";
import { createSandbox, launchNetwork, writtenAddresses } from "../demo/network.js";
import { textOf } from "../local/processes.js";
import { childrenOf, cpuOf, minerOf, newAgents, testClientOf, UNREACHED_LIMITS } from "./bed.js";
import { describeLoad, type Load, perSuccess, report, runLoad } from "./load.js";
import { createContract } from "./write-path.js";

/** The last commit of the code that payments are compared with, and its `npm start`. */
const FORMER = { commit: "dff6b975912f0f59c98cf7f16876106675a27eaa", entry: "scripts/start.mjs" };
const PAYERS = 128;
const FUNDS = "10000";
/** The first one compiles the code; the last one counts. */
const ROUNDS = 3;

export interface FormerResult {
  code: "former" | "this";
  load: Load;
  /** Processor time per settled payment, quotes included, in ms by process. */
  cpu: Record<string, number>;
}

/** Measures both on 1 s blocks, one after the other. Needs the history of the repository. */
export async function measureFormer(seconds: number): Promise<FormerResult[]> {
  const dir = newFolder("bench-former-");
  try {
    const clone = join(dir, "clone");
    execFileSync("git", ["clone", "--quiet", ROOT, clone]);
    execFileSync("git", ["checkout", "--quiet", FORMER.commit], { cwd: clone });
    return [
      await measure("former", join(dir, "former"), { root: clone, entry: FORMER.entry, seconds }),
      await measure("this", join(dir, "this"), { root: ROOT, entry: "tools/start.mjs", seconds }),
    ];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measure(
  code: FormerResult["code"],
  dir: string,
  at: { root: string; entry: string; seconds: number },
): Promise<FormerResult> {
  const postgres = await startOwnPostgres();
  const env = { ...UNREACHED_LIMITS, LOG_LEVEL: "warn", DATABASE_URL: postgres.url };
  const running = await launchNetwork(dir, at.root, { entry: at.entry, env });
  const cpuByKind = (): Record<string, number> => {
    const sums: Record<string, number> = { service: 0, indexer: 0, chain: 0, postgres: 0 };
    for (const pids = [running.pid, postgres.pid() ?? 0]; pids.length > 0; ) {
      const pid = pids.pop() as number;
      const kind = kindOf(pid);
      sums[kind] = (sums[kind] ?? 0) + cpuOf(pid);
      pids.push(...childrenOf(pid));
    }
    return sums;
  };
  try {
    const { baseUrl: url = "", rpcUrl = "", deploymentPath = "" } = writtenAddresses(dir);
    const deployment = readDeployment(deploymentPath);
    const mine = minerOf(testClientOf(rpcUrl));
    await mine("automine");
    const fund = (address: Address) => createSandbox(url).give({ address, usd: FUNDS });
    const agents = await newAgents({ url, chainId: deployment.chainId, fund }, PAYERS);
    await mine("1 s blocks");
    const target = { service: { url }, network: { deployment } };
    let result: FormerResult | undefined;
    for (let i = 0; i < ROUNDS; i++) {
      const before = cpuByKind();
      const load = await runLoad({ concurrency: PAYERS, seconds: at.seconds }, (payer) =>
        createContract(target, agents[payer] as (typeof agents)[number]),
      );
      result = { code, load, cpu: perSuccess(load, before, cpuByKind()) };
      report(`${code} code: ${describeLoad(load)}`);
    }
    return result as FormerResult;
  } finally {
    await running.stop();
    await postgres.stop();
  }
}

/** By its command line; a process that has ended counts as the service's, with no time. */
function kindOf(pid: number): string {
  const command = textOf(`/proc/${pid}/cmdline`) ?? "";
  if (command.includes("postgres")) return "postgres";
  if (command.includes("anvil")) return "chain";
  return command.includes("ponder") ? "indexer" : "service";
}
