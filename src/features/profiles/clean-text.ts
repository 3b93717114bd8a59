/** Cleans and checks a profile's text (docs/rules.md 54); pure. */

/**
 * Invisible characters: control, format (zero-width, bidi) and line separator characters, everything that
 * Unicode calls ignorable (fillers, variation selectors, tags), and the blank Braille pattern.
 */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** NFC without invisible characters and outer blanks; null if nothing is left. */
export function cleanText(text: string): string | null {
  // Stripping can join a letter and its accent: normalized again, so equal names are equal texts.
  const clean = text.normalize("NFC").replace(INVISIBLE, "").normalize("NFC").trim();
  return clean === "" ? null : clean;
}

/** Whether the text looks like an address: `0x` in any letter case or compatible form, such as full width. */
export function resemblesAddress(text: string): boolean {
  return text.normalize("NFKC").replace(INVISIBLE, "").toLowerCase().includes("0x");
}

/** Length in code points. */
export function lengthOf(text: string): number {
  return [...text].length;
}
