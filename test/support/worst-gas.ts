import type { GasPolicy } from "../../src/relayer/gas-accounts.js";

/**
 * Gas that so many addresses can have relayed within `hours` without earning it (docs/limits.md): accounts begin empty,
 * so the first period counts twice.
 */
export function worstGas(
  { allowance, budget }: Pick<GasPolicy, "allowance" | "budget">,
  { addresses, hours }: { addresses: number; hours: number },
): number {
  return Math.min(addresses * allowance * (1 + hours / 24), budget * (1 + hours));
}
