import { codecs, OperationDisabledError, RedelayedError, type RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { drawId } from '../journal/message-id.js'
import { JOURNAL_GROUP } from '../journal/attached-queue.js'
import { QueueClock } from '../journal/queue-clock.js'
import { TopicError } from './errors.js'
import { Idempotency, KNOWN_MS } from './idempotency.js'
import { readLease, type Lease } from './lease.js'
import { isAway } from './record-store.js'
import { readyMessage, type NewMessage, type Pushed, type ReadyMessage } from './new-message.js'
import { TopicRegistry, type TopicRecord } from './registry.js'
import { Topic, type NegativeAnswer, type TopicQueue } from './topic.js'
import { topicName } from './topic-name.js'
import { TOPIC_DEFAULTS, type TopicSettings } from './topic-settings.js'

export interface TopicsOptions {
  /** Whether a push or receive makes a topic that is not there. */
  readonly createTopics: boolean
  readonly maxTopics: number
  readonly maxMessageBytes: number
  readonly journal?: Journal | undefined
  /** What fails in the background. */
  readonly onError: (error: unknown) => void
}

/** For so long an instance believes what it knows of a topic. */
const FRESH_MS = 1_000
/** How often the clock of Redis is asked. */
const CLOCK_MS = 5_000
/** How often an instance with a journal looks for topics that others have made. */
const FOLLOW_MS = 5_000

interface Known {
  readonly topic: Topic
  readonly createdAt: number
  readonly checkedAt: number
}

/** The answers to leases, in their order. */
export type LeaseAnswer = 'ok' | 'lost'

/** All topics of the service. What holds for several instances at once is decided in Redis. */
export class Topics {
  readonly #client: RedelayedClient
  readonly #options: TopicsOptions
  readonly #registry: TopicRegistry
  readonly #idempotency: Idempotency
  readonly #clock: QueueClock
  readonly #known = new Map<string, Known>()
  readonly #opening = new Map<string, Promise<Known | undefined>>()
  #clockTimer: NodeJS.Timeout | undefined
  #followTimer: NodeJS.Timeout | undefined

  constructor(client: RedelayedClient, options: TopicsOptions) {
    this.#client = client
    this.#options = options
    this.#registry = new TopicRegistry(client)
    this.#idempotency = new Idempotency(client)
    this.#clock = new QueueClock(() => this.#registry.now())
  }

  /** Resolves when Redis has answered. */
  async start(): Promise<void> {
    await this.#clock.refresh()
    this.#clockTimer = setInterval(() => void this.#clock.refresh().catch(() => undefined), CLOCK_MS)
    this.#clockTimer.unref()
    this.#idempotency.start(this.#options.onError)
    if (this.#options.journal !== undefined) await this.#startJournal(this.#options.journal)
  }

  /** Each instance puts back what Redis loses of any topic, so each has all topics open. */
  async #startJournal(journal: Journal): Promise<void> {
    await this.#registry.keepIn(journal)
    // the queues keep their settings in Redis too, and those are not messages
    const configure = (queue: string): void => {
      for (const { topic } of this.#known.values()) {
        if (topic.shards.some(({ name }) => name === queue))
          void topic.configure({ enable: false }).catch(this.#options.onError)
      }
    }
    journal.on('forgotten', configure)
    journal.on('restored', configure)
    const follow = async (): Promise<void> => {
      for (const { name, record } of await this.list()) if (!this.#known.has(name)) await this.#use(name, record)
    }
    await follow()
    journal.on('restored', (queue) => {
      if (queue === this.#registry.queueName) void follow().catch(this.#options.onError)
    })
    this.#followTimer = setInterval(() => void follow().catch(this.#options.onError), FOLLOW_MS)
    this.#followTimer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#clockTimer)
    clearInterval(this.#followTimer)
    await this.#idempotency.stop()
  }

  get hasJournal(): boolean {
    return this.#options.journal !== undefined
  }

  /** Asks the database of the journal something small. @throws JournalError */
  async pingJournal(): Promise<void> {
    await this.#registry.askJournal()
  }

  /** How many changes of a topic's messages SQL does not have yet. */
  async journalLag(topic: Topic): Promise<number> {
    const all = await Promise.all(topic.shards.map((shard) => shard.changeStatus()))
    return all.reduce((sum, { groups, length }) => {
      const own = groups.find(({ name }) => name === JOURNAL_GROUP)
      return sum + (own?.lag ?? length) + (own?.pending ?? 0)
    }, 0)
  }

  /** Asks Redis something small. */
  async ping(): Promise<void> {
    await this.#registry.now()
  }

  /** @throws TopicError there is none, and it is not made */
  async open(name: string, { create = false }: { readonly create?: boolean } = {}): Promise<Topic> {
    const known = await this.#find(name)
    if (known !== undefined) return known.topic
    if (!create || !this.#options.createTopics) throw notFound(name)
    return (await this.#create(name, TOPIC_DEFAULTS)).topic
  }

  async get(name: string): Promise<{ readonly topic: Topic; readonly createdAt: number }> {
    const known = await this.#look(name)
    if (known === undefined) throw notFound(name)
    return known
  }

  /** Makes a topic, or gives it other settings. What is not said has its default. */
  async put(name: string, given: Partial<TopicSettings>): Promise<{ isNew: boolean; topic: Topic; createdAt: number }> {
    const settings: TopicSettings = { ...TOPIC_DEFAULTS, ...given }
    const known = await this.#look(name)
    if (known === undefined) {
      const made = await this.#create(name, settings)
      // another instance may have made it at the same time, with other settings
      if (JSON.stringify(made.topic.settings) !== JSON.stringify(settings)) return this.put(name, given)
      return { ...made, isNew: true }
    }
    if (given.shards !== undefined && given.shards !== known.topic.settings.shards) {
      throw new TopicError('ERR_TOPIC_SHARDS', `the topic has ${known.topic.settings.shards} shards, which stay`)
    }
    const record = { settings: { ...settings, shards: known.topic.settings.shards }, createdAt: known.createdAt }
    const { topic } = await this.#use(name, record)
    await topic.configure({ enable: false })
    // it was deleted a moment ago
    if (!(await this.#registry.replace(name, record))) return this.put(name, given)
    return { topic, createdAt: record.createdAt, isNew: false }
  }

  /** @throws TopicError there is none, or it has messages and is not deleted by force */
  async delete(name: string, force: boolean): Promise<void> {
    const { topic } = await this.get(name)
    if (!force) await assertEmpty(topic)
    // from here on Redis refuses pushes of all instances, so that none is accepted and then removed
    await topic.pause('push')
    try {
      if (!force) await assertEmpty(topic)
      await topic.purge('messages')
      await topic.purge('dead-letters')
      await this.#registry.remove(name)
    } catch (error) {
      await topic.resume('push')
      throw error
    }
    this.#known.delete(name)
  }

  /** The names of at most so many, without reading all. */
  someNames(count: number): Promise<string[]> {
    return this.#registry.someNames(count)
  }

  /** All of them by name. */
  async list(): Promise<{ readonly name: string; readonly record: TopicRecord }[]> {
    return (await this.#registry.list()).map(([name, record]) => ({ name, record }))
  }

  /** What became of each message, or why it was not added, in order. */
  async push(name: string, messages: readonly NewMessage[]): Promise<(Pushed | RedelayedError)[]> {
    const topic = await this.open(name, { create: true })
    const ready = messages.map((message) => this.#ready(topic, message))
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
    { key, owner }: { readonly key: string; readonly owner: string },
  ): Promise<{ pushed: Pushed; isRepeated: boolean }> {
    const topic = await this.open(name, { create: true })
    const ready = this.#ready(topic, message)
    if (ready instanceof RedelayedError) throw ready
    const first = { id: ready.item.id, dueAt: ready.dueAt }
    const { known, isRepeated, answered } = await this.#idempotency.begin([owner, name, key], message, first)
    if (known.pushed !== undefined) return { pushed: known.pushed, isRepeated }
    const pushed =
      message.id === undefined
        ? await this.#addOnce(topic, ready, known, isRepeated)
        : await this.#addOwn(topic, ready, known.dueAt)
    await answered(pushed)
    return { pushed, isRepeated }
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
    if (isRepeated && topic.journal !== undefined && (await topic.journal.get(id)) !== null)
      return { id, outcome: 'added', dueAt }
    const { delay: _, ...rest } = item
    const once = topic.journal === undefined && { deduplicate: { by: 'id', forMs: KNOWN_MS } as const }
    const again = {
      item: { ...rest, id, date: new Date(dueAt), ...once },
      dueAt,
      existing: isRepeated ? 'keep' : existing,
    }
    const pushed = single(await this.#add(topic, [again]))
    return isRepeated && pushed.outcome === 'kept' ? { id, outcome: 'added', dueAt } : pushed
  }

  #ready(topic: Topic, message: NewMessage): ReadyMessage | RedelayedError {
    try {
      return readyMessage(message, {
        drawId: () => drawId(),
        delay: topic.settings.delay,
        now: this.#clock.now(),
        maxBytes: this.#options.maxMessageBytes,
      })
    } catch (thrown) {
      if (thrown instanceof RedelayedError) return thrown
      throw thrown
    }
  }

  async #add(topic: Topic, ready: readonly (ReadyMessage | RedelayedError)[]): Promise<(Pushed | RedelayedError)[]> {
    const whole = ready.flatMap((each, at) => (each instanceof RedelayedError ? [] : [{ each, at }]))
    const results: (Pushed | RedelayedError)[] = ready.map((each) => each as RedelayedError)
    const send = async (to: Topic, some: typeof whole): Promise<void> => {
      const added = await to.add(some.map(({ each }) => each))
      some.forEach(({ at }, position) => (results[at] = added[position] as Pushed | RedelayedError))
    }
    if (whole.length > 0) await send(topic, whole)
    const disabled = whole.filter(({ at }) => results[at] instanceof OperationDisabledError)
    // it is paused, or another instance has deleted it a moment ago
    if (disabled.length > 0 && (await this.#look(topic.name)) === undefined)
      await send(await this.open(topic.name, { create: true }), disabled)
    return results
  }

  acknowledge(leases: readonly string[]): Promise<LeaseAnswer[]> {
    return this.#answer(leases, (topic, own) => topic.acknowledge(own.map(({ receipt }) => receipt)))
  }

  extend(leases: readonly string[], visibilityTimeout?: number): Promise<LeaseAnswer[]> {
    return this.#answer(leases, (topic, own) =>
      topic.extend(
        own.map(({ receipt }) => receipt),
        visibilityTimeout,
      ),
    )
  }

  negativeAcknowledge(leases: readonly string[], answer: NegativeAnswer): Promise<LeaseAnswer[]> {
    return this.#answer(leases, (topic, own) =>
      Promise.all(own.map(({ receipt, attempt }) => topic.negativeAcknowledge(receipt, attempt, answer))),
    )
  }

  async #answer(
    leases: readonly string[],
    send: (topic: Topic, own: readonly Lease[]) => Promise<boolean[]>,
  ): Promise<LeaseAnswer[]> {
    const answers = leases.map((): LeaseAnswer => 'lost')
    const byTopic = new Map<string, { lease: Lease; at: number }[]>()
    leases.map(readLease).forEach((lease, at) => {
      byTopic.set(lease.topic, [...(byTopic.get(lease.topic) ?? []), { lease, at }])
    })
    await Promise.all(
      Array.from(byTopic, async ([name, own]) => {
        const known = await this.#find(topicName(name))
        if (known === undefined) return // it was deleted, and its messages with it
        const done = await send(
          known.topic,
          own.map(({ lease }) => lease),
        )
        own.forEach(({ at }, position) => (answers[at] = done[position] === true ? 'ok' : 'lost'))
      }),
    )
    return answers
  }

  /** What is known of a topic, at most a second old; `undefined` when there is none. */
  async #find(given: string): Promise<Known | undefined> {
    const name = topicName(given)
    const known = this.#known.get(name)
    if (known !== undefined && performance.now() - known.checkedAt < FRESH_MS) return known
    const opening = this.#opening.get(name) ?? this.#look(name).finally(() => this.#opening.delete(name))
    this.#opening.set(name, opening)
    return opening.catch((thrown: unknown) => {
      // the journal accepts messages of a topic that is known while Redis is away
      if (known !== undefined && this.#options.journal?.mode === 'sync' && isAway(thrown)) return known
      throw thrown
    })
  }

  /** What holds now. */
  async #look(given: string): Promise<Known | undefined> {
    const name = topicName(given)
    const record = await this.#registry.get(name)
    if (record !== null) return this.#use(name, record)
    this.#known.delete(name)
    return undefined
  }

  async #create(name: string, settings: TopicSettings): Promise<Known> {
    topicName(name)
    if ((await this.#registry.size()) >= this.#options.maxTopics)
      throw new TopicError('ERR_TOO_MANY_TOPICS', `there can be ${this.#options.maxTopics} topics`)
    const record = { settings, createdAt: this.#clock.now() }
    const made = await this.#use(name, record)
    // before the registry has the topic, so that no instance uses the queue without its settings
    await made.topic.configure({ enable: true })
    if (await this.#registry.create(name, record)) return made
    const other = await this.#look(name)
    if (other === undefined) throw notFound(name)
    await other.topic.configure({ enable: false })
    return other
  }

  async #use(name: string, record: TopicRecord): Promise<Known> {
    const before = this.#known.get(name)
    const isSame = JSON.stringify(before?.topic.settings) === JSON.stringify(record.settings)
    const topic = before !== undefined && isSame ? before.topic : await this.#topic(name, record.settings)
    const known = { topic, createdAt: record.createdAt, checkedAt: performance.now() }
    this.#known.set(name, known)
    return known
  }

  async #topic(name: string, settings: TopicSettings): Promise<Topic> {
    const codec = codecs.bytes()
    const { shards } = settings
    const queue: TopicQueue =
      shards === 1
        ? this.#client.getReliableQueue<Uint8Array>(name, { codec })
        : this.#client.getShardedReliableQueue<Uint8Array>(name, { codec, shards })
    const { journal } = this.#options
    if (journal === undefined) return new Topic(name, settings, queue)
    const topic = new Topic(name, settings, queue, await journal.attach(queue as never))
    // Redis may have lost them while no instance looked
    await topic.configure({ enable: false })
    return topic
  }
}

function notFound(name: string): TopicError {
  return new TopicError('ERR_TOPIC_NOT_FOUND', `there is no topic ${JSON.stringify(name)}`)
}

async function assertEmpty(topic: Topic): Promise<void> {
  const { total, dead } = await topic.counts()
  if (total + dead > 0)
    throw new TopicError('ERR_TOPIC_NOT_EMPTY', `the topic has ${total} messages and ${dead} dead letters`)
}

function single(results: readonly (Pushed | RedelayedError)[]): Pushed {
  const [result] = results
  if (result === undefined || result instanceof RedelayedError) throw result ?? new Error('there is no result')
  return result
}
