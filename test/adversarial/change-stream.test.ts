/** What a stranger with nothing but a connection to Redis can write into the change stream of a queue, as its readers meet it. */
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { codecs, type ChangeBatch, type QuarantinedEvent, type ReliableQueue } from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { cleanUp, makeClient, rawTo } from '../integration/fixtures.js'
import { eventually } from '../support/events.js'
import { requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'

const MOST = '18446744073709551615'

describe('attacks on the change stream', function () {
  this.timeout(60_000)
  let server: RedisServer
  let raw: Redis

  before(async function () {
    requireServerBin(this)
    server = await startRedis()
  })
  after(() => server?.stop())
  beforeEach(() => (raw = rawTo(server.port)))
  afterEach(cleanUp)

  async function make(keep: 'groups' | 'recent' = 'groups') {
    const client = makeClient({ url: server.url })
    const quarantined: QuarantinedEvent[] = []
    client.on('error', () => undefined)
    client.on('quarantined', (event) => quarantined.push(event))
    const queue = client.getReliableQueue<string>(uniqueName(), { codec: codecs.string() })
    await queue.setConfig({ changes: { keep } })
    await queue.add('x', { id: 'first' })
    return { queue, quarantined, key: reliableKeys(queue.name).changes }
  }

  /** The ids of what a reader gets, of a group or without one; it acknowledges each. */
  function follow(queue: ReliableQueue<string>, group?: string): string[] {
    const ids: string[] = []
    const read = async (changes: AsyncIterable<ChangeBatch>): Promise<void> => {
      for await (const batch of changes) {
        ids.push(...batch.changes.map(({ id }) => id))
        if (group !== undefined) await queue.acknowledgeChanges(group, batch.position)
      }
    }
    void read(queue.changes({ from: 'start', ...(group !== undefined && { group }) })).catch(() => undefined)
    return ids
  }

  for (const [what, id, fields] of [
    ['the last id possible', `${MOST}-${MOST}`, ['any', 'thing']],
    ['an id of no clock, with an entry that can be read', `${MOST.slice(0, -1)}4-0`, ['changes', 'e c\nk,,,,1,1,0\nx']],
  ] as const) {
    for (const group of ['group', undefined]) {
      it(`${what} ends no reader ${group === undefined ? 'without a' : 'of a'} group: it gets what happens afterwards`, async () => {
        const { queue, quarantined, key } = await make(group === undefined ? 'recent' : 'groups')
        const ids = follow(queue, group)
        await eventually(() => expect(ids).to.deep.equal(['first']))
        await raw.xadd(key, id, ...fields)
        await eventually(() => expect(quarantined).to.have.length(1))
        for (const next of ['second', 'third']) await queue.add('x', { id: next })
        await eventually(() => expect(ids).to.deep.equal(['first', 'second', 'third']))
        if (group !== undefined)
          await eventually(async () => expect((await queue.changeStatus()).groups[0]?.pending).to.equal(0))
      })
    }
  }

  for (const place of ['9999999999999-0', `${MOST}-${MOST}`]) {
    it(`a group that is set behind ${place} gets what is there, and what happens afterwards`, async () => {
      const { queue, key } = await make()
      const ids = follow(queue, 'group')
      await eventually(() => expect(ids).to.deep.equal(['first']))
      await raw.xgroup('SETID', key, 'group', place)
      for (const next of ['second', 'third']) await queue.add('x', { id: next })
      await eventually(() => expect(ids).to.include.members(['second', 'third']), 30_000)
    })
  }

  it('a reader without a group continues where the stream begins anew with earlier ids', async () => {
    const { queue, key } = await make('recent')
    const ids = follow(queue)
    await eventually(() => expect(ids).to.deep.equal(['first']))
    await raw.xadd(key, '9999999999999-0', 'changes', 'x')
    await queue.add('x', { id: 'second' })
    await eventually(() => expect(ids).to.deep.equal(['first', 'second']))
    await raw.del(key)
    await queue.add('x', { id: 'third' })
    await eventually(() => expect(ids).to.deep.equal(['first', 'second', 'third']), 30_000)
  })

  it('10,000 entries of a stranger cost a reader a command for each hundred, not for each', async () => {
    const { queue, quarantined, key } = await make()
    for (let page = 0; page < 10; page++) {
      const pipeline = raw.pipeline()
      for (let n = 0; n < 1_000; n++) pipeline.xadd(key, '*', 'any', 'thing')
      await pipeline.exec()
    }
    await queue.add('x', { id: 'last' })
    await raw.config('RESETSTAT')
    const ids = follow(queue, 'group')
    await eventually(() => expect(ids).to.deep.equal(['first', 'last']), 30_000)
    expect(quarantined.reduce((sum, { count }) => sum + count, 0)).to.equal(10_000)
    expect(quarantined.length).to.be.lessThan(200)
    const calls = Number(/cmdstat_xack:calls=(\d+)/.exec(await raw.info('commandstats'))?.[1])
    expect(calls).to.be.lessThan(250)
  })
})
