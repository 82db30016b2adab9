import type { RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { drawId } from '../journal/message-id.js'
import { JOURNAL_GROUP } from '../journal/attached-queue.js'
import { QueueClock } from '../journal/queue-clock.js'
import { SharedRun } from '../journal/shared-run.js'
import { DeletionPauses, type DeletionCommands } from './deletion-pauses.js'
import { topicNotFound } from './errors.js'
import { Exclusive, type LockCommands } from './exclusive.js'
import { Idempotency, type IdempotencyOptions } from './idempotency.js'
import { Leases } from './leases.js'
import { KnownTopics, type KnownTopic, type NamedTopic, type TopicQueues } from './known-topics.js'
import { Pusher } from './pusher.js'
import { TopicRegistry } from './registry.js'
import type { Topic } from './topic.js'
import { TopicChanges } from './topic-changes.js'
import { TopicFollower } from './topic-follower.js'
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

/** How often the clock of Redis is asked. */
const CLOCK_MS = 5_000
/** How often an instance looks for pauses that failed deletions left behind. */
const RESUME_MS = 1_000

/** All topics of the service. Redis decides between instances. */
export class Topics {
  readonly #options: TopicsOptions
  readonly #registry: TopicRegistry
  readonly #idempotency: Idempotency
  readonly #clock: QueueClock
  /** Pushes messages to the topics. */
  readonly pusher: Pusher
  /** Answers for received messages of any topic. */
  readonly leases = new Leases((name) => this.openIfThere(name))
  readonly #known: KnownTopics
  /** The topics that a push or receive is creating. */
  readonly #making = new Map<string, Promise<{ readonly known: KnownTopic; readonly isNew: boolean }>>()
  readonly #changes: TopicChanges
  #clockTimer: NodeJS.Timeout | undefined
  #resumeTimer: NodeJS.Timeout | undefined
  #follower: TopicFollower | undefined

  constructor(client: RedelayedClient, options: TopicsOptions) {
    this.#options = options
    this.#registry = new TopicRegistry(client)
    this.#idempotency = new Idempotency(client, options)
    this.#clock = new QueueClock(() => this.#registry.now())
    const { journal, maxTopics, isPaused, onError, redis } = options
    this.#known = new KnownTopics({ client, registry: this.#registry, journal, onError })
    this.#changes = new TopicChanges(
      this.#known,
      this.#registry,
      new Exclusive(redis, 'topic'),
      new DeletionPauses(redis),
      { maxTopics, isPaused, now: () => this.#clock.now(), onError },
    )
    this.pusher = new Pusher({
      open: (name) => this.open(name, { create: true }),
      isThere: async (name) => (await this.#known.read(name)) !== undefined,
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
    const resuming = new SharedRun(() => this.#changes.endPauses())
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
      known: () => this.#known.used,
      read: (name) => this.#known.read(name),
      configureAgain: (name) => this.#configureAgain(name),
      maxTopics: this.#options.maxTopics,
      attachingMs: this.#options.attachingMs,
      onError: this.#options.onError,
    })
  }

  /** Configures the queues with the settings of the registry: this instance's may be old. */
  async #configureAgain(name: string): Promise<void> {
    const known = await this.#known.read(name)
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
    await Promise.all(this.#known.used.map((topic) => topic.drain()))
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
    this.#known.onChanged()
  }

  /** Sends a small command to Redis. */
  async ping(): Promise<void> {
    await this.#registry.now()
  }

  /** @throws TopicError the topic does not exist and may not be created */
  async open(name: string, { create = false }: { readonly create?: boolean } = {}): Promise<Topic> {
    const known = await this.#known.find(name)
    if (known !== undefined) return known.topic
    if (!create || !this.#options.createTopics) throw topicNotFound(name)
    // takes the lock once, however many messages come for a new topic
    const making =
      this.#making.get(name) ??
      this.#changes.create(name, TOPIC_DEFAULTS, false).finally(() => this.#making.delete(name))
    this.#making.set(name, making)
    return (await making).known.topic
  }

  /** `undefined` when no topic has this name. */
  async openIfThere(name: string): Promise<Topic | undefined> {
    return (await this.#known.find(name))?.topic
  }

  async get(name: string): Promise<{ readonly topic: Topic; readonly createdAt: number }> {
    const known = await this.#known.read(name)
    if (known === undefined) throw topicNotFound(name)
    return known
  }

  /** See `TopicChanges.put`. */
  put(name: string, given: Partial<TopicSettings>): Promise<{ isNew: boolean; topic: Topic; createdAt: number }> {
    return this.#changes.put(name, given)
  }

  /** See `TopicChanges.setEndpoint`. */
  setEndpoint(name: string, endpoint: string | null, only?: string): Promise<void> {
    return this.#changes.setEndpoint(name, endpoint, only)
  }

  /** See `TopicChanges.delete`. */
  delete(name: string, force: boolean): Promise<void> {
    return this.#changes.delete(name, force)
  }

  /** See `TopicChanges.pausePushes`. */
  pausePushes(name: string, isPaused: boolean): Promise<void> {
    return this.#changes.pausePushes(name, isPaused)
  }

  /** The names of at most `count` topics, without reading all. */
  someNames(count: number): Promise<string[]> {
    return this.#registry.someNames(count)
  }

  /** See `KnownTopics.list`. */
  list(options?: { readonly fresh?: boolean }): Promise<readonly NamedTopic[]> {
    return this.#known.list(options)
  }

  /** See `KnownTopics.queuesOf`. */
  queuesOf(names: readonly string[]): Promise<TopicQueues[]> {
    return this.#known.queuesOf(names)
  }

  /** See `KnownTopics.matching`. */
  matching(pattern: string): Promise<string[]> {
    return this.#known.matching(pattern)
  }
}
