/**
 * cac parses every word that begins with `-` as an option, converts numbers, and takes the word after a flag
 * for its value. Queue names, values and tickets are text and may have any of these forms (a ticket may begin with
 * `-`), so such words are marked before parsing, and unmarked afterwards.
 */
const MARK = '\0'

const FLAGS = new Set(['--json', '--cluster', '--fix', '--yes', '--paused', '--help', '-h', '--version', '-v'])
const NEGATIVE_NUMBER = /^-[\d.]/
/** Options whose values can be any text. */
const TEXTS = /^(--id|--group|--task)(?:=(.*))?$/s
/** A word that begins with `-` and is as long as a ticket. */
const TICKET = /^-[\w-]{17,}$/
/** The options that are as long as a ticket. */
const LONG_OPTIONS = new Set([
  '--visibility-timeout',
  '--max-message-bytes',
  '--keep-dead-letters',
  '--keep-dead-letters-for',
  '--keep-completed-for',
  '--group-concurrency',
  '--group-rate-limit',
])

export function protect(argv: readonly string[]): string[] {
  const end = argv.indexOf('--')
  const [before, after] = end === -1 ? [argv, []] : [argv.slice(0, end), argv.slice(end + 1)]
  return [...protectWords(before), ...after.map((word) => MARK + word)]
}

function protectWords(words: readonly string[]): string[] {
  const left = [...words]
  const safe: string[] = []
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    const [, option, joined] = TEXTS.exec(word) ?? []
    const value = option === undefined ? undefined : (joined ?? left.shift())
    if (option === undefined) safe.push(protectWord(word))
    else safe.push(option, ...(value === undefined ? [] : [MARK + value]))
  }
  return safe
}

function protectWord(word: string): string {
  if (FLAGS.has(word)) return `${word}=true`
  if (LONG_OPTIONS.has(word)) return word
  return NEGATIVE_NUMBER.test(word) || TICKET.test(word) ? MARK + word : word
}

export function unprotect(word: unknown): string {
  const text = String(word)
  return text.startsWith(MARK) ? text.slice(MARK.length) : text
}
