// What producer and consumer have in common: settings in the command line, messages to and from the parent, and an end
// that loses no message.
import type { Placed } from './generate-orders.js'
import { createClient } from './library.js'
import type { Report } from './tally.js'

export interface Settings {
  url: string
  protocol?: 2
  queue: string
  layout: 'redisson' | 'compact'
  file: string
  minuteMs: number
  number: number
}

/** The message. */
export type Order = Omit<Placed, 'at' | 'type'>

export const settings = JSON.parse(process.argv[2] ?? '{}') as Settings

export const client = createClient({
  url: settings.url,
  ...(settings.protocol && { ioredis: { protocol: settings.protocol } }),
})

// Ctrl-C reaches the children too; it is the parent that ends them, in order.
const stopping = new AbortController()
/** Aborted when the parent wants an end or is gone. */
export const stopped: AbortSignal = stopping.signal
process.on('SIGINT', () => {})
process.on('disconnect', () => stopping.abort())

/** Resolves at the parent's word. */
export const started = new Promise((resolve) => {
  process.on('message', (message) => {
    if (message === 'start') resolve(undefined)
    if (message === 'stop') stopping.abort()
  })
})

let lastReport: Promise<unknown> = Promise.resolve()

export function report(message: Report) {
  lastReport = new Promise((resolve) => process.send?.(message, resolve))
}

/** Runs `work`, then closes the connections and lets the process end. */
export async function runChild(work: () => Promise<void>) {
  client.on('error', (error) => report({ type: 'problem', text: error.message }))
  try {
    await work()
  } catch (error) {
    if (!stopped.aborted) {
      report({ type: 'problem', text: error instanceof Error ? error.message : String(error) })
      process.exitCode = 1
    }
  }
  await client.shutdown()
  await lastReport
  if (process.connected) process.disconnect()
}
