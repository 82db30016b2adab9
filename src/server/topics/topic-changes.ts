import { pause } from '../pause.js'
import type { DeletionPauses } from './deletion-pauses.js'
import { TopicError, topicNotFound } from './errors.js'
import type { AssertFresh, Exclusive } from './exclusive.js'
import type { KnownTopic, KnownTopics } from './known-topics.js'
import type { TopicRegistry } from './registry.js'
import type { Topic } from './topic.js'
import { topicName } from './topic-name.js'
import { TOPIC_DEFAULTS, type TopicSettings } from './topic-settings.js'

/** The longest pause before a change of a topic is retried, for the first and for the last retry. */
const PUT_MS = 10
const MOST_PUT_MS = 1_280
/** The longest that a change of a topic waits for other requests. */
const MOST_BUSY_MS = 15_000

interface ChangesOptions {
  readonly maxTopics: number
  /** Whether the topic's pushes are paused, for any reason. */
  readonly isPaused: (topic: Topic) => Promise<boolean>
  /** The clock of Redis, estimated. */
  readonly now: () => number
  /** Gets errors of background work. */
  readonly onError: (error: unknown) => void
}

/** Creates, changes, deletes and pauses topics: only one request of all instances changes a topic at a time. */
export class TopicChanges {
  readonly #known: KnownTopics
  readonly #registry: TopicRegistry
  readonly #exclusive: Exclusive
  readonly #pauses: DeletionPauses
  readonly #options: ChangesOptions

  constructor(
    known: KnownTopics,
    registry: TopicRegistry,
    exclusive: Exclusive,
    pauses: DeletionPauses,
    options: ChangesOptions,
  ) {
    this.#known = known
    this.#registry = registry
    this.#exclusive = exclusive
    this.#pauses = pauses
    this.#options = options
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
    const known = await this.#known.read(name)
    if (known === undefined) {
      const { known: made, isNew } = await this.create(name, settings, true)
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
    await this.#get(name) // a missing topic needs no lock
    const change = (before: TopicSettings): TopicSettings | undefined =>
      only === undefined || before.endpoint === only ? { ...before, endpoint } : undefined
    const changed = await this.#change(name, change, false)
    if (changed === undefined) throw topicNotFound(name)
  }

  /**
   * Changes settings under the lock, so that no request overwrites what another wrote since it read. `removes`: see `Topic.configure`.
   * `undefined` if the topic was just deleted.
   */
  #change(
    name: string,
    change: (before: TopicSettings) => TopicSettings | undefined,
    removes: boolean,
  ): Promise<KnownTopic | undefined> {
    return this.#withLock(name, async (assertFresh) => {
      const known = await this.#known.read(name)
      if (known === undefined) return undefined
      const settings = change(known.topic.settings)
      if (settings === undefined) return known
      const record = { settings, createdAt: known.createdAt }
      assertFresh()
      const used = await this.#known.use(name, record)
      await used.topic.configure({ enable: false, removes })
      assertFresh('unknown') // the queue has the new settings already
      if (!(await this.#registry.replace(name, record))) return undefined
      this.#known.onChanged()
      return used
    })
  }

  /**
   * Deletes a topic. If two calls race, one deletes it and the other rejects with `ERR_TOPIC_NOT_FOUND`.
   *
   * @throws TopicError the topic does not exist, has messages and `force` is false, or other requests kept it busy
   */
  async delete(name: string, force: boolean): Promise<void> {
    await this.#get(name) // a missing topic needs no lock
    await this.#withLock(name, (assertFresh) => this.#delete(name, force, assertFresh))
  }

  async #delete(name: string, force: boolean, assertFresh: AssertFresh): Promise<void> {
    const { topic } = await this.#get(name)
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
      if (!(await this.#registry.remove(name))) throw topicNotFound(name)
    } catch (error) {
      // if Redis does not answer, or another request has the lock by now, `endPauses` ends the pause later
      if (isOwn) await this.#endOwnPause(name, assertFresh).catch(() => undefined)
      throw error
    }
    await topic.removeSettings().catch(this.#options.onError)
    this.#known.forget(name)
    this.#known.onChanged()
    await this.#pauses.remove(name).catch(this.#options.onError)
  }

  /**
   * Pauses or resumes pushes. A pause by an operator outlasts a failed deletion. @throws TopicError the topic does not exist, or is busy
   */
  async pausePushes(name: string, isPaused: boolean): Promise<void> {
    await this.#withLock(name, async () => {
      const { topic } = await this.#get(name)
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
  async endPauses(): Promise<void> {
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
    const known = await this.#known.read(name)
    await known?.topic.resume('push')
    await this.#pauses.remove(name)
  }

  /**
   * Creates a topic under the lock, so that it does not end a pause of one that was created meanwhile. `removes`: see `Topic.configure`.
   */
  create(
    name: string,
    settings: TopicSettings,
    removes: boolean,
  ): Promise<{ readonly known: KnownTopic; readonly isNew: boolean }> {
    return this.#withLock(name, async () => {
      const known = await this.#known.read(name)
      return known === undefined ? this.#make(name, settings, removes) : { known, isNew: false }
    })
  }

  async #make(
    name: string,
    settings: TopicSettings,
    removes: boolean,
  ): Promise<{ readonly known: KnownTopic; readonly isNew: boolean }> {
    if ((await this.#registry.size()) >= this.#options.maxTopics)
      throw new TopicError('ERR_TOO_MANY_TOPICS', `at most ${this.#options.maxTopics} topics are allowed`)
    const record = { settings, createdAt: this.#options.now() }
    const made = await this.#known.whileCreating(name, async () => {
      const used = await this.#known.use(name, record)
      // before the registry has the topic, so that no instance uses the queue without its settings
      await used.topic.configure({ enable: true, removes })
      return (await this.#registry.create(name, record)) ? used : undefined
    })
    if (made !== undefined) {
      this.#known.onChanged()
      return { known: made, isNew: true }
    }
    const other = await this.#known.read(name)
    if (other === undefined) throw topicNotFound(name)
    await other.topic.configure({ enable: false, removes })
    return { known: other, isNew: false }
  }

  async #get(name: string): Promise<KnownTopic> {
    const known = await this.#known.read(name)
    if (known === undefined) throw topicNotFound(name)
    return known
  }
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
