import { codecs, InvalidArgumentError, type RedelayedClient } from 'redelayed'
import type { Journal } from '../journal/journal.js'
import { drawId } from '../journal/message-id.js'
import { JOURNAL_GROUP } from '../journal/attached-queue.js'
import { QueueClock } from '../journal/queue-clock.js'
import { atMost, pause } from '../pause.js'
import { SharedRun } from '../journal/shared-run.js'
import { DeletionPauses, type DeletionCommands } from './deletion-pauses.js'
import { TopicError } from './errors.js'
import { Exclusive, type AssertFresh, type LockCommands } from './exclusive.js'
import { Idempotency, type IdempotencyOptions } from './idempotency.js'
import { readLease, type Lease } from './lease.js'
import { isAway } from './record-store.js'
import { Pusher } from './pusher.js'
import { TopicRegistry, type TopicRecord } from './registry.js'
import { Topic, type NegativeAnswer, type TopicQueue } from './topic.js'
import { fits, topicName } from './topic-name.js'
import type { Tracing } from './tracing.js'
import { TOPIC_DEFAULTS, type TopicSettings } from './topic-settings.js'

export interface TopicsOptions extends IdempotencyOptions {
  /** Whether a push or receive makes a topic that is not there. */
  readonly createTopics: boolean
  readonly maxTopics: number
  readonly maxMessageBytes: number
  /** What several topics get by one request, together. */
  readonly maxBatchBytes: number
  readonly journal?: Journal | undefined
  /** For what holds for a topic and is no message. */
  readonly redis: DeletionCommands & LockCommands
  /** Whether its pushes are paused, by whomever. */
  readonly isPaused: (topic: Topic) => Promise<boolean>
  /** Default: UUIDs of version 7. */
  readonly drawId?: (() => string) | undefined
  readonly tracing?: Tracing | undefined
  /** For how long a start waits for topics to be attached to the journal. Default 10 s. */
  readonly attachingMs?: number
  /** What fails in the background. */
  readonly onError: (error: unknown) => void
}

/** For so long an instance believes what it knows of a topic. */
const FRESH_MS = 1_000
/** How often the clock of Redis is asked. */
const CLOCK_MS = 5_000
/** How often an instance with a journal looks for topics that others have made. */
const FOLLOW_MS = 5_000
/** So many topics are attached to the journal at the same time. */
const ATTACHED_AT_ONCE = 8
/** So long a start waits for that; the others are attached afterwards, or when they are used. */
const ATTACHING_MS = 10_000
/** So long at most a change of a topic waits before it is tried again, at first and at last. */
const PUT_MS = 10
const MOST_PUT_MS = 1_280
/** So long a change of a topic waits for others. */
const MOST_BUSY_MS = 15_000
/** How often an instance looks for pauses that deletions have left. */
const RESUME_MS = 1_000

interface Known {
  readonly topic: Topic
  readonly createdAt: number
  readonly checkedAt: number
}

/** The answers to leases, in their order. */
export type LeaseAnswer = 'ok' | 'lost'

export interface NamedTopic {
  readonly name: string
  readonly record: TopicRecord
}

/** All topics of the service. What holds for several instances at once is decided in Redis. */
export class Topics {
  readonly #client: RedelayedClient
  readonly #options: TopicsOptions
  readonly #registry: TopicRegistry
  readonly #idempotency: Idempotency
  readonly #clock: QueueClock
  /** Brings messages into the topics. */
  readonly pusher: Pusher
  readonly #known = new Map<string, Known>()
  readonly #opening = new Map<string, Promise<Known | undefined>>()
  /** The topics that are made because something came for them. */
  readonly #making = new Map<string, Promise<{ readonly known: Known; readonly isNew: boolean }>>()
  /** Who makes, changes, deletes, pauses or resumes a topic does it alone, of all instances. */
  readonly #exclusive: Exclusive
  readonly #pauses: DeletionPauses
  /** Those that the registry does not have yet. */
  readonly #creating = new Set<string>()
  /** What requests share that list topics at the same moment. */
  #listed: { readonly at: number; readonly all: Promise<readonly NamedTopic[]> } | undefined
  #clockTimer: NodeJS.Timeout | undefined
  #followTimer: NodeJS.Timeout | undefined
  #resumeTimer: NodeJS.Timeout | undefined
  #isStopped = false

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
    if (this.#options.journal !== undefined) await this.#startJournal(this.#options.journal)
  }

  /**
   * Each instance puts back what Redis loses of any topic, so each has all topics open. Anyone can write so many records of topics that attaching
   * them takes hours: this neither keeps the service from starting, nor opens more than there can be.
   */
  async #startJournal(journal: Journal): Promise<void> {
    await this.#registry.keepIn(journal)
    // the queues keep their settings in Redis too, and those are not messages
    const configure = (queue: string): void => {
      for (const { topic } of this.#known.values()) {
        if (topic.shards.some(({ name }) => name === queue))
          void this.#configureAgain(topic.name).catch(this.#options.onError)
      }
    }
    journal.on('forgotten', configure)
    journal.on('restored', configure)
    const follow = async (): Promise<void> => {
      const names = new Set((await this.list({ fresh: true })).map(({ name }) => name))
      // a Redis that has lost its data lists none, and the journal knows better
      const room = Math.max(0, this.#options.maxTopics - this.#known.size)
      const left = [...names]
        .filter((name) => !this.#known.has(name))
        .slice(0, room)
        .values()
      const gone = [...this.#known.keys()].filter((name) => !names.has(name)).values()
      // each as it is by then: attaching many takes a while, in which some get other settings
      const look = async (): Promise<void> => {
        for (const some of [left, gone]) for (const name of some) if (!this.#isStopped) await this.#look(name)
      }
      await Promise.all(Array.from({ length: ATTACHED_AT_ONCE }, look))
    }
    const following = new SharedRun(follow)
    let isLate = false
    const first = following.run().catch((error: unknown) => {
      if (!isLate) throw error
      this.#options.onError(error)
    })
    await atMost(this.#options.attachingMs ?? ATTACHING_MS, first)
    isLate = true
    journal.on('restored', (queue) => {
      if (queue === this.#registry.queueName) void following.run().catch(this.#options.onError)
    })
    this.#followTimer = setInterval(() => void following.run().catch(this.#options.onError), FOLLOW_MS)
    this.#followTimer.unref()
  }

  /** With the settings of the registry: those that this instance remembers may be old. */
  async #configureAgain(name: string): Promise<void> {
    const known = await this.#look(name)
    await known?.topic.configure({ enable: false })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearInterval(this.#resumeTimer)
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

  /** How many messages this instance did not take into SQL, by the reason. */
  get notInJournal(): { readonly tooLarge: number; readonly leftOut: number } {
    const { tooLarge = 0, leftOut = 0 } = this.#options.journal ?? {}
    return { tooLarge, leftOut }
  }

  /** How many changes of a topic's messages SQL does not have yet, and since when it has one of them before it. */
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

  /** The clock of Redis, as it was last read. */
  now(): number {
    return this.#clock.now()
  }

  /** Puts back the topics themselves, where Redis has lost them a moment ago. */
  async restoreNames(): Promise<void> {
    await this.#registry.restore()
    this.#listed = undefined
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
    // one request for the lock, however many messages come for a new topic
    const making = this.#making.get(name) ?? this.#create(name, TOPIC_DEFAULTS).finally(() => this.#making.delete(name))
    this.#making.set(name, making)
    return (await making).known.topic
  }

  /** `undefined` when there is none of this name. */
  async openIfThere(name: string): Promise<Topic | undefined> {
    return (await this.#find(name))?.topic
  }

  async get(name: string): Promise<{ readonly topic: Topic; readonly createdAt: number }> {
    const known = await this.#look(name)
    if (known === undefined) throw notFound(name)
    return known
  }

  /** Makes a topic, or gives it other settings. What is not said has its default. @throws TopicError ERR_TOPIC_BUSY others make and delete it */
  async put(name: string, given: Partial<TopicSettings>): Promise<{ isNew: boolean; topic: Topic; createdAt: number }> {
    for (let wait = PUT_MS; wait <= MOST_PUT_MS; wait *= 2) {
      const done = await this.#put(name, given)
      if (done !== undefined) return done
      await pause(wait * Math.random())
    }
    throw new TopicError('ERR_TOPIC_BUSY', 'others make, change or delete the topic all the time; nothing was changed')
  }

  /** `undefined` where another request came between. */
  async #put(
    name: string,
    given: Partial<TopicSettings>,
  ): Promise<{ isNew: boolean; topic: Topic; createdAt: number } | undefined> {
    const settings: TopicSettings = { ...TOPIC_DEFAULTS, ...given }
    const known = await this.#look(name)
    if (known === undefined) {
      const { known: made, isNew } = await this.#create(name, settings)
      return isNew ? { ...made, isNew } : undefined
    }
    const changed = await this.#change(name, ({ shards }) => {
      if (given.shards !== undefined && given.shards !== shards)
        throw new TopicError('ERR_TOPIC_SHARDS', `the topic has ${shards} shards, which stay`)
      return { ...settings, shards }
    })
    return changed && { topic: changed.topic, createdAt: changed.createdAt, isNew: false }
  }

  /**
   * Gives a topic another endpoint, and nothing else.
   *
   * @param only where the topic has this one
   * @throws TopicError there is none
   */
  async setEndpoint(name: string, endpoint: string | null, only?: string): Promise<void> {
    await this.get(name) // what is not there needs no lock
    const changed = await this.#change(name, (before) =>
      only === undefined || before.endpoint === only ? { ...before, endpoint } : undefined,
    )
    if (changed === undefined) throw notFound(name)
  }

  /** Alone, so that none writes over what another one has written since it read. `undefined` where it was deleted a moment ago. */
  #change(name: string, change: (before: TopicSettings) => TopicSettings | undefined): Promise<Known | undefined> {
    return this.#alone(name, async (assertFresh) => {
      const known = await this.#look(name)
      if (known === undefined) return undefined
      const settings = change(known.topic.settings)
      if (settings === undefined) return known
      const record = { settings, createdAt: known.createdAt }
      assertFresh()
      const used = await this.#use(name, record)
      await used.topic.configure({ enable: false })
      assertFresh('unknown') // the queue has them already
      if (!(await this.#registry.replace(name, record))) return undefined
      this.#listed = undefined
      return used
    })
  }

  /** Of two at once one deletes it, and the other one finds none. @throws TopicError there is none, it has messages and is not deleted by force, or it is being deleted all the time */
  async delete(name: string, force: boolean): Promise<void> {
    await this.get(name) // what is not there needs no lock
    await this.#alone(name, (assertFresh) => this.#delete(name, force, assertFresh))
  }

  async #delete(name: string, force: boolean, assertFresh: AssertFresh): Promise<void> {
    const { topic } = await this.get(name)
    if (!force) await assertEmpty(topic)
    // an operator's pause stays, whatever becomes of this
    const isOwn = (await this.#pauses.has(name)) || !(await this.#options.isPaused(topic))
    try {
      if (isOwn) await this.#pauses.add(name)
      // from here on Redis refuses pushes of all instances, so that none is accepted and then removed
      await topic.pause('push')
      if (!force) await assertEmpty(topic)
      assertFresh()
      await topic.purge('messages')
      await topic.purge('dead-letters')
      // else what was purged stays open in SQL, and a Redis that loses its data would get it back under a new topic of this name
      await topic.drain()
      assertFresh('unknown')
      if (!(await this.#registry.remove(name))) throw notFound(name)
    } catch (error) {
      // where Redis does not answer now, or another request has the lock by now, an instance ends it that gets the lock
      if (isOwn) await this.#endOwnPause(name, assertFresh).catch(() => undefined)
      throw error
    }
    this.#forget(name)
    this.#listed = undefined
    await this.#pauses.remove(name).catch(this.#options.onError)
  }

  /** Pushes are refused from now on, also when a deletion fails; or taken. @throws TopicError there is none, or it is being deleted all the time */
  async pausePushes(name: string, isPaused: boolean): Promise<void> {
    await this.#alone(name, async () => {
      const { topic } = await this.get(name)
      if (!isPaused) await topic.resume('push')
      if (await this.#pauses.has(name)) await this.#pauses.remove(name)
      if (isPaused) await topic.pause('push')
    })
  }

  async #alone<T>(name: string, work: (assertFresh: AssertFresh) => Promise<T>): Promise<T> {
    const done = await this.#exclusive.tryRun(topicName(name), work, MOST_BUSY_MS)
    if (done !== undefined) return done.result
    throw new TopicError('ERR_TOPIC_BUSY', 'others make, delete or pause the topic all the time; nothing was changed')
  }

  /** Those of deletions that failed while Redis did not answer, or whose instance died. */
  async #endPauses(): Promise<void> {
    for (const name of await this.#pauses.list()) {
      // one that cannot be ended now keeps none of the others paused
      const end = (assertFresh: AssertFresh): Promise<void> => this.#endOwnPause(name, assertFresh)
      await this.#exclusive.tryRun(name, end).catch(this.#options.onError)
    }
  }

  /** Of a deletion, where no operator has paused the topic since. @throws ConnectionError another request may have the lock */
  async #endOwnPause(name: string, assertFresh: AssertFresh): Promise<void> {
    if (!(await this.#pauses.has(name))) return
    assertFresh()
    // of one that was deleted after all it stays: instances that do not know that yet bring nothing into its queue
    const known = await this.#look(name)
    await known?.topic.resume('push')
    await this.#pauses.remove(name)
  }

  /** The names of at most so many, without reading all. */
  someNames(count: number): Promise<string[]> {
    return this.#registry.someNames(count)
  }

  /** All of them by name, as they were at most a second ago: reading ten thousand for each request would keep Redis busy. `fresh`: as they are. */
  list({ fresh = false }: { readonly fresh?: boolean } = {}): Promise<readonly NamedTopic[]> {
    if (!fresh && this.#listed !== undefined && performance.now() - this.#listed.at < FRESH_MS) return this.#listed.all
    const all = this.#registry.list().then((found) => found.map(([name, record]) => ({ name, record })))
    const listed = { at: performance.now(), all }
    this.#listed = listed
    all.catch(() => {
      if (this.#listed === listed) this.#listed = undefined
    })
    return all
  }

  /** The names that fit a pattern, in which `*` stands for any characters. */
  async matching(pattern: string): Promise<string[]> {
    return (await this.list()).map(({ name }) => name).filter((name) => fits(name, pattern))
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
      Promise.all(own.map((lease) => topic.negativeAcknowledge(lease, answer))),
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
        ).catch((thrown: unknown) => {
          if (!(thrown instanceof InvalidArgumentError)) throw thrown
          throw new TopicError('ERR_LEASE', 'one of the leases cannot be of any message')
        })
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
    if (!this.#creating.has(name)) this.#forget(name)
    return undefined
  }

  /** The topic is gone: its queue is followed no more. One of this name that is made later is attached anew. */
  #forget(name: string): void {
    const known = this.#known.get(name)
    this.#known.delete(name)
    if (known !== undefined) this.#options.journal?.detach(known.topic.queue).catch(this.#options.onError)
  }

  /** Alone, so that it ends no pause of one that was made meanwhile. */
  #create(name: string, settings: TopicSettings): Promise<{ readonly known: Known; readonly isNew: boolean }> {
    return this.#alone(name, async () => {
      const known = await this.#look(name)
      return known === undefined ? this.#make(name, settings) : { known, isNew: false }
    })
  }

  async #make(name: string, settings: TopicSettings): Promise<{ readonly known: Known; readonly isNew: boolean }> {
    if ((await this.#registry.size()) >= this.#options.maxTopics)
      throw new TopicError('ERR_TOO_MANY_TOPICS', `there can be ${this.#options.maxTopics} topics`)
    const record = { settings, createdAt: this.#clock.now() }
    this.#creating.add(name)
    try {
      const made = await this.#use(name, record)
      // before the registry has the topic, so that no instance uses the queue without its settings
      await made.topic.configure({ enable: true })
      if (await this.#registry.create(name, record)) {
        this.#listed = undefined
        return { known: made, isNew: true }
      }
    } finally {
      this.#creating.delete(name)
    }
    const other = await this.#look(name)
    if (other === undefined) throw notFound(name)
    await other.topic.configure({ enable: false })
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
    // a payload is made for its message, and changed by none: it needs no copy
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
    // Redis may have lost them while no instance looked
    await topic.configure({ enable: false })
    return topic
  }
}

function notFound(name: string): TopicError {
  return new TopicError('ERR_TOPIC_NOT_FOUND', `there is no topic ${JSON.stringify(name)}`)
}

/** Also of what the journal has accepted and Redis does not have yet. */
async function assertEmpty(topic: Topic): Promise<void> {
  const { total, dead } = await topic.counts()
  if (total + dead > 0)
    throw new TopicError('ERR_TOPIC_NOT_EMPTY', `the topic has ${total} messages and ${dead} dead letters`)
  if (topic.journal === undefined) return
  await topic.journal.drain()
  const size = await topic.journal.size()
  if (size > 0) throw new TopicError('ERR_TOPIC_NOT_EMPTY', `the journal has ${size} messages that Redis lacks`)
}
