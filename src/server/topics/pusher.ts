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
  /** Makes the topic where that is allowed. @throws TopicError there is none */
  readonly open: (name: string) => Promise<Topic>
  /** Asks Redis, not what this instance remembers. */
  readonly isThere: (name: string) => Promise<boolean>
  readonly idempotency: Idempotency
  readonly clock: QueueClock
  readonly drawId: () => string
  readonly maxMessageBytes: number
  readonly maxFanOutBytes: number
  readonly hasJournal: boolean
  readonly tracing?: Tracing | undefined
}

/** Whose key it is: the same key of another owner, or for another path, is another one. */
export interface OnceUnder {
  readonly key: string
  readonly owner: string
  /** What has to be the same under the same key. */
  readonly request: unknown
}

/** What became of one message that was pushed to several topics. */
export interface FannedOut {
  readonly id: string
  readonly results: readonly { readonly topic: string; readonly result: Pushed | RedelayedError }[]
  readonly isRepeated: boolean
}

/** Brings messages into topics. */
export class Pusher {
  readonly #parts: PusherParts

  constructor(parts: PusherParts) {
    this.#parts = parts
  }

  /** What became of each message, or why it was not added, in order. */
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
   * One message, under an idempotency key: the same request again gets the same answer, and adds nothing.
   *
   * @throws TopicError, or why it was not added
   */
  async pushOnce(
    name: string,
    message: NewMessage,
    once: OnceUnder,
  ): Promise<{ readonly pushed: Pushed; readonly isRepeated: boolean }> {
    await this.#parts.open(name) // a topic that is not there uses up no key
    const { results, isRepeated } = await this.#fanOut([name], message, {
      scope: [once.owner, name, once.key],
      request: once.request,
    })
    const [first] = results
    return { pushed: single(first === undefined ? [] : [first.result]), isRepeated }
  }

  /**
   * One message to each of some topics, under one id. Each takes or refuses it by itself; under an idempotency key a repeated request goes on with
   * the topics that have refused it.
   *
   * @throws TopicError no topic would take the message, or one of the names is none
   */
  async fanOut(names: readonly string[], message: NewMessage, once: OnceUnder | undefined): Promise<FannedOut> {
    for (const name of names) topicName(name)
    // no topic has an empty name
    return this.#fanOut(names, message, once && { scope: [once.owner, '', once.key], request: once.request })
  }

  async #fanOut(
    names: readonly string[],
    message: NewMessage,
    under: { readonly scope: readonly string[]; readonly request: unknown } | undefined,
  ): Promise<FannedOut> {
    if (this.#parts.hasJournal && (message.existing ?? 'keep') !== 'keep')
      throw new TopicError('ERR_NOT_WITH_JOURNAL', 'existing: only "keep" where the service has a journal')
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

  /** When it is due in each topic: a message that says no time of its own gets that of the topic. */
  async #places(names: readonly string[], { delay, dueAt }: NewMessage, at: number): Promise<Place[]> {
    if (delay !== undefined || dueAt !== undefined) return names.map((topic) => ({ topic, dueAt: at }))
    return Promise.all(
      names.map(async (topic) => {
        const opened = await this.#parts.open(topic).catch(refusal) // which is said when the message comes
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

  /** An id of the client's own says nothing of the key: another message, under another key, may have had it and be handled by now. */
  async #addOwn(topic: Topic, { item, existing }: ReadyMessage, dueAt: number): Promise<Pushed> {
    const { delay: _, ...rest } = item
    return single(await this.#add(topic, [{ item: { ...rest, date: new Date(dueAt) }, dueAt, existing }]))
  }

  /** The id was drawn for the key. Perhaps the message was added before, and the instance died before it noted that. */
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
        : // another request under the key may be about to add it, at this instance or another one
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
    // it is paused, or another instance has deleted it a moment ago
    if (disabled.length > 0 && !(await this.#parts.isThere(topic.name))) {
      const again = disabled.flatMap((at) => whole[at] ?? [])
      const second = await this.#send(await this.#parts.open(topic.name), again)
      for (const [position, at] of disabled.entries()) added[at] = second[position] as Pushed | RedelayedError
    }
    for (const [position, at] of places.entries()) results[at] = added[position] as Pushed | RedelayedError
    return results
  }

  /** In one span for all of them, in the trace of the first one. */
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
 * Whether the journal knows that Redis has had it. A row that is only accepted does not say so: the first request may still be refused. The changes are
 * read before it is believed, as a message that was handled a moment ago has no other row.
 */
async function hasArrived({ journal }: Topic, id: string): Promise<boolean> {
  if (journal === undefined) return false
  const isProof = async (): Promise<boolean> =>
    !['accepted', 'refused'].includes((await journal.get(id))?.state ?? 'accepted')
  if (await isProof()) return true
  await journal.drain()
  return isProof()
}

const NO_ENDPOINT = 'endpoint: webhooks are only sent for messages of topics that have an endpoint'

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
