// The answers of the service, taken from its schemas where they say enough.
import type { Static } from 'typebox'
import type * as queueSchemas from '../../api/queue-schemas.js'
import type * as schemas from '../../api/schemas.js'

export type Scope = 'push' | 'consume' | 'read' | 'admin'

export interface Session {
  readonly key: string
  readonly scopes: readonly Scope[]
  readonly topics: readonly string[] | null
  readonly hidePayloads: boolean
  readonly readOnly?: boolean
  readonly journal?: boolean
  readonly version?: string
}

export type Counts = Omit<Static<typeof schemas.Counts>, 'oldestMs'>

export interface Problem {
  readonly severity: string
  readonly code: string
  readonly text: string
  readonly topic?: string
  readonly endpoint?: string
}

export interface SeriesPoint {
  readonly at: number
  readonly pushed: number
  readonly delivered: number
  readonly acknowledged: number
  readonly failed: number
}

export interface Overview {
  readonly at: number
  readonly redis: {
    readonly state: string
    readonly version: string | null
    readonly usedMemory: number | null
    readonly maxMemory: number | null
  }
  readonly journal: {
    readonly mode: string
    readonly kind: string
    readonly lagMs: number | null
    readonly pending: number | null
  } | null
  readonly instances: number
  readonly topics: number
  readonly counts: Counts
  readonly oldestDue: {
    readonly topic: string
    readonly id?: string
    readonly dueAt: number
    readonly overdueMs: number
  } | null
  readonly rates: {
    readonly pushed: number
    readonly delivered: number
    readonly acknowledged: number
    readonly failed: number
    readonly dead: number
  }
  readonly lateness: { readonly p50: number; readonly p99: number } | null
  readonly series: readonly SeriesPoint[]
  readonly busiest: readonly {
    readonly topic: string
    readonly counts: Counts
    readonly oldestMs: number | null
    readonly paused: Paused
  }[]
  readonly problems: readonly Problem[]
  /** False: the counts do not include all topics yet. */
  readonly complete?: boolean
}

/** The paused sides of a topic. */
export type Paused = boolean | readonly string[] | string | null

export type TopicSettings = Static<typeof schemas.TopicOutput>['settings']

export interface Topic {
  readonly name: string
  readonly createdAt: number
  readonly settings: TopicSettings
  readonly counts?: Counts & { readonly oldestMs?: number }
  readonly oldestMs?: number | null
  readonly paused?: Paused
}

export interface AgendaBucket {
  readonly from: number
  readonly to: number
  readonly count: number
}

export interface Agenda {
  readonly at: number
  readonly from: number
  readonly to: number
  readonly bucketMs: number
  readonly buckets: readonly AgendaBucket[]
  readonly overdue: number
  readonly later: number
  readonly exact: boolean
}

export interface ListedMessage {
  readonly topic: string
  readonly id: string
  readonly bizKey?: string | null
  readonly state: string
  readonly dueAt: number | null
  readonly createdAt?: number | null
  readonly attempts?: number | null
  readonly priority?: number | null
  readonly size?: number | null
}

export type Message = Static<typeof schemas.MessageOutput> & {
  readonly bodyHidden?: boolean
  readonly bodyCut?: { readonly bytes: number }
  readonly bodyText?: string
}

export interface FlowStep {
  readonly at: number
  readonly change: string
  readonly attempt?: number | null
  readonly by?: string | null
  readonly shard?: number | string | null
  readonly error?: string | null
}

export interface DeadLetter {
  readonly topic: string
  readonly id: string
  readonly diedAt: number | null
  readonly attempts: number | null
  readonly reason: string | null
  readonly endpoint?: string | null
  readonly lastAnswer?: { readonly status: number | null; readonly error?: string | null } | string | null
}

export interface DeadLetterFilter {
  readonly topic?: string | undefined
  readonly endpoint?: string | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly reason?: string | undefined
}

export interface BulkAnswer {
  readonly matched: number | null
  readonly done: number
  readonly cursor?: string
}

export interface Gate {
  readonly state: string
  readonly until?: number | null
  readonly pausedUntil?: number | null
  readonly failed?: number
  readonly tried?: number
}

export type Endpoint = Static<typeof schemas.EndpointOutput> & {
  readonly gate?: Gate | null
  readonly last?: {
    readonly at: number
    readonly outcome: string
    readonly status: number | null
    readonly error: string | null
  } | null
}

export type EndpointInput = Static<typeof schemas.EndpointInput>
/** A new endpoint with its secret, which is shown once. */
export type EndpointMade = Static<typeof schemas.EndpointMade>

export type Delivery = Static<typeof schemas.DeliveryPage>['deliveries'][number]
export type TestAnswer = Static<typeof schemas.TestOutput>
export type Restore = Static<typeof schemas.RestoreOutput>
export type AuditEntry = Static<typeof schemas.AuditPage>['entries'][number]

export interface Instance {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: number
  readonly seenAt: number
  readonly url?: string | null
  readonly connections?: number | null
  readonly waiting?: number | null
  readonly eventLoopMs?: number | null
  readonly memory?: number | null
}

export type Doctor = Static<typeof schemas.DoctorOutput>
export type Finding = Doctor['findings'][number]

export type Queue = Static<typeof queueSchemas.QueuesOutput>['queues'][number]
export type QueueLook = Static<typeof queueSchemas.QueueOutput>
export type QueueMessage = NonNullable<QueueLook['reliable']>['messages'][number]
export type QueuePayload = NonNullable<QueueMessage['payload']>
