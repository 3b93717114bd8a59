/** An error as data. JSON omits undefined fields. */
export interface Refusal {
  /** The service's code, or the name of the error if it has none. */
  code: string;
  message: string;
  details: unknown;
  hint: string | undefined;
}

export function refusalOf(error: Error): Refusal {
  const { name, message, code, details, hint } = error as Error & Partial<Refusal>;
  return { code: code ?? name, message, details, hint };
}
