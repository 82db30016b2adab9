// What the examples have in common, and nothing of what they show.
import { randomUUID } from 'node:crypto'
import type { SettledEvent, Worker } from 'redelayed'

export const url = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379'

const started = performance.now()

/** Prints a line with the milliseconds since the example began. */
export function log(text: string): void {
  const ms = Math.round(performance.now() - started)
  console.log(`${String(ms).padStart(5)} ms  ${text}`)
}

/** A name that no other run uses. */
export function uniqueName(name: string): string {
  return `example:${name}:${randomUUID()}`
}

/** The first message of which it holds when the worker is done with it. */
export function until(worker: Worker, holds: (event: SettledEvent) => boolean): Promise<SettledEvent> {
  return new Promise((resolve) => {
    worker.on('settled', function listener(event) {
      if (!holds(event)) return
      worker.off('settled', listener)
      resolve(event)
    })
  })
}
