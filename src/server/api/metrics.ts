import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Health } from '../console/health.js'
import type { Paused } from '../console/pauses.js'
import type { Topic } from '../topics/topic.js'
import type { Topics } from '../topics/topics.js'

const LATENESS_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 10, 60, 600]

/** The most topics whose sizes are measured; more would make each scrape expensive. */
const MOST_TOPICS = 100
const TROUBLES = ['broken', 'operator', 'gone', 'failing'] as const
const SIDES = ['receive', 'push'] as const
const STATES = ['visible', 'delayed', 'inFlight', 'dead'] as const

/** An endpoint that was tried and took no webhook for this time is failing. */
const FAILING_MS = 60_000

/** The class of an endpoint: a label by endpoint would have as many values as an operator has endpoints. */
export function endpointClassOf(failingMs: number): 'well' | 'failing' {
  return failingMs < FAILING_MS ? 'well' : 'failing'
}

/** The metrics of an instance; the sizes of topics are the same on all instances. */
export class Metrics {
  readonly registry = new Registry()
  readonly requests = new Histogram({
    name: 'redelayed_http_request_duration_seconds',
    help: 'Time until a request was answered, with the waits of receives.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [this.registry],
  })
  readonly pushed = new Counter({
    name: 'redelayed_messages_pushed_total',
    help: 'Pushed messages by outcome; refused: not accepted.',
    labelNames: ['outcome'] as const,
    registers: [this.registry],
  })
  readonly received = new Counter({
    name: 'redelayed_messages_received_total',
    help: 'Messages returned by receives.',
    registers: [this.registry],
  })
  readonly givenBack = new Counter({
    name: 'redelayed_messages_given_back_total',
    help: 'Messages given back because their client hung up before it got them.',
    registers: [this.registry],
  })
  readonly lateness = new Histogram({
    name: 'redelayed_receive_lateness_seconds',
    help: 'Time from the due time of the most overdue message of a receive until it was handed out; grows with a backlog.',
    buckets: LATENESS_SECONDS,
    registers: [this.registry],
  })
  readonly leases = new Counter({
    name: 'redelayed_leases_total',
    help: 'Answers to leases.',
    labelNames: ['operation', 'answer'] as const,
    registers: [this.registry],
  })
  readonly webhooks = new Counter({
    name: 'redelayed_webhooks_total',
    help: 'Sent webhooks by outcome, by the class of the answer, and by the class of the endpoint; failing: it has taken none for a minute.',
    labelNames: ['outcome', 'status', 'endpoint_class'] as const,
    registers: [this.registry],
  })
  readonly webhookSeconds = new Histogram({
    name: 'redelayed_webhook_duration_seconds',
    help: 'Time from the request until the answer of the endpoint.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
    registers: [this.registry],
  })
  readonly webhookLateness = new Histogram({
    name: 'redelayed_webhook_lateness_seconds',
    help: 'Time from the due time of a message until an instance took it for its endpoint; grows with a backlog.',
    buckets: LATENESS_SECONDS,
    registers: [this.registry],
  })
  readonly refusedConnections = new Counter({
    name: 'redelayed_connections_refused_total',
    help: 'Connections beyond --max-connections.',
    registers: [this.registry],
  })
  readonly waiting = new Gauge({
    name: 'redelayed_waiting_receives',
    help: 'Receives that wait for messages.',
    registers: [this.registry],
  })
  readonly streams = new Gauge({
    name: 'redelayed_event_streams',
    help: 'Clients of /v1/events.',
    registers: [this.registry],
  })
  /** The bytes of the bodies of all requests under way. */
  bodyBytes: () => number = () => 0
  readonly #bodies: Gauge = new Gauge({
    name: 'redelayed_request_body_bytes',
    help: 'Bytes of the bodies of all requests under way.',
    registers: [this.registry],
    collect: () => {
      this.#bodies.set(this.bodyBytes())
    },
  })
  /** The bytes of the large answers under way. */
  answerBytes: () => number = () => 0
  readonly #answers: Gauge = new Gauge({
    name: 'redelayed_answer_bytes',
    help: 'Bytes of the large answers under construction or sent.',
    registers: [this.registry],
    collect: () => {
      this.#answers.set(this.answerBytes())
    },
  })
  /** The states of the endpoints. */
  health: () => Promise<Pick<Health, 'endpoints' | 'wellEndpoints'>> = async () => ({
    endpoints: [],
    wellEndpoints: null,
  })
  readonly #endpoints: Gauge<'state'> = new Gauge({
    name: 'redelayed_endpoints',
    help: 'Endpoints by state; broken: their breaker is open, or one webhook tries again; operator, gone and failing: why they are disabled.',
    labelNames: ['state'] as const,
    registers: [this.registry],
    collect: async () => {
      const { endpoints, wellEndpoints } = await this.health()
      this.#endpoints.reset()
      if (wellEndpoints === null) return
      this.#endpoints.set({ state: 'well' }, wellEndpoints)
      for (const state of TROUBLES) this.#endpoints.set({ state }, endpoints.filter(({ is }) => is === state).length)
    },
  })
  readonly #sizes = new Gauge({
    name: 'redelayed_topic_messages',
    help: `Messages of each topic by state, for at most ${MOST_TOPICS} topics.`,
    labelNames: ['topic', 'state'] as const,
    registers: [this.registry],
  })
  readonly #oldest = new Gauge({
    name: 'redelayed_topic_oldest_visible_seconds',
    help: 'How long the first visible message of each topic has been waiting.',
    labelNames: ['topic'] as const,
    registers: [this.registry],
  })

  /** Which sides of topics are paused. */
  pausesOf: (topics: readonly Topic[]) => Promise<readonly (readonly Paused[])[]> = async () => []
  readonly #paused = new Gauge({
    name: 'redelayed_topic_paused',
    help: '1 if receives from a topic, or pushes to it, are paused, else 0; for the same topics.',
    labelNames: ['topic', 'side'] as const,
    registers: [this.registry],
  })
  readonly #lag = new Gauge({
    name: 'redelayed_journal_lag_changes',
    help: 'Changes of each topic that SQL does not have yet, for the same topics.',
    labelNames: ['topic'] as const,
    registers: [this.registry],
  })
  readonly #journal = new Gauge({
    name: 'redelayed_journal_up',
    help: '1 if the database of the journal answers; 0 if it does not, or there is no journal.',
    registers: [this.registry],
  })
  readonly #tooLarge = new Counter({
    name: 'redelayed_journal_too_large_total',
    help: 'Messages and new payloads in Redis that are too large for SQL.',
    registers: [this.registry],
  })
  readonly #leftOut = new Counter({
    name: 'redelayed_journal_left_out_total',
    help: 'About how many messages of queues that began anew were too many to read: SQL may lack them.',
    registers: [this.registry],
  })

  /** The text of a scrape. */
  async text(topics: Topics): Promise<string> {
    await this.#measure(topics)
    return this.registry.metrics()
  }

  async #measure(topics: Topics): Promise<void> {
    const { tooLarge, leftOut } = topics.notInJournal
    this.#tooLarge.reset()
    this.#tooLarge.inc(tooLarge)
    this.#leftOut.reset()
    this.#leftOut.inc(leftOut)
    this.#journal.set(0)
    if (topics.hasJournal)
      this.#journal.set(
        await topics.pingJournal().then(
          () => 1,
          () => 0,
        ),
      )
    const names = await topics.someNames(MOST_TOPICS)
    const counted = await Promise.all(
      names.map(
        async (name) =>
          [
            name,
            await topics
              .open(name)
              .then(async (topic) => ({
                counts: await topic.counts(),
                paused: (await this.pausesOf([topic]))[0],
                lag: topics.hasJournal ? (await topics.journalLag(topic)).changes : undefined,
              }))
              .catch(() => undefined), // one topic with a wrong key leaves the others their figures
          ] as const,
      ),
    )
    this.#sizes.reset()
    this.#oldest.reset()
    this.#lag.reset()
    this.#paused.reset()
    for (const [topic, measured] of counted) {
      if (measured === undefined) continue // deleted a moment ago
      const { counts, lag, paused } = measured
      for (const side of SIDES) this.#paused.set({ topic, side }, paused?.includes(side) ? 1 : 0)
      if (lag !== undefined) this.#lag.set({ topic }, lag)
      for (const state of STATES) this.#sizes.set({ topic, state }, counts[state])
      this.#oldest.set({ topic }, counts.oldestMs / 1_000)
    }
  }
}
