import type { ClientOptions } from '../../../src/index.js'

/** How long a consumer has a message. */
export const VISIBILITY_MS = 3_000

/** The clients of the bench's processes wait so long for an answer, and may repeat what had none. */
export const COMMAND_TIMEOUT_MS = 2_000

/** The payload of a message. */
export interface Payload {
  readonly n: number
  /** `fail`: the first handling fails; `poison`: each handling fails; `park`: after a failure the message waits for hours. */
  readonly kind: 'usual' | 'fail' | 'poison' | 'park'
  readonly text: string
}

/** A message as a producer adds it. */
export interface Item {
  readonly id: string
  readonly payload: Payload
  readonly delay: number
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
  readonly deliveryLimit: number
}

/** The job of a process. */
export interface Job {
  readonly name: string
  readonly client: ClientOptions
  readonly queue: string
  /** The URL of the journal's database; consumers have none. */
  readonly url: string
  /** A consumer that is a worker; the others poll. */
  readonly isWorker: boolean
}

export type AddAnswer =
  { readonly outcome: 'added' | 'kept' | 'journalled'; readonly dueAt: number } | { readonly error: string }

/** Whether a message was changed, and times of the Redis clock before and after that. */
export type ReviseAnswer =
  { readonly done: boolean; readonly from: number; readonly to: number } | { readonly error: string }

/** A message as Redis stores it, with a digest for its payload. */
export interface Lying {
  readonly id: string
  readonly dueAt: number
  readonly attempts: number
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
  readonly digest: string
}

/** The changes of a message in SQL, with times of the Redis clock. */
export type Flow = readonly { readonly change: string; readonly at: number }[]

export type Point = 'afterCommit' | 'afterAdd' | 'afterPage'

/** A message from the bench to a process, which answers each. */
export type Order =
  | { readonly kind: 'start'; readonly job: Job }
  | { readonly kind: 'add'; readonly items: readonly Item[] }
  | { readonly kind: 'cancel'; readonly id: string }
  | { readonly kind: 'reschedule'; readonly id: string; readonly dueAt: number }
  | { readonly kind: 'update'; readonly id: string; readonly payload: Payload }
  | { readonly kind: 'redrive'; readonly count: number }
  /** The next time that the journal comes there, the process kills itself. */
  | { readonly kind: 'arm'; readonly point: Point | undefined }
  /** From now on the journal waits for this time after each page of a restore. */
  | { readonly kind: 'slow'; readonly pageMs: number }
  | { readonly kind: 'restore' }
  | { readonly kind: 'verify' }
  | { readonly kind: 'flow'; readonly ids: readonly string[] }
  | { readonly kind: 'lying'; readonly ids: readonly string[]; readonly dead: boolean }
  | { readonly kind: 'explain'; readonly id: string }
  /** `Date` of this process is wrong by so much. */
  | { readonly kind: 'date'; readonly shiftMs: number }
  | { readonly kind: 'stop' }

export interface Answers {
  readonly start: undefined
  readonly add: readonly AddAnswer[]
  readonly cancel: { readonly done: boolean } | { readonly error: string }
  readonly reschedule: ReviseAnswer
  readonly update: ReviseAnswer
  readonly redrive: { readonly moved: number } | { readonly error: string }
  readonly arm: undefined
  readonly slow: undefined
  readonly restore: { readonly restored: number }
  readonly verify: readonly string[]
  readonly flow: readonly Flow[]
  readonly lying: readonly (Lying | null)[]
  readonly explain: string
  readonly date: undefined
  readonly stop: undefined
}

/** A message of a process that is not an answer. The times are of the machine's clock. */
export type Said =
  | { readonly said: 'forgotten' | 'restored' | 'adopted'; readonly queue: string }
  | { readonly said: 'error'; readonly code: string }
  | ({ readonly said: 'claimed' } & Claim)
  /** `null`: what became of the answer is unknown. */
  | {
      readonly said: 'answered'
      readonly id: string
      readonly lease: string
      readonly how: 'done' | 'failed'
      readonly effect: boolean | null
      readonly at: number
    }

/** A delivery that began. */
export interface Claim {
  readonly id: string
  readonly lease: string
  readonly attempt: number
  /** A time of the Redis clock. */
  readonly visibleAt: number
  readonly polledAt: number
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
  readonly digest: string
  /** A time of this machine's clock. */
  readonly at: number
}
