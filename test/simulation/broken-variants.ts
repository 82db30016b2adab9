import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { loadCode, type Code } from './code.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const TASK = 'scheduler/transfer-task.ts'
const TIMER = 'timing/deadline-timer.ts'
const CLOCK = 'timing/remote-clock.ts'

export interface BrokenVariant {
  readonly what: string
  readonly file: string
  /** The text that is replaced; it must be there once. */
  readonly from: string
  readonly to: string
}

/** Faults that somebody could put into the code; the simulation has to find each of them. */
export const BROKEN_VARIANTS: readonly BrokenVariant[] = [
  {
    what: 'a stale reply replaces the timer',
    file: TASK,
    from: 'else this.#timer.lower(deadline)',
    to: 'else this.#timer.replace(deadline)',
  },
  {
    what: 'a reply never arms the timer',
    file: TASK,
    from: 'else this.#timer.lower(deadline)',
    to: '',
  },
  {
    what: 'a wake-up during a transfer is forgotten (no `again`)',
    file: TASK,
    from: '    this.#again = true\n    if (this.#running === undefined) this.#start()',
    to: '    if (this.#running !== undefined) return\n    this.#again = true\n    this.#start()',
  },
  {
    what: 'what is left of a batch waits for the next sweep',
    file: TASK,
    from: 'else if (next <= result.now) this.#again = true',
    to: 'else if (next <= result.now) return',
  },
  { what: 'no sweep', file: 'scheduler/sweeper.ts', from: 'this.#sweep(member)', to: 'void member' },
  {
    what: 'no transfer after a subscription',
    file: TASK,
    from: '    this.#notBefore = 0\n    this.#request(false)',
    to: '    this.#notBefore = 0',
  },
  {
    what: 'announcements are ignored',
    file: TASK,
    from: '    else this.#timer.replace(deadline)\n  }\n\n  /** This client knows',
    to: '  }\n\n  /** This client knows',
  },
  {
    what: 'only the last winner ever delivers',
    file: TASK,
    from: '    const spread = Math.min(',
    to: '    if (!this.#isLeader) return\n    const spread = Math.min(',
  },
  {
    what: 'after a failure at once once more, for ever',
    file: TASK,
    from: 'BRIEF : BACKOFF, ++this.#failures)',
    to: 'BRIEF : { baseMs: 0, maxMs: 0 }, ++this.#failures)',
  },
  {
    what: 'what is due and does not move is tried at once once more, for ever',
    file: TASK,
    from: 'this.#stuck > MAX_STUCK',
    to: 'this.#stuck > Infinity',
  },
  {
    what: 'the timer always waits a tenth longer',
    file: TIMER,
    from: 'Math.floor(remaining * (1 - SLACK))',
    to: 'Math.floor(remaining * 1.1)',
  },
  {
    what: 'a wait of 30 days is handed to Node as it is',
    file: TIMER,
    from: 'Math.min(ms, MAX_TIMEOUT_MS)',
    to: 'ms',
  },
  {
    what: "the first estimate of Redis's clock is kept for ever",
    file: CLOCK,
    from: 'if (offset === undefined || offset < lower - ROUNDING_MS || offset > upper + ROUNDING_MS) this.#offset = upper',
    to: 'if (offset === undefined || lower > upper) this.#offset = upper',
  },
  {
    what: "the process's own clock is taken for Redis's",
    file: CLOCK,
    from: ': remoteTime - this.#offset',
    to: ': remoteTime',
  },
  {
    what: 'stopping leaves the timer armed',
    file: TASK,
    from: '    this.#stopped = true\n    this.#timer.clear()\n',
    to: '    this.#stopped = true\n',
  },
]

/** A copy of the code with one fault in it. */
export async function loadBroken({ what, file, from, to }: BrokenVariant): Promise<Code> {
  const base = join(ROOT, '.cache/broken-variants')
  mkdirSync(base, { recursive: true })
  const folder = mkdtempSync(join(base, 'v-'))
  const copy = join(folder, 'src')
  cpSync(join(ROOT, 'src'), copy, { recursive: true })
  const text = readFileSync(join(copy, file), 'utf8')
  if (text.split(from).length !== 2) throw new Error(`${what}: the text to break is not once in ${file}`)
  writeFileSync(
    join(copy, file),
    text.replace(from, () => to),
  )
  try {
    return await loadCode(pathToFileURL(`${copy}/`))
  } finally {
    rmSync(folder, { recursive: true })
  }
}
