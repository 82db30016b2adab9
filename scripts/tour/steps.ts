// The blocks of commands of a page, and what each prints.

export interface Step {
  readonly line: number
  readonly commands: string
  /** Lines that have to be printed in this order; `…` stands for anything. */
  readonly expected: readonly string[]
}

/** A block of `sh`, and the block of `text` that follows it with nothing between them. */
export function stepsOf(page: string): Step[] {
  const blocks = page.matchAll(/^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```)?/gms)
  return Array.from(blocks, ({ 1: commands = '', 2: expected, index }) => ({
    line: page.slice(0, index).split('\n').length,
    commands,
    expected: expected === undefined ? [] : expected.trimEnd().split('\n'),
  }))
}

/** What is expected and was not printed. */
export function differences(printed: string, expected: readonly string[]): string[] {
  const lines = printed.split('\n').map((line) => line.trim())
  const problems: string[] = []
  for (const wanted of expected) {
    const found = lines.findIndex((line) => matches(line, wanted))
    if (found === -1) problems.push(`It did not print: ${wanted}`)
    else lines.splice(0, found + 1)
  }
  return problems
}

function matches(line: string, wanted: string): boolean {
  const parts = wanted
    .trim()
    .split('…')
    .map((part) => part.trim().replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`))
  return new RegExp(`^${parts.join('.*')}$`).test(line)
}
