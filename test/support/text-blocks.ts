/** The fenced code blocks of a Markdown text in one language, in order; `js no-run` are those in JavaScript that no test runs. */
export function codeBlocks(markdown: string, language: string): string[] {
  return [...markdown.matchAll(/^```([\w -]+)\n([\s\S]*?)^```$/gm)]
    .filter(([, name]) => name === language)
    .map(([, , code]) => code as string);
}
