/** What a profile's text may hold (docs/rules.md 54); pure. */

/**
 * What a reader does not see: control, format (zero-width, bidi) and line separator characters, everything that
 * Unicode calls ignorable (fillers, variation selectors, tags), and the blank Braille pattern.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** NFC without invisible characters and outer blanks; null where nothing is left. */
export function cleanText(text: string): string | null {
  // Stripping can bring a letter and its accent together: composed again, so that equal names are equal texts.
  const clean = text.normalize("NFC").replace(INVISIBLE, "").normalize("NFC").trim();
  return clean === "" ? null : clean;
}

/** Whether the text could pass for an address: `0x` in any letter case or compatible form, such as full width. */
export function resemblesAddress(text: string): boolean {
  return text.normalize("NFKC").replace(INVISIBLE, "").toLowerCase().includes("0x");
}

/** Length in code points. */
export function lengthOf(text: string): number {
  return [...text].length;
}
