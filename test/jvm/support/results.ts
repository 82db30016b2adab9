/** Collects what docs/compatibility.md shows: every test of a scenario or a codec is one cell. */
import { writeFileSync } from 'node:fs'

export type Outcome = 'ok' | 'failed' | 'not in that version'

export interface Cell {
  readonly table: 'scenarios' | 'codecs'
  readonly row: string
  readonly version: string
  readonly direction?: 'Java → Node' | 'Node → Java'
  readonly outcome: Outcome
}

const cells: Cell[] = []

process.once('exit', () => {
  const file = process.env.REDELAYED_JVM_CELLS
  if (file !== undefined) writeFileSync(file, JSON.stringify(cells))
})

/** Defines a test whose outcome becomes a cell. `absent` says why the version has no such thing: shown as skipped. */
export function cell(
  place: Omit<Cell, 'outcome'>,
  { absent, timeout }: { absent?: string | undefined; timeout?: number },
  test: () => Promise<void>,
): void {
  const title = place.direction === undefined ? place.row : `${place.row}, ${place.direction}`
  if (absent !== undefined) {
    cells.push({ ...place, outcome: 'not in that version' })
    it(`${title} (not in that version: ${absent})`)
    return
  }
  it(title, async function () {
    if (timeout !== undefined) this.timeout(timeout)
    let outcome: Outcome = 'failed'
    try {
      await test()
      outcome = 'ok'
    } finally {
      cells.push({ ...place, outcome })
    }
  })
}
