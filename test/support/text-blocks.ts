/** The fenced code blocks of a Markdown text in one language, in order. `js part` are parts of programs. */
export function codeBlocks(markdown: string, language: string): string[] {
  return [...markdown.matchAll(/^ *```([\w -]+)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code as string);
}
