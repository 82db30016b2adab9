import { setTimeout as sleep } from 'node:timers/promises'
import type { JournalDatabase } from '../../database/database.js'
import { toBytes } from '../../database/tables.js'
import { newRow, writersOf } from '../../journal/rows.js'

const MOST_ROWS = 500
const EVERY_MS = 10
let count = 0

/** How late timers of 2 ms are, sorted, until `isOver` resolves. */
export async function lateness(isOver: Promise<unknown>): Promise<number[]> {
  const found: number[] = []
  let goesOn = true
  void isOver.finally(() => (goesOn = false)).catch(() => undefined)
  while (goesOn) {
    const due = performance.now() + 2
    await sleep(2)
    found.push(performance.now() - due)
  }
  await isOver
  return found.sort((a, b) => a - b)
}

export function p99(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length * 0.99)] ?? Infinity
}

/** Commits `perSecond` rows a second, or as many as the machine can; resolves with the rate that it reached. */
export async function commitRows(database: JournalDatabase, forMs: number, perSecond: number): Promise<number> {
  const { accepted } = writersOf(database)
  const [startedAt, from] = [performance.now(), count]
  for (let elapsed = 0; elapsed < forMs; elapsed = performance.now() - startedAt) {
    const due = Math.floor((perSecond * Math.min(forMs, elapsed + EVERY_MS)) / 1_000) - (count - from)
    const rows = Array.from({ length: Math.max(1, Math.min(MOST_ROWS, due)) }, () => ({
      ...newRow(toBytes('mails'), `message-${count++}`, { generation: 1, ms: 0, seq: 0 }, Date.now()),
      payload: Buffer.alloc(100, 'x'),
    }))
    const isBehind = due >= MOST_ROWS
    await Promise.all([database.transaction((sql) => accepted.write(sql, rows)), sleep(isBehind ? 0 : EVERY_MS)])
  }
  return ((count - from) / (performance.now() - startedAt)) * 1_000
}
