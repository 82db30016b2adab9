// Every call of the page, with the names of docs/http-api.md.
import type { Page } from '../lib/use-pages.js'
import { pathOf } from '../lib/router.js'
import { request, type Query } from './request.js'
import type {
  Agenda,
  AuditEntry,
  BulkAnswer,
  DeadLetter,
  DeadLetterFilter,
  Delivery,
  Doctor,
  Endpoint,
  EndpointInput,
  EndpointMade,
  FlowStep,
  Instance,
  ListedMessage,
  Message,
  Overview,
  Queue,
  QueueLook,
  Restore,
  TestAnswer,
  Topic,
} from './types.js'

type Signal = AbortSignal | undefined

/** The most rows of one page of a list. */
const ROWS = 50
/** The most bytes of a body that are loaded until the reader asks for more. */
export const BODY_BYTES = 65_536

const get = <T>(path: string, signal: Signal, query: Query = {}): Promise<T> =>
  request<T>('GET', path, { query, signal })
const post = <T>(path: string, body: unknown = {}, signal?: Signal): Promise<T> =>
  request<T>('POST', path, { body, signal })

const topicPath = (topic: string, ...more: string[]): string => pathOf('v1', 'topics', topic, ...more)
const messagePath = (topic: string, id: string): string => topicPath(topic, 'messages', id)
const endpointPath = (id: string, ...more: string[]): string => pathOf('v1', 'endpoints', id, ...more)

/** A page of a list, with the facts about the whole list. */
export type Listed<T> = Page<T> & {
  readonly source?: string
  readonly complete?: boolean
  readonly matched?: number | null
}

async function page<T>(path: string, field: string, query: Query, signal: Signal): Promise<Listed<T>> {
  const answer = await get<Record<string, unknown> & { cursor?: string }>(path, signal, { limit: ROWS, ...query })
  return { ...answer, rows: answer[field] as T[] }
}

interface Api {
  topics(query: Query, signal: Signal): Promise<Listed<Topic>>
  topic(name: string, signal: Signal): Promise<Topic>
  pause(name: string, what: string): Promise<unknown>
  resume(name: string, what: string): Promise<unknown>
  purge(name: string, what: string): Promise<{ readonly purged: number }>
  agenda(query: Query, signal: Signal): Promise<Agenda>
  agendaMessages(query: Query, signal: Signal): Promise<Listed<ListedMessage>>
  messages(query: Query, signal: Signal): Promise<Listed<ListedMessage>>
  message(topic: string, id: string, maxBody: number, signal: Signal): Promise<Message>
  flow(topic: string, id: string, signal: Signal): Promise<{ readonly flow: readonly FlowStep[] }>
  reschedule(topic: string, id: string, dueAt: number): Promise<Message>
  cancel(topic: string, id: string, isForced: boolean): Promise<unknown>
  deadLetters(
    filter: DeadLetterFilter & { readonly cursor?: string | undefined },
    signal: Signal,
  ): Promise<Listed<DeadLetter>>
  /** Does a bounded part of the work; repeat the call with the cursor until there is none. */
  bulk(what: 'redrive' | 'delete', given: object, signal: Signal): Promise<BulkAnswer>
  redriveOne(topic: string, id: string): Promise<{ readonly redriven: number }>
  endpoints(query: Query, signal: Signal): Promise<Listed<Endpoint>>
  endpoint(id: string, signal: Signal): Promise<Endpoint>
  deliveries(id: string, query: Query, signal: Signal): Promise<Listed<Delivery>>
  test(id: string): Promise<TestAnswer>
  recover(id: string): Promise<{ readonly redriven: number }>
  enable(id: string, enabled: boolean): Promise<Endpoint>
  makeEndpoint(given: EndpointInput): Promise<EndpointMade>
  /** `isForced`: also if topics use it. */
  deleteEndpoint(id: string, isForced: boolean): Promise<unknown>
  restores(signal: Signal): Promise<{ readonly restores: readonly Restore[] }>
  startRestore(body: { topic?: string; id?: string; expired: boolean; dryRun: boolean }): Promise<Restore>
  overview(signal: Signal): Promise<Overview>
  instances(signal: Signal): Promise<readonly Instance[]>
  /** The greatest age of a report that is shown without a new examination. */
  doctor(maxAge: number, signal: Signal): Promise<Doctor>
  audit(query: Query, signal: Signal): Promise<Listed<AuditEntry>>
  queues(query: Query, signal: Signal): Promise<Listed<Queue>>
  queue(name: string, query: Query, signal: Signal): Promise<QueueLook>
  queueAgenda(name: string, query: Query, signal: Signal): Promise<Agenda>
}

export const api: Api = {
  topics: (query, signal) => page('/v1/topics', 'topics', { counts: 1, ...query }, signal),
  topic: (name, signal) => get(topicPath(name), signal),
  pause: (name, what) => post(topicPath(name, 'pause'), { what }),
  resume: (name, what) => post(topicPath(name, 'resume'), { what }),
  purge: (name, what) => post(topicPath(name, 'purge'), { what }),

  agenda: (query, signal) => get('/v1/agenda', signal, query),
  agendaMessages: (query, signal) => page('/v1/agenda/messages', 'messages', query, signal),

  messages: (query, signal) => page('/v1/messages', 'messages', query, signal),
  message: (topic, id, maxBody, signal) => get(messagePath(topic, id), signal, { maxBody }),
  flow: (topic, id, signal) => get(`${messagePath(topic, id)}/flow`, signal),
  reschedule: (topic, id, dueAt) => request('PATCH', messagePath(topic, id), { body: { dueAt } }),
  cancel: (topic, id, isForced) =>
    request('DELETE', messagePath(topic, id), { query: isForced ? { force: 'true' } : {} }),

  deadLetters: (filter, signal) => page('/v1/dead-letters', 'deadLetters', { ...filter }, signal),
  bulk: (what, given, signal) => post(`/v1/dead-letters/${what}`, given, signal),

  redriveOne: (topic, id) => post(topicPath(topic, 'dead-letters', 'redrive'), { ids: [id] }),
  endpoints: (query, signal) => page('/v1/endpoints', 'endpoints', query, signal),
  endpoint: (id, signal) => get(endpointPath(id), signal),
  deliveries: (id, query, signal) => page(endpointPath(id, 'deliveries'), 'deliveries', query, signal),
  test: (id) => post(endpointPath(id, 'test')),
  recover: (id) => post(endpointPath(id, 'recover')),
  enable: (id, enabled) => request('PATCH', endpointPath(id), { body: { enabled } }),
  makeEndpoint: (given) => post('/v1/endpoints', given),
  deleteEndpoint: (id, isForced) => request('DELETE', endpointPath(id), { query: isForced ? { force: 'true' } : {} }),

  restores: (signal) => get('/v1/restores', signal),
  startRestore: (body) => post('/v1/restores', body),

  overview: (signal) => get('/v1/overview', signal),
  instances: async (signal) => {
    const answer = await get<Instance[] | { instances: Instance[] }>('/v1/instances', signal)
    return Array.isArray(answer) ? answer : answer.instances
  },
  doctor: (maxAge, signal) => get('/v1/doctor', signal, { maxAge }),
  audit: (query, signal) => page('/v1/audit', 'entries', query, signal),
  queues: (query, signal) => page('/v1/queues', 'queues', query, signal),
  queue: (name, query, signal) => get(pathOf('v1', 'queues', name), signal, query),
  queueAgenda: (name, query, signal) => get(pathOf('v1', 'queues', name, 'agenda'), signal, query),
}
