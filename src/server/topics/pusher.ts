import { OperationDisabledError, RedelayedError } from 'redelayed'
import type { QueueClock } from '../journal/queue-clock.js'
import { ownEndpoint } from './body.js'
import { TopicError } from './errors.js'
import type { Idempotency, KnownRequest, Place } from './idempotency.js'
import { readyMessage, type NewMessage, type Pushed, type ReadyMessage } from './new-message.js'
import type { Topic } from './topic.js'
import { topicName } from './topic-name.js'
import type { Tracing } from './tracing.js'

export interface PusherParts {
  /** Opens the topic, and creates it if that is allowed. @throws TopicError it does not exist */
  readonly open: (name: string) => Promise<Topic>
  /** Whether the topic exists, according to Redis and not to this instance's memory. */
  readonly isThere: (name: string) => Promise<boolean>
  readonly idempotency: Idempotency
  readonly clock: QueueClock
  readonly drawId: () => string
  readonly maxMessageBytes: number
  readonly maxFanOutBytes: number
  readonly hasJournal: boolean
  readonly tracing?: Tracing | undefined
}

/** A request with an idempotency key. The same key of another owner, or for another path, is another key. */
export interface OnceUnder {
  readonly key: string
  readonly owner: string
  /** The part of the request that must be equal when the key is used again. */
  readonly request: unknown
  /** Checks what a request needs unless it was answered before. @throws TopicError something is missing */
  readonly check: () => Promise<void>
}

/** A request with its idempotency key as it is stored. */
type Under = Pick<OnceUnder, 'request' | 'check'> & { readonly scope: readonly string[] }

/** The outcome of one message that was pushed to several topics. */
export interface FannedOut {
  readonly id: string
  readonly results: readonly { readonly topic: string; readonly result: Pushed | RedelayedError }[]
  readonly isRepeated: boolean
}

/** Pushes messages to topics. */
export class Pusher {
  readonly #parts: PusherParts

  constructor(parts: PusherParts) {
    this.#parts = parts
  }

  /** Resolves with the outcome of each message, or why it was not added, in order. */
  async push(name: string, messages: readonly NewMessage[]): Promise<(Pushed | RedelayedError)[]> {
    const topic = await this.#parts.open(name)
    const now = this.#parts.clock.now()
    const ready = messages.map((message) => {
      try {
        return this.#ready(message, topic.settings.delay, now)
      } catch (thrown) {
        return refusal(thrown)
      }
    })
    return this.#add(topic, ready)
  }

  /**
   * Pushes one message with an idempotency key: repeating the request returns the same answer and adds nothing.
   *
   * @throws TopicError, or why it was not added
   */
  async pushOnce(
    name: string,
    message: NewMessage,
    once: OnceUnder,
  ): Promise<{ readonly pushed: Pushed; readonly isRepeated: boolean }> {
    await this.#parts.open(name) // a missing topic must not use up a key
    const { results, isRepeated } = await this.#fanOut([name], message, {
      ...once,
      scope: [once.owner, name, once.key],
    })
    const [first] = results
    return { pushed: single(first === undefined ? [] : [first.result]), isRepeated }
  }

  /**
   * Pushes one message to several topics under one id. Each topic takes or refuses it by itself; with an idempotency key a repeated request
   * tries again the topics that refused it.
   *
   * @throws TopicError no topic would take the message, or one of the names is invalid
   */
  async fanOut(names: readonly string[], message: NewMessage, once: OnceUnder | undefined): Promise<FannedOut> {
    for (const name of names) topicName(name)
    // the empty name: no topic has it
    return this.#fanOut(names, message, once && { ...once, scope: [once.owner, '', once.key] })
  }

  async #fanOut(names: readonly string[], message: NewMessage, under: Under | undefined): Promise<FannedOut> {
    const before = under && (await this.#answeredBefore(under))
    if (before !== undefined) return before
    if (this.#parts.hasJournal && (message.existing ?? 'keep') !== 'keep')
      throw new TopicError('ERR_NOT_WITH_JOURNAL', 'existing: only "keep" works with a journal')
    const ready = this.#ready(message, 0, this.#parts.clock.now())
    const { maxFanOutBytes } = this.#parts
    const bytes = ready.item.payload.length * names.length
    if (names.length > 1 && bytes > maxFanOutBytes) {
      const problem = `${names.length} topics get ${bytes} bytes together, and the limit is ${maxFanOutBytes}`
      throw new TopicError('ERR_MESSAGE_TOO_LARGE', problem)
    }
    const first = { id: ready.item.id, places: await this.#places(names, message, ready.dueAt) }
    const request = under && (await this.#parts.idempotency.begin(under.scope, under.request, first))
    const { id, places, pushed: answered }: Omit<KnownRequest, 'print'> = request?.known ?? first
    const isRepeated = request?.isRepeated ?? false
    if (answered !== undefined) return { id, isRepeated, results: inOrder(places, answered) }

    const once = request && { known: request.known, isRepeated, isOwnId: message.id !== undefined }
    const results = await Promise.all(places.map((place) => this.#pushTo(place, ready, once)))
    const isAll = (some: readonly (Pushed | RedelayedError)[]): some is Pushed[] =>
      !some.some((each) => each instanceof RedelayedError)
    if (isAll(results)) await request?.answered(results)
    return { id, isRepeated, results: inOrder(places, results) }
  }

  /**
   * If something that the request needs is missing, returns the answer from when it existed. @throws TopicError there is no earlier answer
   */
  async #answeredBefore({ scope, request, check }: Under): Promise<FannedOut | undefined> {
    try {
      await check()
    } catch (refused) {
      if (!(refused instanceof TopicError)) throw refused
      const earlier = await this.#parts.idempotency.answered(scope, request)
      if (earlier?.pushed === undefined) throw refused
      return { id: earlier.id, isRepeated: true, results: inOrder(earlier.places, earlier.pushed) }
    }
    return undefined
  }

  /** The due time in each topic: a message without a time of its own gets the topic's delay. */
  async #places(names: readonly string[], { delay, dueAt }: NewMessage, at: number): Promise<Place[]> {
    if (delay !== undefined || dueAt !== undefined) return names.map((topic) => ({ topic, dueAt: at }))
    return Promise.all(
      names.map(async (topic) => {
        const opened = await this.#parts.open(topic).catch(refusal) // the push reports the error
        return { topic, dueAt: opened instanceof RedelayedError ? null : at + opened.settings.delay }
      }),
    )
  }

  async #pushTo(
    { topic: name, dueAt: known }: Place,
    ready: ReadyMessage,
    once: { readonly known: KnownRequest; readonly isRepeated: boolean; readonly isOwnId: boolean } | undefined,
  ): Promise<Pushed | RedelayedError> {
    try {
      const topic = await this.#parts.open(name)
      const dueAt = known ?? this.#parts.clock.now() + topic.settings.delay
      if (once === undefined) return single(await this.#add(topic, [{ ...ready, dueAt }]))
      if (once.isOwnId) return await this.#addOwn(topic, ready, dueAt)
      return await this.#addOnce(topic, ready, { id: once.known.id, dueAt }, once.isRepeated)
    } catch (thrown) {
      return refusal(thrown)
    }
  }

  /**
   * Adds a message with an id of the client. Such an id does not belong to the key: another message may have had it, and may be handled by
   * now.
   */
  async #addOwn(topic: Topic, { item, existing }: ReadyMessage, dueAt: number): Promise<Pushed> {
    const { delay: _, ...rest } = item
    return single(await this.#add(topic, [{ item: { ...rest, date: new Date(dueAt) }, dueAt, existing }]))
  }

  /** Adds a message whose id was drawn for the key. It may have been added before, by an instance that died before it stored the answer. */
  async #addOnce(
    topic: Topic,
    { item, existing }: ReadyMessage,
    { id, dueAt }: { readonly id: string; readonly dueAt: number },
    isRepeated: boolean,
  ): Promise<Pushed> {
    if (isRepeated && (await hasArrived(topic, id))) return { id, outcome: 'added', dueAt }
    const { delay: _, ...rest } = item
    const { knownMs } = this.#parts.idempotency
    const once =
      topic.journal === undefined
        ? { deduplicate: { by: 'id', forMs: knownMs } as const }
        : // another request with the key may be about to add it, here or at another instance
          { onceForMs: knownMs }
    const again = {
      item: { ...rest, id, date: new Date(dueAt), ...once },
      dueAt,
      existing: isRepeated ? 'keep' : existing,
    }
    const pushed = single(await this.#add(topic, [again]))
    return pushed.outcome === 'kept' ? { id, outcome: 'added', dueAt } : pushed
  }

  #ready(message: NewMessage, delay: number, now: number): ReadyMessage {
    const { drawId, maxMessageBytes: maxBytes } = this.#parts
    return readyMessage(message, { drawId, delay, now, maxBytes })
  }

  async #add(topic: Topic, ready: readonly (ReadyMessage | RedelayedError)[]): Promise<(Pushed | RedelayedError)[]> {
    const results = new Array<Pushed | RedelayedError>(ready.length)
    const whole: ReadyMessage[] = []
    const places: number[] = []
    for (const [at, each] of ready.entries()) {
      if (each instanceof RedelayedError) results[at] = each
      else if (goesNowhere(each, topic)) results[at] = new TopicError('ERR_NO_ENDPOINT', NO_ENDPOINT)
      else places[whole.push(each) - 1] = at
    }
    const added = whole.length === 0 ? [] : await this.#send(topic, whole)
    const disabled = added.flatMap((result, at) => (result instanceof OperationDisabledError ? [at] : []))
    // the topic is paused, or another instance has just deleted it
    if (disabled.length > 0 && !(await this.#parts.isThere(topic.name))) {
      const again = disabled.flatMap((at) => whole[at] ?? [])
      const second = await this.#send(await this.#parts.open(topic.name), again)
      for (const [position, at] of disabled.entries()) added[at] = second[position] as Pushed | RedelayedError
    }
    for (const [position, at] of places.entries()) results[at] = added[position] as Pushed | RedelayedError
    return results
  }

  /** Adds the messages, in one span that belongs to the trace of the first one. */
  async #send(topic: Topic, messages: readonly ReadyMessage[]): Promise<(Pushed | RedelayedError)[]> {
    const { tracing } = this.#parts
    if (!tracing?.isOn) return topic.add(messages)
    const span = tracing.start('PRODUCER', `send ${topic.name}`, messages[0]?.item.headers, {
      'messaging.system': 'redelayed',
      'messaging.operation.type': 'send',
      'messaging.destination.name': topic.name,
      'messaging.batch.message_count': messages.length,
    })
    let error: string | undefined = 'failed'
    try {
      const added = await topic.add(messages)
      error = added.find((each) => each instanceof RedelayedError)?.code
      return added
    } finally {
      span.end({}, error)
    }
  }
}

/**
 * Whether the journal knows that Redis has had the message. A row that is only accepted is no proof: Redis may still refuse the first
 * request. Without proof the changes are read first, as a message that was just handled may still have such a row.
 */
async function hasArrived({ journal }: Topic, id: string): Promise<boolean> {
  if (journal === undefined) return false
  const isProof = async (): Promise<boolean> =>
    !['accepted', 'refused'].includes((await journal.get(id))?.state ?? 'accepted')
  if (await isProof()) return true
  await journal.drain()
  return isProof()
}

const NO_ENDPOINT = 'endpoint: only messages of topics with an endpoint send webhooks'

function goesNowhere({ item: { headers = {} } }: ReadyMessage, { settings }: Topic): boolean {
  return settings.endpoint === null && ownEndpoint(headers) !== undefined
}

function single(results: readonly (Pushed | RedelayedError)[]): Pushed {
  const [result] = results
  if (result === undefined || result instanceof RedelayedError) throw result ?? new Error('there is no result')
  return result
}

function refusal(thrown: unknown): RedelayedError {
  if (thrown instanceof RedelayedError) return thrown
  throw thrown
}

function inOrder(
  places: readonly Place[],
  results: readonly (Pushed | RedelayedError)[],
): { topic: string; result: Pushed | RedelayedError }[] {
  return places.map(({ topic }, at) => ({ topic, result: results[at] as Pushed | RedelayedError }))
}
