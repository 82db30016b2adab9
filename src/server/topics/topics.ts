import { codecs, type RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { drawId } from '../journal/message-id.js'
import { JOURNAL_GROUP } from '../journal/attached-queue.js'
import { QueueClock } from '../journal/queue-clock.js'
import { pause } from '../pause.js'
import { SharedRun } from '../journal/shared-run.js'
import { DeletionPauses, type DeletionCommands } from './deletion-pauses.js'
import { TopicError } from './errors.js'
import { Exclusive, type AssertFresh, type LockCommands } from './exclusive.js'
import { Idempotency, type IdempotencyOptions } from './idempotency.js'
import { Leases } from './leases.js'
import { isAway } from './record-store.js'
import { Pusher } from './pusher.js'
import { TopicRegistry, type TopicRecord } from './registry.js'
import { Topic, type TopicQueue } from './topic.js'
import { TopicFollower } from './topic-follower.js'
import { fits, topicName } from './topic-name.js'
import type { Tracing } from './tracing.js'
import { TOPIC_DEFAULTS, type TopicSettings } from './topic-settings.js'

export interface TopicsOptions extends IdempotencyOptions {
  /** Whether a push or receive creates a missing topic. */
  readonly createTopics: boolean
  readonly maxTopics: number
  readonly maxMessageBytes: number
  /** The most bytes that one request sends to several topics together. */
  readonly maxBatchBytes: number
  readonly journal?: Journal | undefined
  /** For locks and pauses of topics, which are not messages. */
  readonly redis: DeletionCommands & LockCommands
  /** Whether the topic's pushes are paused, for any reason. */
  readonly isPaused: (topic: Topic) => Promise<boolean>
  /** Default: UUIDs of version 7. */
  readonly drawId?: (() => string) | undefined
  readonly tracing?: Tracing | undefined
  /** How long a start waits until topics are attached to the journal. Default 10 s. */
  readonly attachingMs?: number
  /** Gets errors of background work. */
  readonly onError: (error: unknown) => void
}

/** How long an instance trusts what it knows of a topic. */
const FRESH_MS = 1_000
/**
 * A list of all topics is trusted for this multiple of the time that reading it took, if that is longer: thousands take most of a second.
 */
const LIST_SHARE = 3
/** How often the clock of Redis is asked. */
const CLOCK_MS = 5_000
/** The longest pause before a change of a topic is retried, for the first and for the last retry. */
const PUT_MS = 10
const MOST_PUT_MS = 1_280
/** The longest that a change of a topic waits for other requests. */
const MOST_BUSY_MS = 15_000
/** How often an instance looks for pauses that failed deletions left behind. */
const RESUME_MS = 1_000

interface Known {
  readonly topic: Topic
  readonly createdAt: number
  readonly checkedAt: number
}

export interface NamedTopic {
  readonly name: string
  readonly record: TopicRecord
}

/** A topic, and the queues of its shards. */
export interface TopicQueues {
  readonly topic: string
  readonly queues: readonly string[]
}

/** All topics of the service. Redis decides between instances. */
export class Topics {
  readonly #client: RedelayedClient
  readonly #options: TopicsOptions
  readonly #registry: TopicRegistry
  readonly #idempotency: Idempotency
  readonly #clock: QueueClock
  /** Pushes messages to the topics. */
  readonly pusher: Pusher
  /** Answers for received messages of any topic. */
  readonly leases = new Leases((name) => this.openIfThere(name))
  readonly #known = new Map<string, Known>()
  readonly #opening = new Map<string, Promise<Known | undefined>>()
  /** The topics that a push or receive is creating. */
  readonly #making = new Map<string, Promise<{ readonly known: Known; readonly isNew: boolean }>>()
  /** Only one request of all instances creates, changes, deletes, pauses or resumes a topic at a time. */
  readonly #exclusive: Exclusive
  readonly #pauses: DeletionPauses
  /** Topics under creation, which the registry does not have yet. */
  readonly #creating = new Set<string>()
  /** The list that concurrent requests share. */
  #listed: { until: number; readonly all: Promise<readonly NamedTopic[]> } | undefined
  #clockTimer: NodeJS.Timeout | undefined
  #resumeTimer: NodeJS.Timeout | undefined
  #follower: TopicFollower | undefined

  constructor(client: RedelayedClient, options: TopicsOptions) {
    this.#client = client
    this.#options = options
    this.#registry = new TopicRegistry(client)
    this.#idempotency = new Idempotency(client, options)
    this.#clock = new QueueClock(() => this.#registry.now())
    this.#exclusive = new Exclusive(options.redis, 'topic')
    this.#pauses = new DeletionPauses(options.redis)
    this.pusher = new Pusher({
      open: (name) => this.open(name, { create: true }),
      isThere: async (name) => (await this.#look(name)) !== undefined,
      idempotency: this.#idempotency,
      clock: this.#clock,
      drawId: options.drawId ?? (() => drawId()),
      maxMessageBytes: options.maxMessageBytes,
      maxFanOutBytes: options.maxBatchBytes,
      hasJournal: this.hasJournal,
      tracing: options.tracing,
    })
  }

  /** Resolves when Redis has answered. */
  async start(): Promise<void> {
    await this.#clock.refresh()
    this.#clockTimer = setInterval(() => void this.#clock.refresh().catch(() => undefined), CLOCK_MS)
    this.#clockTimer.unref()
    await this.#idempotency.start(this.#options.onError)
    const resuming = new SharedRun(() => this.#endPauses())
    this.#resumeTimer = setInterval(() => void resuming.run().catch(this.#options.onError), RESUME_MS)
    this.#resumeTimer.unref()
    if (this.#options.journal === undefined) return
    this.#follower = this.#follow(this.#options.journal)
    await this.#registry.keepIn(this.#options.journal)
    await this.#follower.start()
  }

  #follow(journal: Journal): TopicFollower {
    return new TopicFollower(journal, {
      list: async () => (await this.list({ fresh: true })).map(({ name }) => name),
      registryQueue: this.#registry.queueName,
      known: () => Array.from(this.#known.values(), ({ topic }) => topic),
      look: (name) => this.#look(name),
      configureAgain: (name) => this.#configureAgain(name),
      maxTopics: this.#options.maxTopics,
      attachingMs: this.#options.attachingMs,
      onError: this.#options.onError,
    })
  }

  /** Configures the queues with the settings of the registry: this instance's may be old. */
  async #configureAgain(name: string): Promise<void> {
    const known = await this.#look(name)
    await known?.topic.configure({ enable: false, removes: false })
  }

  async stop(): Promise<void> {
    clearInterval(this.#resumeTimer)
    clearInterval(this.#clockTimer)
    this.#follower?.stop()
    await this.#idempotency.stop()
  }

  /** Writes the changes of the messages in the topics that this instance uses into SQL. */
  async drain(): Promise<void> {
    await Promise.all(Array.from(this.#known.values(), ({ topic }) => topic.drain()))
  }

  get hasJournal(): boolean {
    return this.#options.journal !== undefined
  }

  /** Sends a small query to the journal's database. @throws JournalError */
  async pingJournal(): Promise<void> {
    await this.#registry.askJournal()
  }

  /** The number of messages that this instance did not write into SQL, by reason. */
  get notInJournal(): { readonly tooLarge: number; readonly leftOut: number } {
    const { tooLarge = 0, leftOut = 0 } = this.#options.journal ?? {}
    return { tooLarge, leftOut }
  }

  /** The number of changes of a topic's messages that SQL lacks, and the time of the oldest of them. */
  async journalLag(topic: Topic): Promise<{ readonly changes: number; readonly since: number | null }> {
    const all = await Promise.all(topic.shards.map((shard) => shard.changeStatus()))
    const own = all.map(({ groups, length }) => {
      const group = groups.find(({ name }) => name === JOURNAL_GROUP)
      const changes = (group?.lag ?? length) + (group?.pending ?? 0)
      return { changes, oldest: Number.parseInt(group?.oldest ?? '', 10) }
    })
    const oldest = own.map((each) => each.oldest).filter((at) => !Number.isNaN(at))
    return {
      changes: own.reduce((sum, { changes }) => sum + changes, 0),
      since: oldest.length === 0 ? null : Math.min(...oldest),
    }
  }

  /** The clock of Redis, estimated from the last reading. */
  now(): number {
    return this.#clock.now()
  }

  /** Puts back the records of topics that Redis has just lost. */
  async restoreNames(): Promise<void> {
    await this.#registry.restore()
    this.#listed = undefined
  }

  /** Sends a small command to Redis. */
  async ping(): Promise<void> {
    await this.#registry.now()
  }

  /** @throws TopicError the topic does not exist and may not be created */
  async open(name: string, { create = false }: { readonly create?: boolean } = {}): Promise<Topic> {
    const known = await this.#find(name)
    if (known !== undefined) return known.topic
    if (!create || !this.#options.createTopics) throw notFound(name)
    // takes the lock once, however many messages come for a new topic
    const making =
      this.#making.get(name) ?? this.#create(name, TOPIC_DEFAULTS, false).finally(() => this.#making.delete(name))
    this.#making.set(name, making)
    return (await making).known.topic
  }

  /** `undefined` when no topic has this name. */
  async openIfThere(name: string): Promise<Topic | undefined> {
    return (await this.#find(name))?.topic
  }

  async get(name: string): Promise<{ readonly topic: Topic; readonly createdAt: number }> {
    const known = await this.#look(name)
    if (known === undefined) throw notFound(name)
    return known
  }

  /**
   * Creates a topic, or replaces its settings. Missing settings get their defaults. @throws TopicError ERR_TOPIC_BUSY other requests kept
   * it busy
   */
  async put(name: string, given: Partial<TopicSettings>): Promise<{ isNew: boolean; topic: Topic; createdAt: number }> {
    for (let wait = PUT_MS; wait <= MOST_PUT_MS; wait *= 2) {
      const done = await this.#put(name, given)
      if (done !== undefined) return done
      await pause(wait * Math.random())
    }
    throw new TopicError('ERR_TOPIC_BUSY', 'other requests kept this topic busy; nothing was changed; try again')
  }

  /** `undefined` if another request created or deleted the topic meanwhile. */
  async #put(
    name: string,
    given: Partial<TopicSettings>,
  ): Promise<{ isNew: boolean; topic: Topic; createdAt: number } | undefined> {
    const settings: TopicSettings = { ...TOPIC_DEFAULTS, ...given }
    const known = await this.#look(name)
    if (known === undefined) {
      const { known: made, isNew } = await this.#create(name, settings, true)
      return isNew ? { ...made, isNew } : undefined
    }
    const change = ({ shards }: TopicSettings): TopicSettings => {
      if (given.shards !== undefined && given.shards !== shards)
        throw new TopicError('ERR_TOPIC_SHARDS', `the topic has ${shards} shards; the number cannot be changed`)
      return { ...settings, shards }
    }
    const changed = await this.#change(name, change, true)
    return changed && { topic: changed.topic, createdAt: changed.createdAt, isNew: false }
  }

  /**
   * Changes only the endpoint of a topic.
   *
   * @param only change it only if the topic has this endpoint
   * @throws TopicError the topic does not exist
   */
  async setEndpoint(name: string, endpoint: string | null, only?: string): Promise<void> {
    await this.get(name) // a missing topic needs no lock
    const change = (before: TopicSettings): TopicSettings | undefined =>
      only === undefined || before.endpoint === only ? { ...before, endpoint } : undefined
    const changed = await this.#change(name, change, false)
    if (changed === undefined) throw notFound(name)
  }

  /**
   * Changes settings under the lock, so that no request overwrites what another wrote since it read. `removes`: see `Topic.configure`.
   * `undefined` if the topic was just deleted.
   */
  #change(
    name: string,
    change: (before: TopicSettings) => TopicSettings | undefined,
    removes: boolean,
  ): Promise<Known | undefined> {
    return this.#withLock(name, async (assertFresh) => {
      const known = await this.#look(name)
      if (known === undefined) return undefined
      const settings = change(known.topic.settings)
      if (settings === undefined) return known
      const record = { settings, createdAt: known.createdAt }
      assertFresh()
      const used = await this.#use(name, record)
      await used.topic.configure({ enable: false, removes })
      assertFresh('unknown') // the queue has the new settings already
      if (!(await this.#registry.replace(name, record))) return undefined
      this.#listed = undefined
      return used
    })
  }

  /**
   * Deletes a topic. If two calls race, one deletes it and the other rejects with `ERR_TOPIC_NOT_FOUND`.
   *
   * @throws TopicError the topic does not exist, has messages and `force` is false, or other requests kept it busy
   */
  async delete(name: string, force: boolean): Promise<void> {
    await this.get(name) // a missing topic needs no lock
    await this.#withLock(name, (assertFresh) => this.#delete(name, force, assertFresh))
  }

  async #delete(name: string, force: boolean, assertFresh: AssertFresh): Promise<void> {
    const { topic } = await this.get(name)
    if (!force) await assertEmpty(topic)
    // an operator's pause stays, even if the deletion fails
    const isOwn = (await this.#pauses.has(name)) || !(await this.#options.isPaused(topic))
    try {
      if (isOwn) await this.#pauses.add(name)
      // now Redis refuses pushes of all instances, so that no message is accepted and then removed
      await topic.pause('push')
      if (!force) await assertEmpty(topic)
      assertFresh()
      await topic.purge('messages')
      await topic.purge('dead-letters')
      // otherwise SQL would know the purged messages as open, and a restore would put them into a new topic of this name
      await topic.drain()
      assertFresh('unknown')
      if (!(await this.#registry.remove(name))) throw notFound(name)
    } catch (error) {
      // if Redis does not answer, or another request has the lock by now, `#endPauses` ends the pause later
      if (isOwn) await this.#endOwnPause(name, assertFresh).catch(() => undefined)
      throw error
    }
    await topic.removeSettings().catch(this.#options.onError)
    this.#forget(name)
    this.#listed = undefined
    await this.#pauses.remove(name).catch(this.#options.onError)
  }

  /**
   * Pauses or resumes pushes. A pause by an operator outlasts a failed deletion. @throws TopicError the topic does not exist, or is busy
   */
  async pausePushes(name: string, isPaused: boolean): Promise<void> {
    await this.#withLock(name, async () => {
      const { topic } = await this.get(name)
      if (!isPaused) await topic.resume('push')
      if (await this.#pauses.has(name)) await this.#pauses.remove(name)
      if (isPaused) await topic.pause('push')
    })
  }

  async #withLock<T>(name: string, work: (assertFresh: AssertFresh) => Promise<T>): Promise<T> {
    const done = await this.#exclusive.tryRun(topicName(name), work, MOST_BUSY_MS)
    if (done !== undefined) return done.result
    throw new TopicError('ERR_TOPIC_BUSY', 'other requests kept this topic busy; nothing was changed; try again')
  }

  /** Ends the pauses of deletions that failed while Redis did not answer, or whose instance died. */
  async #endPauses(): Promise<void> {
    for (const name of await this.#pauses.list()) {
      // a failure must not keep the other topics paused
      const end = (assertFresh: AssertFresh): Promise<void> => this.#endOwnPause(name, assertFresh)
      await this.#exclusive.tryRun(name, end).catch(this.#options.onError)
    }
  }

  /**
   * Ends the pause of a deletion, unless an operator has paused the topic since. @throws ConnectionError another request may have the lock
   */
  async #endOwnPause(name: string, assertFresh: AssertFresh): Promise<void> {
    if (!(await this.#pauses.has(name))) return
    assertFresh()
    // a topic that was deleted after all stays paused: then instances that do not know that yet cannot push to its queue
    const known = await this.#look(name)
    await known?.topic.resume('push')
    await this.#pauses.remove(name)
  }

  /** The names of at most `count` topics, without reading all. */
  someNames(count: number): Promise<string[]> {
    return this.#registry.someNames(count)
  }

  /**
   * All topics, sorted by name. The list can be a second old, or three times as old as reading it took: reading ten thousand topics for
   * each request would keep Redis and the instance busy. `fresh`: reads them now.
   */
  list({ fresh = false }: { readonly fresh?: boolean } = {}): Promise<readonly NamedTopic[]> {
    if (!fresh && this.#listed !== undefined && performance.now() < this.#listed.until) return this.#listed.all
    const at = performance.now()
    const listed = {
      until: Infinity,
      all: this.#registry.list().then((found) => {
        listed.until = at + Math.max(FRESH_MS, LIST_SHARE * (performance.now() - at))
        return found.map(([name, record]): NamedTopic => ({ name, record }))
      }),
    }
    const { all } = listed
    this.#listed = listed
    all.catch(() => {
      if (this.#listed === listed) this.#listed = undefined
    })
    return all
  }

  /** The queues of some topics, which need not be open; for several topics as the list has them. */
  async queuesOf(names: readonly string[]): Promise<TopicQueues[]> {
    const [only] = names
    if (only === undefined) return []
    if (names.length === 1) {
      const topic = await this.openIfThere(only)
      return topic === undefined ? [] : [{ topic: only, queues: topic.shards.map(({ name }) => name) }]
    }
    const wanted = new Set(names)
    return (await this.list())
      .filter(({ name }) => wanted.has(name))
      .map(({ name, record }) => ({ topic: name, queues: this.#queueNames(name, record.settings.shards) }))
  }

  #queueNames(name: string, shards: number): readonly string[] {
    if (shards === 1) return [name]
    return this.#client.getShardedReliableQueue(name, { shards }).shards.map((shard) => shard.name)
  }

  /** The names that match a pattern, in which `*` stands for any characters. */
  async matching(pattern: string): Promise<string[]> {
    return (await this.list()).map(({ name }) => name).filter((name) => fits(name, pattern))
  }

  /** The topic, as known at most a second ago; `undefined` when it does not exist. */
  async #find(given: string): Promise<Known | undefined> {
    const name = topicName(given)
    const known = this.#known.get(name)
    if (known !== undefined && performance.now() - known.checkedAt < FRESH_MS) return known
    const opening = this.#opening.get(name) ?? this.#look(name).finally(() => this.#opening.delete(name))
    this.#opening.set(name, opening)
    return opening.catch((thrown: unknown) => {
      // while Redis is away, the journal accepts messages of a known topic
      if (known !== undefined && this.#options.journal?.mode === 'sync' && isAway(thrown)) return known
      throw thrown
    })
  }

  /** The topic as the registry has it now. */
  async #look(given: string): Promise<Known | undefined> {
    const name = topicName(given)
    const record = await this.#registry.get(name)
    if (record !== null) return this.#use(name, record)
    if (!this.#creating.has(name)) this.#forget(name)
    return undefined
  }

  /** Detaches the queue of a deleted topic. A later topic of this name is attached anew. */
  #forget(name: string): void {
    const known = this.#known.get(name)
    this.#known.delete(name)
    if (known !== undefined) this.#options.journal?.detach(known.topic.queue).catch(this.#options.onError)
  }

  /**
   * Creates a topic under the lock, so that it does not end a pause of one that was created meanwhile. `removes`: see `Topic.configure`.
   */
  #create(
    name: string,
    settings: TopicSettings,
    removes: boolean,
  ): Promise<{ readonly known: Known; readonly isNew: boolean }> {
    return this.#withLock(name, async () => {
      const known = await this.#look(name)
      return known === undefined ? this.#make(name, settings, removes) : { known, isNew: false }
    })
  }

  async #make(
    name: string,
    settings: TopicSettings,
    removes: boolean,
  ): Promise<{ readonly known: Known; readonly isNew: boolean }> {
    if ((await this.#registry.size()) >= this.#options.maxTopics)
      throw new TopicError('ERR_TOO_MANY_TOPICS', `at most ${this.#options.maxTopics} topics are allowed`)
    const record = { settings, createdAt: this.#clock.now() }
    this.#creating.add(name)
    try {
      const made = await this.#use(name, record)
      // before the registry has the topic, so that no instance uses the queue without its settings
      await made.topic.configure({ enable: true, removes })
      if (await this.#registry.create(name, record)) {
        this.#listed = undefined
        return { known: made, isNew: true }
      }
    } finally {
      this.#creating.delete(name)
    }
    const other = await this.#look(name)
    if (other === undefined) throw notFound(name)
    await other.topic.configure({ enable: false, removes })
    return { known: other, isNew: false }
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
    // each payload is made for one message and never changed: it needs no copy
    const codec = { ...codecs.bytes(), encode: (payload: Uint8Array) => payload as Buffer }
    const { shards } = settings
    const queue: TopicQueue =
      shards === 1
        ? this.#client.getReliableQueue<Uint8Array>(name, { codec })
        : this.#client.getShardedReliableQueue<Uint8Array>(name, { codec, shards })
    const { journal } = this.#options
    if (journal === undefined) return new Topic(name, settings, queue)
    const attached = await journal.attach(queue as never)
    const parts = 'shards' in queue ? queue.shards : [queue]
    const deadLetters = await Promise.all(parts.map((shard) => journal.attach(shard.deadLetters)))
    const topic = new Topic(name, settings, queue, attached, deadLetters)
    // Redis may have lost the settings while no instance was running
    await topic.configure({ enable: false, removes: false })
    return topic
  }
}

function notFound(name: string): TopicError {
  return new TopicError('ERR_TOPIC_NOT_FOUND', `there is no topic ${JSON.stringify(name)}`)
}

/** Checks also for messages that the journal has accepted and Redis does not have yet. */
async function assertEmpty(topic: Topic): Promise<void> {
  const { total, dead } = await topic.counts()
  if (total + dead > 0)
    throw new TopicError('ERR_TOPIC_NOT_EMPTY', `the topic has ${total} messages and ${dead} dead letters`)
  if (topic.journal === undefined) return
  await topic.journal.drain()
  const size = await topic.journal.size()
  if (size > 0) throw new TopicError('ERR_TOPIC_NOT_EMPTY', `the journal has ${size} messages that Redis lacks`)
}
