/** The wallet's network: it signs payments only for the one that is selected in it. */
import type { Eip1193Provider, Network } from "@working-contracts/client/index";
import { tell } from "./dialogs.js";

const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
/** EIP-1193: the person declined. */
const DECLINED = 4001;

/**
 * Has the wallet select the chain (EIP-3326), and if the service names a `node`, add it first if it must (EIP-3085). Throws
 * if another one stays.
 */
export async function selectChain(
  provider: Eip1193Provider,
  { chainId: id, factory }: Pick<Network, "chainId" | "factory">,
  node: string | undefined,
): Promise<void> {
  // A sandbox has the id of a public chain, on which its contracts do not exist.
  const isSelected = async (): Promise<boolean> =>
    Number(await provider.request({ method: "eth_chainId" })) === id &&
    (await provider.request({ method: "eth_getCode", params: [factory, "latest"] }).catch(() => "0x")) !==
      "0x";
  if (await isSelected()) return;
  const name = node === undefined ? `chain ${id}` : `chain ${id} at the node ${node}`;
  const chainId = `0x${id.toString(16)}`;
  const select = () => provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  tell(`Switch your wallet to ${name}`);
  try {
    await select().catch((error) => {
      // Not every wallet says with code 4902 that it does not know the chain.
      if (error.code === DECLINED || node === undefined) throw error;
    });
    if (node !== undefined && !(await isSelected())) {
      const chainName = `${location.hostname}, chain ${id}`;
      const added = { chainId, chainName, rpcUrls: [node], nativeCurrency };
      await provider.request({ method: "wallet_addEthereumChain", params: [added] });
      await select();
    }
  } catch (error) {
    throw new Error(`your wallet is on another network. Switch it to ${name} (${(error as Error).message})`);
  }
  if (!(await isSelected())) throw new Error(`your wallet is still on another network. Switch it to ${name}`);
}
