import type { ClientOptions, Durability } from '../../../src/index.js'
import type { Layout } from '../../../src/store/delayed-store.js'

export type Role = 'producer' | 'transferrer' | 'consumer'

/** The job that every kind of worker process receives. All of its values survive JSON. */
export interface AnyJob {
  readonly role: string
  /** Beside which files it is in the books, and the name of its connections. */
  readonly name: string
  readonly ledger: string
  /** Its numbers are `from`, `from + 1` and so on. */
  readonly load: { readonly from: number }
}

/** The role and the settings of a process on a delayed queue. */
export interface Job extends AnyJob {
  readonly role: Role
  readonly client: ClientOptions
  readonly queue: string
  readonly layout: Layout
  readonly load: Load
  /** The takes of a consumer that wait at the server at the same time. */
  readonly takes: number
}

/** The messages that a producer offers. */
export interface Load {
  readonly from: number
  readonly everyMs: number
  readonly maxDelay: number
  /** The delay of the messages that must be left at the end. */
  readonly farMs: number
  /** Whether some are cancelled and some put off. */
  readonly changes: boolean
  /** The durability that an offer waits for before it counts as acknowledged. */
  readonly durability?: Durability | undefined
}

/** A message from the bench to a worker. The worker answers each with its `id`. */
export type Order<J extends AnyJob = Job> =
  | { readonly kind: 'start'; readonly job: J }
  | { readonly kind: 'produce'; readonly on: boolean }
  /** Offers this many, all due at the same moment. */
  | { readonly kind: 'burst'; readonly count: number; readonly delay: number }
  /** Holds this many further queues, with a message each. */
  | { readonly kind: 'queues'; readonly count: number; readonly prefix: string; readonly delay: number }
  /** Changes and takes away by their ids what is left in the end, and redrives the dead letters; an error says what went wrong. */
  | { readonly kind: 'operate'; readonly left: readonly string[]; readonly dead: readonly string[] }
  /** Redrives these dead letters by their ids. */
  | { readonly kind: 'redrive'; readonly ids: readonly string[] }
  | { readonly kind: 'stop' }
  /** Begins a chapter of the books: they go on in this file, and the count of errors starts at 0. */
  | { readonly kind: 'ledger'; readonly path: string }
  /** Keeps the event loop busy. */
  | { readonly kind: 'block'; readonly ms: number }
  /** `Date` is wrong by this many milliseconds. */
  | { readonly kind: 'date'; readonly shiftMs: number }
  /** The address that a host name has from now on. */
  | { readonly kind: 'dns'; readonly host: string; readonly address: string }
  | { readonly kind: 'report' }

export interface Answer {
  readonly id: number
  readonly error?: string
  readonly report?: WorkerReport
}

export interface WorkerReport {
  /** The number of errors of each code, from events and calls. */
  readonly errors: Readonly<Record<string, number>>
  readonly heapBytes: number
  readonly cpuMs: number
  /** Sockets and timers that keep the process alive, beside the channel to the bench. */
  readonly resources: number
}

/**
 * A line of the books. Times are this machine's, in milliseconds; due times are those of the tickets, so by Redis's
 * clock. They are written before anything else happens, synchronously, so that they are known whenever the process is killed.
 */
export type Entry =
  | readonly ['try', n: number]
  | readonly ['ok', n: number, due: number]
  /** The command was not carried out. */
  | readonly ['no', n: number, code: string]
  /** Unknown. */
  | readonly ['lost answer', n: number]
  | readonly ['cancel', n: number, done: boolean | null]
  | readonly ['move', n: number, due: number | null]
  /** A call began: its outcome is unknown until the next line about it. */
  | readonly ['cancelling' | 'moving', n: number, due: number]
  | readonly ['got', n: number, at: number]
  /** Written by the bench: acknowledged in an earlier chapter, and still pending. */
  | readonly ['kept', n: number, due: number]
