/** Everything that deploy/ starts exists, has settings that the service understands, and holds no secret. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { NETWORKS } from "../../../src/chain/deployment.js";
import { parseConfig } from "../../../src/config.js";
import { ROOT } from "../../../src/root.js";
import type { Json } from "../../support/contracts.js";

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const compose: { services: Record<string, Json> } = parse(read("deploy/compose.yaml"), { merge: true });
const manifests = parseAllDocuments(read("deploy/kubernetes.yaml")).map((document): Json => {
  expect(document.errors).toEqual([]);
  return document.toJS();
});
const deployments = manifests.filter(({ kind }) => kind === "Deployment");
const pods: Json[] = manifests.flatMap(({ spec }) => spec.template?.spec ?? []);
const containers: Json[] = pods.flatMap((pod) => pod.containers);
/** The names of a container's variables. */
const namesIn = ({ env = [] }: Json): string[] => env.map(({ name }: Json) => name);
const envFiles = Object.keys(NETWORKS).map((name) => `deploy/${name}.env`);

/** Those of the indexer, the signers' locks, and a few for operators. */
const OTHER_CONNECTIONS = 40;

/** The environment variables that the service or the indexer reads. */
const known = new Set(
  [...read("src/config.ts").matchAll(/\bread\(\s*"([A-Z0-9_]+)"/g)].map(([, name]) => name),
);

const REQUIRED = {
  DATABASE_URL: "postgres://somewhere/db",
  RPC_URL: "https://node.example",
  DEPLOYMENT: "deployment.json",
  MASTER_KEY: "11".repeat(32),
};

const settingsOf = (path: string): [string, string][] =>
  read(path)
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);

describe("commands", () => {
  const scripts = (JSON.parse(read("package.json")) as { scripts: Record<string, string> }).scripts;
  const programIn = (line = "") => /^node tools\/build\.mjs && exec node (\S+)$/.exec(line)?.[1];
  const started = Object.values(scripts).map(programIn);
  const commands = [
    ...containers.map(({ command }) => command),
    ...Object.entries(compose.services).flatMap(([name, { command }]) =>
      command === undefined || name === "postgres" ? [] : [command],
    ),
    JSON.parse(/^CMD (.*)$/m.exec(read("deploy/Dockerfile"))?.[1] ?? "[]") as string[],
  ];

  test.each(commands)("%s %s is run by a script of package.json", (...command) => {
    expect(command.slice(0, -1)).toEqual(["node"]);
    expect(started).toContain(command.at(-1));
  });

  test("those of docs/deployment.md are scripts that run these programs", () => {
    const rows = read("docs/deployment.md").matchAll(/^\| (\w+) \| `npm run (\w+)`(?:, `ROLES=(\w+)`)? \|/gm);
    expect(
      Array.from(rows, ([, name, script = "", role]) => [name, programIn(scripts[script]), role]),
    ).toEqual([
      ...["api", "relayer", "worker"].map((role) => [role, "dist/service/serve.mjs", role]),
      ...["indexer", "migrate"].map((name) => [name, `dist/service/${name}.mjs`, undefined]),
    ]);
  });

  test("every file that the image copies exists", () => {
    const sources = [...read("deploy/Dockerfile").matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(
      ([, list = ""]) => list.split(" "),
    );
    const ignored = read("deploy/Dockerfile.dockerignore").split("\n");
    expect(sources).toContain("src");
    for (const source of sources) {
      expect(existsSync(join(ROOT, source)), source).toBe(true);
      expect(
        ignored.some((line) => `${source}/`.startsWith(`${line.slice(1)}/`)),
        source,
      ).toBe(true);
    }
  });
});

describe("settings", () => {
  test("a changed one restarts the same processes on Compose and Kubernetes, and never the indexer", () => {
    const [, onCompose] =
      /^docker compose -f deploy\/compose\.yaml up (.*)$/m.exec(read("docs/runbook.md")) ?? [];
    const [, onKubernetes] = /^kubectl rollout restart deployment (.*)$/m.exec(read("docs/runbook.md")) ?? [];
    expect(onCompose).toBe("--detach --no-deps api relayer worker");
    expect(onKubernetes?.replaceAll("working-contracts-", "")).toBe("api relayer worker");
  });

  test.each(envFiles)("%s is a valid configuration of the service, apart from the secrets", (path) => {
    const settings = settingsOf(path);
    for (const [name] of settings) expect(known, path).toContain(name);
    const BASE_URL = "https://contracts.example";
    const config = parseConfig({
      ...REQUIRED,
      DEPLOYMENT: undefined,
      ...Object.fromEntries(settings),
      BASE_URL,
    });
    expect(config.environment).toBe(path.includes("sepolia") ? "test" : "live");
    expect(config.webhooksToPrivateAddresses).toBe(false);
    expect(config.confirmations).toBeGreaterThan(1);
  });

  test("every variable is read by the code", () => {
    const names = [
      ...containers.flatMap(namesIn),
      ...Object.entries(compose.services)
        .filter(([name]) => name !== "postgres")
        .flatMap(([, { environment = {} }]) => Object.keys(environment)),
    ];
    expect(names).toContain("RELAYER_PRIVATE_KEYS");
    for (const name of names) expect(known).toContain(name);
  });

  test("Compose passes any other setting on, and earlier master keys, without which old references are lost", () => {
    for (const [name, service] of Object.entries(compose.services)) {
      if (name === "postgres") continue;
      expect(service.env_file, name).toContainEqual({ path: "settings.env", required: false });
      if (!["indexer", "migrate"].includes(name)) {
        expect(service.environment, name).toHaveProperty("MASTER_KEYS_OLD");
      }
    }
    // What Compose itself inserts replaces the value of an env file, even with nothing.
    const [, inserted] =
      /cat > deploy\/\.env <<'END'\n([\s\S]*?)\nEND/.exec(read("docs/deployment.md")) ?? [];
    for (const [, name] of read("deploy/compose.yaml").matchAll(/\$\{(\w+)/g))
      expect(inserted).toContain(name);
    expect(read(".gitignore").split("\n")).toContain("deploy/settings.env");
    expect(parseConfig({ ...REQUIRED, MASTER_KEYS_OLD: "" }).masterKeysOld).toEqual([]);
  });

  test("Compose's Postgres has room for every process's connections", () => {
    const [, accepted] =
      /max_connections=(\d+)/.exec(compose.services.postgres?.command?.join(" ") ?? "") ?? [];
    const { api, read: lists, work } = parseConfig(REQUIRED).databaseConnections;
    const processes = Object.values(compose.services).flatMap(({ environment = {}, deploy }) =>
      "ROLES" in environment ? [deploy?.replicas ?? 1] : [],
    );
    const count = processes.reduce((sum, replicas) => sum + replicas, 0);
    expect(count).toBe(4);
    const needed = count * (api + lists + work + 1) + OTHER_CONNECTIONS;
    expect(Number(accepted)).toBeGreaterThanOrEqual(needed);
  });

  test("secrets come from outside", () => {
    const secret = /KEY|PASSWORD|DATABASE_URL|RPC_URL/;
    for (const [service, { environment = {} }] of Object.entries(compose.services)) {
      for (const [name, value] of Object.entries(environment)) {
        if (secret.test(name)) expect(value, `${service}: ${name}`).toMatch(/\$\{[A-Z_]+:[?-][^}]*\}/);
      }
    }
    for (const { name: container, env = [] } of containers) {
      for (const { name, value, valueFrom } of env) {
        if (!secret.test(name)) continue;
        expect(value, `${container}: ${name}`).toBeUndefined();
        expect(valueFrom, `${container}: ${name}`).toHaveProperty("secretKeyRef");
      }
    }
    for (const path of [...envFiles, "deploy/compose.yaml", "deploy/kubernetes.yaml", "deploy/Dockerfile"]) {
      expect(read(path), path).not.toMatch(/[0-9a-f]{32}/i);
    }
    for (const path of envFiles) {
      for (const [name] of settingsOf(path)) expect(name, path).not.toMatch(secret);
    }
  });

  test("only the relayer has the signers' keys", () => {
    const holders = [
      ...containers.filter((container) => namesIn(container).includes("RELAYER_PRIVATE_KEYS")),
      ...Object.entries(compose.services)
        .filter(([, { environment = {} }]) => "RELAYER_PRIVATE_KEYS" in environment)
        .map(([name]) => ({ name })),
    ];
    expect(holders.map(({ name }) => name)).toEqual(["relayer", "relayer"]);
  });

  test("the indexer gets no key, and the migration only the database", () => {
    const { indexer, migrate } = compose.services;
    const needed = ["DATABASE_URL", "RPC_URL", "WS_RPC_URL"];
    expect(Object.keys(indexer?.environment ?? {})).toEqual(needed);
    expect(Object.keys(migrate?.environment ?? {})).toEqual(["DATABASE_URL"]);
    const settings = { configMapRef: { name: "working-contracts-settings" } };
    for (const [name, envFrom, names] of [
      ["indexer", [settings], [...needed, "PONDER_RPC_URL", "PONDER_WS_RPC_URL"]],
      ["migrate", undefined, ["DATABASE_URL"]],
    ] as const) {
      const container = containers.find((each) => each.name === name);
      expect(container?.envFrom).toEqual(envFrom);
      expect(namesIn(container ?? {})).toEqual(names);
    }
  });
});

describe("the layout", () => {
  const roleOf = (env: Record<string, string | undefined>, command: string[] | undefined): string =>
    command?.at(-1) === "dist/service/indexer.mjs" ? "indexer" : (env.ROLES ?? "");

  test("runs api, relayer, worker and indexer as separate processes, and the API twice", () => {
    const inCompose = Object.entries(compose.services).flatMap(([name, { environment = {}, command }]) =>
      ["postgres", "migrate"].includes(name) ? [] : [roleOf(environment, command)],
    );
    const inKubernetes = deployments.flatMap((deployment) =>
      deployment.spec.template.spec.containers.map(({ env = [], command }: Json) =>
        roleOf(Object.fromEntries(env.map(({ name, value }: Json) => [name, value])), command),
      ),
    );
    for (const roles of [inCompose, inKubernetes]) {
      expect(roles.toSorted()).toEqual(["api", "indexer", "relayer", "worker"]);
    }
    expect(compose.services.api?.deploy?.replicas).toBe(2);
    expect(deployments.find(({ metadata }) => metadata.name.endsWith("-api"))?.spec.replicas).toBe(2);
  });

  test("checks every process's health, and kills none before it can stop", () => {
    const drain = Number(/DRAIN_MS = ([\d_]+)/.exec(read("src/main.ts"))?.[1]?.replaceAll("_", "")) / 1000;
    expect(drain).toBeGreaterThan(0);
    for (const [name, service] of Object.entries(compose.services)) {
      if (name === "migrate") continue;
      expect(service.healthcheck.test?.join(" "), name).toMatch(/\/(health|ready)|pg_isready/);
      expect(Number.parseInt(service.stop_grace_period, 10), name).toBeGreaterThan(2 * drain);
      expect(service.read_only ?? name === "postgres", name).toBe(true);
    }
    for (const { terminationGracePeriodSeconds, containers: own } of deployments.map(
      ({ spec }) => spec.template.spec,
    )) {
      for (const { name, startupProbe, livenessProbe, readinessProbe, lifecycle } of own) {
        expect([startupProbe, livenessProbe, readinessProbe].map((probe) => probe?.httpGet.path)).toEqual([
          "/health",
          "/health",
          // An API serves what it can, whatever else is down, and a rollout of the others waits for no index.
          name === "indexer" ? "/ready" : "/health",
        ]);
        const pause = Number(lifecycle?.preStop.exec.command[1] ?? 0);
        expect(terminationGracePeriodSeconds).toBeGreaterThan(pause + 2 * drain);
      }
    }
  });

  test("runs nothing as root or on a writable file system", () => {
    expect(pods.length).toBe(5);
    for (const pod of pods) {
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true });
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
      }
    }
  });

  test("gives every container the folder that DATABASE_URL can name a CA in", () => {
    const configMap = { name: "working-contracts-deployment" };
    const mount = { name: "deployment", mountPath: "/config", readOnly: true };
    for (const pod of pods) {
      expect(pod.volumes).toContainEqual({ name: mount.name, configMap });
      for (const { name, volumeMounts } of pod.containers) expect(volumeMounts, name).toContainEqual(mount);
    }
  });

  test("selects pods that exist", () => {
    const labels = deployments.map(({ spec }) => spec.template?.metadata.labels);
    for (const { kind, metadata, spec } of manifests) {
      if (kind === "Job") continue;
      expect(labels, `${kind} ${metadata.name}`).toContainEqual(
        kind === "Service" ? spec.selector : spec.selector.matchLabels,
      );
    }
    const budgets = manifests.filter(({ kind }) => kind === "PodDisruptionBudget");
    expect(budgets.map(({ metadata }) => metadata.name)).toEqual(
      ["api", "relayer", "worker"].map((name) => `working-contracts-${name}`),
    );
  });
});

test("packages, images and changelogs name the same version", () => {
  const workspaces = ["packages/protocol/", "packages/client/", "packages/cli/", "tools/"];
  const [version, ...others] = ["", ...workspaces].flatMap((path) => {
    const { version, dependencies } = JSON.parse(read(`${path}package.json`));
    const own = Object.entries(dependencies).filter(([name]) => name.startsWith("@working-contracts/"));
    return [version, ...own.map(([, wanted]) => wanted)];
  });
  const images = containers.map(({ image }) => image.split(":").at(-1));
  expect(new Set([...others, ...images])).toEqual(new Set([version]));
  for (const path of ["CHANGELOG.md", "packages/client/CHANGELOG.md", "packages/cli/CHANGELOG.md"])
    expect(read(path), path).toContain(`\n## ${version}`);
});
