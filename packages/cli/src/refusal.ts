/** An error as data; what is undefined is left out of JSON. */
export interface Refusal {
  /** The service's code, else the name of the error. */
  code: string;
  message: string;
  details: unknown;
  hint: string | undefined;
}

export function refusalOf(error: Error): Refusal {
  const { name, message, code, details, hint } = error as Error & Partial<Refusal>;
  return { code: code ?? name, message, details, hint };
}
