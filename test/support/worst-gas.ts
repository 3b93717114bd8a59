import type { GasLimits } from "../../src/relayer/gas-accounts.js";

/**
 * Gas that so many addresses behind so many client IPs can have relayed within `hours` without earning it
 * (docs/limits.md): accounts begin empty, so the first period counts twice.
 */
export function worstGas(
  { allowance, budget }: Pick<GasLimits, "allowance" | "budget">,
  {
    addresses,
    clients,
    hours,
    challengesPerMinute,
  }: { addresses: number; clients: number; hours: number; challengesPerMinute: number },
): number {
  const signedIn = Math.min(addresses, clients * challengesPerMinute * 60 * hours);
  return Math.min(signedIn * allowance * (1 + hours / 24), budget * (1 + hours));
}
