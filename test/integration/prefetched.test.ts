import { expect } from 'chai'
import { fork, type ChildProcess } from 'node:child_process'
import { codecs } from '../../src/index.js'
import { eventually, once } from '../support/events.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup } from './fixtures.js'

const INNOCENT = ['a', 'b', 'c', 'd']

describe('messages that a killed worker had prefetched', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  function make() {
    const client = makeClient()
    const queue = client.getReliableQueue<string>(uniqueName(), { codec: codecs.string() })
    const start = (): ChildProcess => {
      const child = fork(new URL('fixtures/prefetching-process.ts', import.meta.url), [redisUrl(), queue.name], {
        execArgv: ['--import', 'tsx'],
      })
      onCleanup(() => child.kill('SIGKILL'))
      return child
    }
    /** Its messages must be visible again before the next worker begins. */
    const noneInFlight = async () => {
      await eventually(async () => expect(await queue.countUnacknowledgedMessages()).to.equal(0))
      await queue.disableOperation('poll')
      await eventually(async () => {
        await queue.poll() // hands out nothing and brings back what has ended, in as many scripts as their time allows
        const messages = await queue.getAllRaw(['poison', 'begun', ...INNOCENT])
        expect(messages.filter((message) => message?.inFlight)).to.deep.equal([])
      })
      await queue.enableOperation('poll')
    }
    return { queue, start, noneInFlight }
  }

  for (const poison of ['kills its handler', 'kills its decoder']) {
    it(`lose no attempt, and a message that ${poison} ends in the dead letters`, async () => {
      const { queue, start, noneInFlight } = make()
      await queue.add(poison, { id: 'poison', priority: 9, deliveryLimit: 2 })
      await queue.addMany(INNOCENT.map((text) => ({ payload: text, id: text })))
      const attempts: number[] = []
      let killed = 0
      while (await queue.contains('poison')) {
        expect(++killed, 'processes killed').to.be.at.most(5)
        const child = start()
        child.on('message', (handled) => attempts.push((handled as [string, number])[1]))
        const ended = once(child, 'exit', () => true, 20_000)
        // the last one meets no poison any more
        await Promise.race([ended, eventually(async () => expect(await queue.size()).to.equal(0), 20_000)])
        if (await queue.contains('poison')) {
          await noneInFlight()
          const states = (await queue.getAll(INNOCENT)).map((message) => [message?.attempts, message?.failures])
          expect(states).to.deep.equal(INNOCENT.map(() => [0, []]))
        } else child.kill('SIGKILL')
        await ended
      }
      // once before it was known to kill, and then as often as it may
      expect(killed).to.be.within(3, 4)
      expect(await queue.deadLetters.get('poison')).to.not.equal(null)
      expect(attempts).to.deep.equal(INNOCENT.map(() => 1))
    })
  }

  it('count as attempts once their handler has begun, from the first heartbeat at the latest', async () => {
    const { queue, start, noneInFlight } = make()
    await queue.add('never ends', { id: 'begun', priority: 9 })
    await queue.addMany(INNOCENT.map((text) => ({ payload: text, id: text })))
    const child = start()
    const ended = once(child, 'exit', () => true, 20_000)
    await once(child, 'message', () => true, 20_000)
    // two heartbeats later, by what they do
    const { visibleAt: first } = (await queue.get('begun'))!
    await eventually(async () => expect((await queue.get('begun'))!.visibleAt).to.be.above(first + 300))
    child.kill('SIGKILL')
    await ended
    await noneInFlight()
    const messages = await queue.getAll(['begun', ...INNOCENT])
    expect(messages.slice(1).map((message) => message?.attempts)).to.deep.equal(INNOCENT.map(() => 0))
    expect(messages[0]?.attempts).to.be.above(0)
    expect(messages[0]?.failures[0]?.reason).to.equal('its visibility ended')
  })
})
