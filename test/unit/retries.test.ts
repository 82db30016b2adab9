import { expect } from 'chai'
import { DueScheduler } from '../../src/scheduler/due-scheduler.js'
import { Retries } from '../../src/scheduler/retries.js'
import { RemoteClock } from '../../src/timing/remote-clock.js'
import { FakeClock } from '../support/fake-clock.js'
import { randomFrom } from '../support/random.js'

const QUEUES = 300
const IDLE = { moved: 0, next: null, subscribers: 1, leader: 'none', leaseUntil: 0, isStuck: false } as const

/** Queues on one server, which refuses their scripts while `server.refuses`. */
function setUp(queues = QUEUES) {
  const clock = new FakeClock()
  const retries = new Retries(clock)
  const random = randomFrom(1)
  const server = { refuses: true, asked: 0, served: new Set<number>() }
  const schedulers = Array.from(
    { length: queues },
    (_, queue) =>
      new DueScheduler({
        fineWaits: undefined,
        script: async () => {
          server.asked++
          if (server.refuses) throw new Error('LOADING')
          server.served.add(queue)
          return { ...IDLE, now: clock.now() }
        },
        isBrief: () => true,
        onError: () => undefined,
        clock,
        remote: new RemoteClock(clock),
        random,
        retries,
      }),
  )
  return { clock, retries, server, schedulers }
}

describe('Retries', () => {
  it('of many queues at a server that refuses every script are no more than the sweeps', async () => {
    const { clock, server, schedulers } = setUp()
    for (const scheduler of schedulers) scheduler.wake()
    await clock.advance(500)
    server.asked = 0
    await clock.advance(1_000)
    expect(server.asked).to.be.within(250, 340) // without a common limit 1,600
    for (const scheduler of schedulers) await scheduler.stop()
    expect(clock.pending).to.deep.equal([])
  })

  it('all go when the first of them succeeds', async () => {
    const { clock, server, schedulers } = setUp()
    for (const scheduler of schedulers) scheduler.wake()
    await clock.advance(500)
    server.refuses = false
    await clock.advance(600)
    expect(server.served.size).to.equal(QUEUES)
    for (const scheduler of schedulers) await scheduler.stop()
    expect(clock.pending).to.deep.equal([])
  })

  it('of a few queues do not wait', async () => {
    const { clock, server, schedulers } = setUp(3)
    for (const scheduler of schedulers) scheduler.wake()
    await clock.advance(0)
    server.asked = 0
    await clock.advance(1_000)
    expect(server.asked).to.be.within(9, 24) // each after 125 to 250 ms
    for (const scheduler of schedulers) await scheduler.stop()
  })

  it('do not keep a queue that is stopped while it waits for its turn', async () => {
    const { clock, server, schedulers } = setUp()
    for (const scheduler of schedulers) scheduler.wake()
    await clock.advance(400)
    server.asked = 0
    await Promise.all(schedulers.map((scheduler) => scheduler.stop()))
    expect(server.asked).to.equal(0)
    expect(clock.pending).to.deep.equal([])
  })
})
