import type { ClientOptions, Durability } from '../../../src/index.js'

export type Role = 'producer' | 'transferrer' | 'consumer'

/** What every worker process receives, whatever it works on. Everything in it survives JSON. */
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
  readonly layout: 'redisson' | 'compact'
  readonly load: Load
  /** How many takes a consumer has at the server at the same time. */
  readonly takes: number
}

/** What a producer offers. */
export interface Load {
  readonly from: number
  readonly everyMs: number
  readonly maxDelay: number
  /** The delay of those that shall be left in the end. */
  readonly farMs: number
  /** Whether some are cancelled and some put off. */
  readonly amend: boolean
  /** What an offer waits for before it counts as acknowledged. */
  readonly durability?: Durability | undefined
}

/** From the bench to a worker. Each is answered with its `id`. */
export type Order<J extends AnyJob = Job> =
  | { readonly kind: 'start'; readonly job: J }
  | { readonly kind: 'produce'; readonly on: boolean }
  /** Offers this many, all due at the same moment. */
  | { readonly kind: 'burst'; readonly count: number; readonly delay: number }
  /** Holds this many further queues, with a message each. */
  | { readonly kind: 'queues'; readonly count: number; readonly prefix: string; readonly delay: number }
  | { readonly kind: 'stop' }
  /** A new chapter of the books: they go on in this file, and errors are counted from nothing. */
  | { readonly kind: 'ledger'; readonly path: string }
  /** Keeps the event loop busy. */
  | { readonly kind: 'block'; readonly ms: number }
  /** What `Date` says is wrong by this much. */
  | { readonly kind: 'date'; readonly shiftMs: number }
  /** What a host name leads to from now on. */
  | { readonly kind: 'dns'; readonly host: string; readonly address: string }
  | { readonly kind: 'report' }

export interface Answer {
  readonly id: number
  readonly error?: string
  readonly report?: WorkerReport
}

export interface WorkerReport {
  /** How often each code came, as an event or from a call. */
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
  /** It was not carried out. */
  | readonly ['no', n: number, code: string]
  /** Unknown. */
  | readonly ['lost answer', n: number]
  | readonly ['cancel', n: number, done: boolean | null]
  | readonly ['move', n: number, due: number | null]
  /** Begun: until the next line about it unknown. */
  | readonly ['cancelling' | 'moving', n: number, due: number]
  | readonly ['got', n: number, at: number]
  /** Written by the bench: acknowledged in an earlier chapter, and still pending. */
  | readonly ['kept', n: number, due: number]
