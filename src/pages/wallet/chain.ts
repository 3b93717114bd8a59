/** The wallet's network: it signs payments only for the one that is selected in it. */
import type { Eip1193Provider } from "@working-contracts/client/index";
import { tell } from "./dialogs.js";

export const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);

interface Network {
  chainName: string;
  rpcUrls: string[];
}

/** The sandbox's node, on the port that it has unless that is in use. */
const SANDBOX: Network = { chainName: "Working Contracts sandbox", rpcUrls: ["http://127.0.0.1:8545"] };
/** Networks that a wallet can be taught, with a public node of each. */
const NETWORKS: Record<number, Network> = {
  8453: { chainName: "Base", rpcUrls: ["https://mainnet.base.org"] },
  84532: { chainName: "Base Sepolia", rpcUrls: ["https://sepolia.base.org"] },
};
const nativeCurrency = { name: "Ether", symbol: "ETH", decimals: 18 };
/** EIP-1193: the person declined. */
const DECLINED = 4001;

/** Has the wallet select the chain (EIP-3326), and add it first if it must (EIP-3085). Throws if another one stays. */
export async function selectChain(provider: Eip1193Provider, id: number): Promise<void> {
  const isSelected = async () => Number(await provider.request({ method: "eth_chainId" })) === id;
  if (await isSelected()) return;
  const network = isLocal ? SANDBOX : NETWORKS[id];
  const name = network === undefined ? `chain ${id}` : `${network.chainName} (chain ${id})`;
  const chainId = `0x${id.toString(16)}`;
  const select = () => provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  tell(`Switch your wallet to ${name}`);
  try {
    await select().catch(async (error) => {
      // Not every wallet says with code 4902 that it does not know the chain.
      if (error.code === DECLINED || network === undefined) throw error;
      const added = { chainId, ...network, nativeCurrency };
      await provider.request({ method: "wallet_addEthereumChain", params: [added] });
      await select();
    });
  } catch (error) {
    throw new Error(`your wallet is on another network. Switch it to ${name} (${(error as Error).message})`);
  }
  if (!(await isSelected())) throw new Error(`your wallet is still on another network. Switch it to ${name}`);
}
