/** Limits of a reliable queue over all processes. Only announcements wake the consumers: no client here sweeps within a test. */
import { expect } from 'chai'
import {
  InvalidArgumentError,
  type ReliableMessage,
  type ReliableQueue,
  type ReliableQueueConfig,
} from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, rejection, track } from './fixtures.js'
import { startWorker, untilItWaits, type Report } from './fixtures/limited-workers.js'

const NO_SWEEP = { sweepInterval: 3_600_000 } as const

async function makeQueue(config: ReliableQueueConfig): Promise<ReliableQueue<number>> {
  const name = uniqueName('limits')
  forgetReliable(name)
  const queue = makeClient(NO_SWEEP).getReliableQueue<number>(name)
  await queue.setConfig(config)
  return queue
}

/** The most handlers that ran at the same time. */
function mostAtOnce(reports: readonly Report[]): number {
  const steps = reports.map(({ at, is }) => ({ at, change: is === 'begun' ? 1 : -1 }))
  steps.sort((a, b) => a.at - b.at || a.change - b.change)
  let [now, most] = [0, 0]
  for (const { change } of steps) most = Math.max(most, (now += change))
  return most
}

describe('limits over all processes', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  /** Three workers in processes of their own; gives what they have reported. */
  function startThree(queue: ReliableQueue<number>, takesMs: number): () => Report[] {
    const workers = [1, 2, 3].map(() => startWorker(queue, takesMs))
    return () => workers.flatMap(({ reports }) => reports)
  }

  it('handles no more at once than the concurrency, in three processes, and all of them', async () => {
    const queue = await makeQueue({ concurrency: 3 })
    await queue.addMany(Array.from({ length: 90 }, (_, n) => ({ payload: n })))
    const reports = startThree(queue, 10)
    await eventually(async () => expect(await queue.size()).to.equal(0), 30_000)
    await eventually(() => expect(reports()).to.have.length(180))
    expect(mostAtOnce(reports())).to.equal(3)
    expect(new Set(reports().map(({ id }) => id)).size).to.equal(90)
  })

  it('has the slot of a killed consumer again when its visibility ends, and no more than that', async () => {
    const queue = await makeQueue({ concurrency: 1 })
    await queue.addMany([
      { payload: 1, id: 'first', priority: 9 },
      { payload: 2, id: 'second' },
    ])
    const { child, reports } = startWorker(queue, 3_600_000, 3_000)
    await eventually(() => expect(reports).to.have.length(1), 20_000)
    const ended = once(child, 'exit', () => true, 20_000)
    child.kill('SIGKILL')
    await ended
    const held = (await queue.get('first'))!
    expect(await queue.poll()).to.equal(null) // the slot is held still
    const next = (await queue.poll({ timeout: 20_000 }))!
    expect(next.id).to.equal('first')
    expect(next.polledAt).to.be.at.least(held.visibleAt)
    expect(await queue.poll()).to.equal(null)
    await next.acknowledge()
    expect((await queue.poll())?.id).to.equal('second')
  })

  it('has no more deliveries in any stretch of time than the rate, in three processes, and nearly as many', async () => {
    const queue = await makeQueue({ rateLimit: { max: 20, perMs: 400 } })
    await queue.addMany(Array.from({ length: 120 }, (_, n) => ({ payload: n })))
    const reports = startThree(queue, 0)
    await eventually(async () => expect(await queue.size()).to.equal(0), 30_000)
    await eventually(() => expect(reports()).to.have.length(240))
    const times = reports()
      .flatMap(({ is, polledAt }) => (is === 'begun' ? [polledAt] : []))
      .sort((a, b) => a - b)
    // the reply says whole milliseconds, so that two of them can be one nearer
    for (let n = 0; n + 20 < times.length; n++) expect(times[n + 20]! - times[n]!).to.be.at.least(399)
    expect(times.at(-1)! - times[0]!).to.be.at.least(2_000)
  })

  const ends: Record<string, (held: ReliableMessage<number>, queue: ReliableQueue<number>) => Promise<unknown>> = {
    'an acknowledgement': (held) => held.acknowledge(),
    'a negative acknowledgement': (held) => held.negativeAcknowledge({ delay: '1h' }),
    'a rejection': (held) => held.negativeAcknowledge({ reject: true }),
    'a removal': (held, queue) => queue.remove(held.id),
    'a replacement': (held, queue) => queue.add(3, { id: held.id, existing: 'replace', delay: '1h' }),
    'the end of a visibility that was cut short': (held) => held.extend(50),
    'a higher limit': (_, queue) => queue.setConfig({ concurrency: 2 }),
  }
  for (const [what, end] of Object.entries(ends)) {
    it(`${what} wakes a consumer of another client that waits at the limit`, async () => {
      const queue = await makeQueue({ concurrency: 1 })
      await queue.addMany([{ payload: 1, id: 'held', priority: 9 }, { payload: 2 }, { payload: 3 }])
      const held = (await queue.poll())!
      const other = makeClient(NO_SWEEP).getReliableQueue<number>(queue.name)
      const waiting = track(other.poll({ timeout: 20_000 }))
      await untilItWaits(queue, other)
      expect(waiting.settled).to.equal(false)
      const from = performance.now()
      await end(held, queue)
      expect(await waiting.promise).to.not.equal(null)
      expect(performance.now() - from).to.be.lessThan(10_000) // far less than its visibility
    })
  }

  it('a poll that does not wait gets as many messages as the limit leaves', async () => {
    const queue = await makeQueue({ concurrency: 3 })
    await queue.addMany(Array.from({ length: 9 }, (_, n) => ({ payload: n })))
    expect(await queue.pollMany({ count: 2 })).to.have.length(2)
    expect(await queue.pollMany({ count: 9 })).to.have.length(1)
    expect(await queue.pollMany({ count: 9 })).to.have.length(0)
  })

  it('is set, read and removed as the rest of the configuration, and refused if it is invalid', async () => {
    const queue = await makeQueue({ concurrency: 3, rateLimit: { max: 5, perMs: '1m' } })
    expect(await queue.getConfig()).to.deep.equal({ concurrency: 3, rateLimit: { max: 5, perMs: 60_000 } })
    await queue.setConfig({ concurrency: null, rateLimit: null })
    expect(await queue.getConfig()).to.deep.equal({})
    const wrong: unknown[] = [
      { concurrency: 0 },
      { concurrency: 1_000_001 },
      { rateLimit: 5 },
      { rateLimit: { max: 0, perMs: 5 } },
      { rateLimit: { max: 5 } },
      { rateLimit: { max: 5, perMs: '2d' } },
      { rateLimit: { max: 5, perMs: 5, burst: 5 } },
    ]
    for (const config of wrong) {
      expect(await rejection(queue.setConfig(config as ReliableQueueConfig))).to.be.instanceOf(InvalidArgumentError)
    }
  })
})
