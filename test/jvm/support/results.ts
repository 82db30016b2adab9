/** Collects what docs/compatibility.md shows: every test of a scenario or a codec is one cell. */
import { writeFileSync } from 'node:fs'

export type Outcome = 'ok' | 'failed' | 'not in that version' | 'not run' | `ok, ${string}`

export interface Cell {
  readonly table: 'scenarios' | 'codecs'
  readonly row: string
  readonly version: string
  readonly direction?: 'Java → Node' | 'Node → Java'
  outcome: Outcome
}

/** In the order in which the tests are defined, so that every run lists them alike. */
const cells: Cell[] = []

process.once('exit', () => {
  const file = process.env.REDELAYED_JVM_CELLS
  if (file !== undefined) writeFileSync(file, JSON.stringify(cells))
})

/** Defines a test whose outcome becomes a cell; it may give a reservation. `absent` says why the version has no such thing: shown as skipped. */
export function cell(
  place: Omit<Cell, 'outcome'>,
  { absent, timeout }: { absent?: string | undefined; timeout?: number },
  test: () => Promise<unknown>,
): void {
  const title = place.direction === undefined ? place.row : `${place.row}, ${place.direction}`
  const result: Cell = { ...place, outcome: 'not run' }
  cells.push(result)
  if (absent !== undefined) {
    result.outcome = 'not in that version'
    it(`${title} (not in that version: ${absent})`)
    return
  }
  it(title, async function () {
    if (timeout !== undefined) this.timeout(timeout)
    result.outcome = 'failed'
    const reservation = await test()
    result.outcome = typeof reservation === 'string' ? `ok, ${reservation}` : 'ok'
  })
}
