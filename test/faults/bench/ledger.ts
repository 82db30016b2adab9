import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs'
import { RedelayedError } from '../../../src/index.js'

/** The events of a process, each written at once as a line, so that they survive a kill of the process; and its errors. */
export class Ledger<E> {
  #file: number | undefined
  #errors: Record<string, number> = {}

  constructor(path: string) {
    this.#file = openSync(path, 'a')
  }

  /** The number of errors of each code. */
  get errors(): Readonly<Record<string, number>> {
    return this.#errors
  }

  note(entry: E): void {
    // what a program does after its end belongs to no job
    if (this.#file !== undefined) writeSync(this.#file, `${JSON.stringify(entry)}\n`)
  }

  count(code: string): void {
    this.#errors[code] = (this.#errors[code] ?? 0) + 1
  }

  /** Begins a chapter: the ledger goes on in this file, and the count of errors starts at 0. */
  turnTo(path: string): void {
    this.close()
    this.#file = openSync(path, 'a')
    this.#errors = {}
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = undefined
  }
}

/** The lines that a process wrote; empty if it never wrote any. */
export function readLedger<E>(path: string): E[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n')
  // the last line is empty, or was being written when the process was killed
  return lines.slice(0, -1).map((line) => JSON.parse(line) as E)
}

export function codeOf(error: unknown): string {
  return error instanceof RedelayedError ? error.code : String(error)
}
