import { CompiledQuery, type Kysely } from 'kysely'
import type { DatabaseKind } from './migrations.js'
import type { JournalTables } from './tables.js'

/**
 * Writes many rows with few statements. The text of a statement depends only on its number of rows and is cached: for hundreds of rows the
 * query builder would take longer than the database.
 */
export class Upsert<Row> {
  readonly #kind: DatabaseKind
  readonly #table: string
  readonly #columns: readonly (keyof Row & string)[]
  readonly #keys: readonly (keyof Row & string)[]
  readonly #updated: readonly (keyof Row & string)[]
  readonly #mostBytes: number
  readonly #texts = new Map<number, string>()

  /** `updated`: the columns that an existing row gets; without any, the row must not exist. */
  constructor(
    kind: DatabaseKind,
    table: keyof JournalTables,
    {
      columns,
      keys = [],
      updated = [],
    }: {
      readonly columns: readonly (keyof Row & string)[]
      readonly keys?: readonly (keyof Row & string)[]
      readonly updated?: readonly (keyof Row & string)[]
    },
    mostBytes = Infinity,
  ) {
    this.#kind = kind
    this.#table = table
    this.#columns = columns
    this.#keys = keys
    this.#updated = updated
    this.#mostBytes = Math.min(MOST_BYTES, mostBytes)
  }

  async write(sql: Kysely<JournalTables>, rows: readonly Row[]): Promise<void> {
    for (let from = 0; from < rows.length;) {
      let size = sizeOf(rows.length - from)
      let parameters = this.#parametersOf(rows.slice(from, from + size))
      if (size > 1 && bytesOf(parameters) > this.#mostBytes) {
        size = 1
        parameters = this.#parametersOf(rows.slice(from, from + 1))
      }
      await sql.executeQuery(CompiledQuery.raw(this.#textFor(size), parameters))
      from += size
    }
  }

  #parametersOf(rows: readonly Row[]): unknown[] {
    const parameters: unknown[] = []
    for (const row of rows) for (const name of this.#columns) parameters.push(row[name])
    return parameters
  }

  #textFor(rows: number): string {
    let text = this.#texts.get(rows)
    if (text === undefined) {
      text = this.#makeText(rows)
      this.#texts.set(rows, text)
    }
    return text
  }

  #makeText(rows: number): string {
    const quote = (name: string): string => (this.#kind === 'mysql' ? `\`${name}\`` : `"${name}"`)
    const list = (names: readonly string[]): string => names.map(quote).join(', ')
    const width = this.#columns.length
    const values = Array.from({ length: rows }, (_, row) => {
      const places = this.#columns.map((_, at) => (this.#kind === 'postgres' ? `$${row * width + at + 1}` : '?'))
      return `(${places.join(', ')})`
    })
    const insert = `insert into ${quote(this.#table)} (${list(this.#columns)}) values ${values.join(', ')}`
    if (this.#updated.length === 0) return insert
    if (this.#kind === 'mysql') {
      return `${insert} on duplicate key update ${this.#updated.map((name) => `${quote(name)} = values(${quote(name)})`).join(', ')}`
    }
    const sets = this.#updated.map((name) => `${quote(name)} = excluded.${quote(name)}`)
    return `${insert} on conflict (${list(this.#keys)}) do update set ${sets.join(', ')}`
  }
}

/** The most bytes of a statement with several rows; MySQL takes 16 MiB by default, with two digits for each byte. */
const MOST_BYTES = 4 * 1024 * 1024

function bytesOf(parameters: readonly unknown[]): number {
  let bytes = 0
  for (const value of parameters) if (value instanceof Uint8Array) bytes += value.length
  return bytes
}

/** Few sizes, so that few texts are cached. */
function sizeOf(left: number): number {
  if (left >= 200) return 200
  if (left >= 50) return 50
  if (left >= 10) return 10
  return 1
}
