import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Topics } from '../topics/topics.js'

const LATENESS_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 10, 60, 600]

/** Of so many topics the sizes are measured; more would make each scrape expensive. */
const MOST_TOPICS = 100
const STATES = ['visible', 'delayed', 'inFlight', 'dead'] as const

/** What the service measures, each instance for itself; the sizes of topics are the same on all. */
export class Metrics {
  readonly registry = new Registry()
  readonly requests = new Histogram({
    name: 'redelayed_http_request_duration_seconds',
    help: 'Time until a request was answered; waits of receives count.',
    labelNames: ['method', 'route', 'status'] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60],
    registers: [this.registry],
  })
  readonly pushed = new Counter({
    name: 'redelayed_messages_pushed_total',
    help: 'Messages of pushes by what became of them; refused: they were not accepted.',
    labelNames: ['outcome'] as const,
    registers: [this.registry],
  })
  readonly received = new Counter({
    name: 'redelayed_messages_received_total',
    help: 'Messages that receives answered.',
    registers: [this.registry],
  })
  readonly givenBack = new Counter({
    name: 'redelayed_messages_given_back_total',
    help: 'Messages whose client hung up before it had them.',
    registers: [this.registry],
  })
  readonly lateness = new Histogram({
    name: 'redelayed_receive_lateness_seconds',
    help: 'From the due time of the most overdue message of a receive until it was handed out; grows with a backlog.',
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
    help: 'Webhooks that were sent, by what became of them and by the class of the answer.',
    labelNames: ['outcome', 'status'] as const,
    registers: [this.registry],
  })
  readonly webhookSeconds = new Histogram({
    name: 'redelayed_webhook_duration_seconds',
    help: 'From the request until the answer of the endpoint.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60],
    registers: [this.registry],
  })
  readonly webhookLateness = new Histogram({
    name: 'redelayed_webhook_lateness_seconds',
    help: 'From the due time of a message until an instance took it for its endpoint; grows with a backlog.',
    buckets: LATENESS_SECONDS,
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
  /** Of all requests under way. */
  bodyBytes: () => number = () => 0
  readonly #bodies: Gauge = new Gauge({
    name: 'redelayed_request_body_bytes',
    help: 'Bytes of the bodies of all requests under way.',
    registers: [this.registry],
    collect: () => {
      this.#bodies.set(this.bodyBytes())
    },
  })
  /** Of all requests under way. */
  answerBytes: () => number = () => 0
  readonly #answers: Gauge = new Gauge({
    name: 'redelayed_answer_bytes',
    help: 'Bytes of the large answers that are made or sent.',
    registers: [this.registry],
    collect: () => {
      this.#answers.set(this.answerBytes())
    },
  })
  readonly #sizes = new Gauge({
    name: 'redelayed_topic_messages',
    help: `Messages of each topic by state, of ${MOST_TOPICS} topics at most.`,
    labelNames: ['topic', 'state'] as const,
    registers: [this.registry],
  })
  readonly #oldest = new Gauge({
    name: 'redelayed_topic_oldest_visible_seconds',
    help: 'For how long the first visible message of each topic has been waiting.',
    labelNames: ['topic'] as const,
    registers: [this.registry],
  })

  readonly #lag = new Gauge({
    name: 'redelayed_journal_lag_changes',
    help: 'Changes of the messages of each topic that SQL does not have yet, of the same topics.',
    labelNames: ['topic'] as const,
    registers: [this.registry],
  })
  readonly #journal = new Gauge({
    name: 'redelayed_journal_up',
    help: '1 when the database of the journal answers; 0 when it does not, or there is no journal.',
    registers: [this.registry],
  })
  readonly #tooLarge = new Counter({
    name: 'redelayed_journal_too_large_total',
    help: 'Messages and new payloads in Redis that are larger than SQL takes.',
    registers: [this.registry],
  })
  readonly #leftOut = new Counter({
    name: 'redelayed_journal_left_out_total',
    help: 'About how many messages of queues that began anew were not read, as there were too many: SQL may not have them.',
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
            await topics.open(name).then(
              async (topic) => ({
                counts: await topic.counts(),
                lag: topics.hasJournal ? (await topics.journalLag(topic)).changes : undefined,
              }),
              () => undefined,
            ),
          ] as const,
      ),
    )
    this.#sizes.reset()
    this.#oldest.reset()
    this.#lag.reset()
    for (const [topic, measured] of counted) {
      if (measured === undefined) continue // deleted a moment ago
      const { counts, lag } = measured
      if (lag !== undefined) this.#lag.set({ topic }, lag)
      for (const state of STATES) this.#sizes.set({ topic, state }, counts[state])
      this.#oldest.set({ topic }, counts.oldestMs / 1_000)
    }
  }
}
