/** JSON and texts of others as people read them. */

/** JSON without characters that change how text looks (controls, marks of direction). It parses to the same value. */
export function visibleJson(value: unknown, indent?: number): string {
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value, null, indent).replaceAll(
    /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    // A character beyond 16 bits is two units.
    (char) => char.split("").map(escaped).join(""),
  );
}

/**
 * For display alone: marks of direction could show "01" as "10". Line breaks, tabs, and the joiners that scripts and
 * emoji need stay.
 */
export function visibleText(text: string): string {
  return text.replaceAll("\r\n", "\n").replaceAll(/(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}]/gu, "�");
}
