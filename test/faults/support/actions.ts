/** The unpaid actions that go through the outbox, each prepared until only its own call is left. */
import { protocolTokenAbi } from "@working-contracts/protocol/abi";
import { packOutcomes, voteCommitment } from "@working-contracts/protocol/outcomes";
import { type Address, encodeFunctionData, parseEther } from "viem";
import type { OperationKind } from "../../../src/relayer/operations.js";
import { until } from "../../../tools/local/processes.js";
import type { Agent, ApiResponse } from "../../support/agent.js";
import { ballot, DAY, laterThan, ok } from "../../support/contracts.js";
import { signedHeaders, toSign } from "../../support/signed-actions.js";
import type { Call, Payment } from "./customers.js";
import type { Scene } from "./story.js";

export interface Action extends Call {
  kind: OperationKind;
  escrow: Address | null;
}

/** The sign-in of an agent whose actions each need its own signature. */
const SIGNS_ALL = { permission: { operatorActions: "none" } };
const STAKE = 1000;
const SALT = `0x${"5a".repeat(32)}` as const;
const OUTCOMES = ["met", "not met"] as const;

const DELIVERY = { delivery: "ipfs://x" };

/** Sends the call, always the same bytes, until a response gives its outcome. */
export const send = ({ customers }: Scene, call: Call): Promise<ApiResponse<unknown>> =>
  customers.insist(() => customers.send(call));

/** Two agents that leave nothing to the operator. */
export const signingPair = async ({ customers }: Scene): Promise<[client: Agent, worker: Agent]> =>
  (await customers.join(2, SIGNS_ALL)) as [Agent, Agent];

/** A Backup Agent whose stake lets it vote on contracts that are matched from now on. */
export async function newJuror({ cluster, customers }: Scene, options = {}): Promise<Agent> {
  const [juror] = (await customers.join(1, options)) as [Agent];
  const args = [juror.address, parseEther(String(STAKE))] as const;
  const data = encodeFunctionData({ abi: protocolTokenAbi, functionName: "grant", args });
  await cluster.ownerCall({ to: cluster.deployment.protocolToken, data });
  const staked = await customers.pay(juror, "/v1/agents/me/stake", { amount: String(STAKE) });
  // The audit follows dollars only.
  customers.forget(customers.payments.find(({ agent }) => agent === juror) as Payment);
  const { stakedSince } = ok(staked as ApiResponse<unknown>) as { stakedSince: string };
  await laterThan({ now: cluster.chainTime }, stakedSince);
  return juror;
}

/** A disputed contract of the scene's first client and worker. */
export async function disputed({ customers, clients, workers }: Scene): Promise<Address> {
  const [client, worker] = [clients[0], workers[0]];
  const { id } = ok(await customers.create(client));
  ok(await customers.accept(worker, id));
  ok(await customers.act(worker, id, "delivery", DELIVERY));
  ok(await customers.pay(client, `/v1/contracts/${id}/dispute`, ""));
  return id as Address;
}

/** Each action on its own contract. Moves the time by a day, to the end of a vote. */
export async function prepareActions(scene: Scene): Promise<Action[]> {
  const { customers } = scene;
  const opening = await prepareOpening(scene);
  const [client, worker] = await signingPair(scene);
  const leaver = await newJuror(scene, SIGNS_ALL);
  const reserved = { awardMethod: "direct_award", worker: worker.address };
  const created = [{}, {}, {}, {}, reserved].map(async (changes) =>
    ok(await customers.create(client, changes)),
  );
  const [approved, delivered, withdrawn, cancelled, declined] = (
    (await Promise.all(created)) as unknown as { id: Address }[]
  ).map(({ id }) => id) as [Address, Address, Address, Address, Address];
  for (const id of [approved, delivered, withdrawn]) ok(await customers.accept(worker, id));
  const signed = async (
    action: Pick<Action, "agent" | "kind" | "escrow">,
    path: string,
    body = "",
  ): Promise<Action> => {
    const refusal = await send(scene, { ...action, path, body, headers: {} });
    return { ...action, path, body, headers: await signedHeaders(action.agent, toSign(refusal)) };
  };
  const onContract = (agent: Agent, kind: OperationKind, escrow: Address, call: string, body?: string) =>
    signed({ agent, kind, escrow }, `/v1/contracts/${escrow}/${call}`, body);
  ok(await send(scene, await onContract(worker, "deliver", approved, "delivery", JSON.stringify(DELIVERY))));
  return Promise.all([
    opening,
    onContract(client, "approve", approved, "approve"),
    onContract(worker, "deliver", delivered, "delivery", JSON.stringify(DELIVERY)),
    onContract(worker, "withdraw", withdrawn, "withdraw"),
    onContract(client, "cancel", cancelled, "cancel"),
    onContract(worker, "decline", declined, "accept", JSON.stringify({ accept: false })),
    signed({ agent: leaver, kind: "request-unstake", escrow: null }, "/v1/agents/me/unstake"),
  ]);
}

/** Until then a challenge can be issued in the past, and be expired when it is redeemed. */
async function showTimeOfChain({ apis, chainTime }: Scene["cluster"]): Promise<boolean> {
  const now = await chainTime();
  const shown = await Promise.all(apis.map(async ({ url }) => (await fetch(`${url}/v1/network`)).json()));
  return (shown as { data: { time: string } }[]).every(({ data }) => Date.parse(data.time) / 1000 >= now);
}

/** A vote that its voter alone can open, at the end of the voting window. */
async function prepareOpening(scene: Scene): Promise<Action> {
  const { cluster, customers } = scene;
  const juror = await newJuror(scene);
  const escrow = await disputed(scene);
  const path = `/v1/contracts/${escrow}/votes`;
  const { chainId } = cluster.deployment;
  const votes = packOutcomes(OUTCOMES);
  const commitment = voteCommitment({ chainId, escrow, voter: juror.address, votes, salt: SALT });
  ok(await customers.pay(juror, path, { commitment }));
  await cluster.moveTime(DAY);
  await until("the API processes have seen the new time", () => showTimeOfChain(cluster), {
    timeoutMs: 30_000,
  });
  const body = JSON.stringify({ ...ballot(...OUTCOMES), salt: SALT });
  return { agent: juror, kind: "open-vote", escrow, path: `${path}/open`, body, headers: {} };
}
