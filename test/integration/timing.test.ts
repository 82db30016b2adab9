import { expect } from 'chai'
import { dueOf } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { ORDERS, cleanUp, makePair, numbers, onCleanup, redisNow, takeAll } from './fixtures.js'

/** Generous, for a loaded CI machine; the benchmarks measure what is reached really. */
const MEDIAN_MS = 20
const P99_MS = 250
const MESSAGES = 300

/**
 * When each payload reached the destination, in milliseconds of the Redis clock, by the server's MONITOR. To be called
 * while the server is idle: ioredis fails when the first line comes together with the reply to MONITOR.
 */
async function watchArrivals(destination: string): Promise<Map<string, number[]>> {
  const arrivals = new Map<string, number[]>()
  const monitor = await rawClient().duplicate({ lazyConnect: true }).monitor()
  onCleanup(() => monitor.disconnect())
  monitor.on('monitor', (time: string, [command, key, ...payloads]: string[]) => {
    if (command?.toUpperCase() !== 'RPUSH' || key !== destination) return
    for (const payload of payloads) arrivals.set(payload, [...(arrivals.get(payload) ?? []), Number(time) * 1000])
  })
  return arrivals
}

describe('on time by the Redis clock', () => {
  afterEach(cleanUp)

  for (const layout of ORDERS) {
    it(`layout '${layout}': ${MESSAGES} random delays, none early, none twice, none late`, async () => {
      const name = uniqueName()
      const arrivals = await watchArrivals(name)
      const producer = makePair(layout, { queueName: name })
      const consumer = makePair(layout, { queueName: name })
      const taken = takeAll(consumer.queue, MESSAGES)
      const due = new Map<string, number>()
      for (const value of numbers(MESSAGES)) {
        due.set(value, dueOf(await producer.delayed.offer(value, 20 + Math.floor(Math.random() * 1000))))
      }

      expect((await taken).sort()).to.deep.equal(numbers(MESSAGES).sort())
      await eventually(() => expect(arrivals.size).to.equal(MESSAGES))
      const lateness = [...arrivals].map(([value, times]) => {
        expect(times, `arrivals of ${value}`).to.have.lengthOf(1)
        return times[0]! - due.get(value)!
      })
      expect(Math.min(...lateness), 'earliest').to.be.at.least(0)
      lateness.sort((a, b) => a - b)
      expect(lateness[MESSAGES / 2], 'median').to.be.below(MEDIAN_MS)
      expect(lateness[Math.floor(MESSAGES * 0.99)], 'p99').to.be.below(P99_MS)
    })

    it(`layout '${layout}': a message that comes before an armed timer is not held up by it`, async () => {
      const { delayed, queue } = makePair(layout)
      await delayed.offer('late', 60_000)
      for (const value of ['a', 'b', 'c']) {
        const ticket = await delayed.offer(value, 40)
        expect(await queue.poll(2000)).to.equal(value)
        expect((await redisNow()) - dueOf(ticket)).to.be.within(0, 500)
      }
    })
  }

  it("clock 'local' delivers by this process's clock", async () => {
    const { delayed, queue } = makePair('redisson', { clock: 'local' })
    const before = Date.now()
    const ticket = await delayed.offer('x', 80)
    expect(dueOf(ticket)).to.be.within(before + 80, Date.now() + 80)
    expect(await queue.take()).to.equal('x')
    expect(Date.now()).to.be.at.least(dueOf(ticket))
  })
})
