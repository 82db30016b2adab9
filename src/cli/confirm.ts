import { createInterface } from 'node:readline/promises'
import { NegativeResult, UsageError } from './failure.js'

/** The terminal for the question. */
interface Terminal {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean }
  readonly output: NodeJS.WritableStream & { readonly isTTY?: boolean }
}

/** Resolves when the user agrees, or with `--yes`. Throws if the user does not agree, or there is no terminal. */
export async function confirm(
  question: string,
  isSure: boolean,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<void> {
  if (isSure) return
  if (input.isTTY !== true || output.isTTY !== true) {
    throw new UsageError('without a terminal there is no one to ask: give --yes')
  }
  const lines = createInterface({ input, output })
  const closed = new AbortController()
  lines.once('close', () => closed.abort()) // by Ctrl-C or Ctrl-D
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: closed.signal }).catch(() => '')
    if (!/^y(es)?$/i.test(answer.trim())) throw new NegativeResult('nothing was done')
  } finally {
    lines.close()
  }
}
