/** Data that another program with only a connection to Redis can write into the change stream of a queue, as its readers meet them. */
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
    const { changes: key, config } = reliableKeys(queue.name)
    return { queue, quarantined, key, config }
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

  /** All at the same time, because each waits for the check that a reader makes every five seconds. Gives what failed. */
  async function failuresOf<T>(cases: readonly T[], play: (each: T) => Promise<void>): Promise<string[]> {
    const ends = await Promise.allSettled(cases.map(play))
    return ends.flatMap((end, at) =>
      end.status === 'fulfilled' ? [] : [`${JSON.stringify(cases[at])}: ${String(end.reason)}`],
    )
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

  it('a group that is set after a place that no entry reaches gets the existing entries and all later ones', async () => {
    const failures = await failuresOf(['9999999999999-0', `${MOST}-${MOST}`], async (place) => {
      const { queue, key } = await make()
      const ids = follow(queue, 'group')
      await eventually(() => expect(ids).to.deep.equal(['first']))
      await raw.xgroup('SETID', key, 'group', place)
      for (const next of ['second', 'third']) await queue.add('x', { id: next })
      await eventually(() => expect(ids).to.include.members(['second', 'third']), 30_000)
    })
    expect(failures).to.deep.equal([])
  })

  for (const [what, epoch] of [
    ['no epoch', ''],
    ['an epoch that is longer than any', 'E'.repeat(60)],
  ] as const) {
    it(`a setting with ${what} hides no change from the readers`, async () => {
      const { queue, quarantined, key, config } = await make()
      const [ofGroup, free] = [follow(queue, 'group'), follow(queue)]
      await eventually(() => expect([ofGroup, free]).to.deep.equal([['first'], ['first']]))
      await raw.hset(config, 'changes', `g,1000,,0,${epoch}`)
      for (const next of ['second', 'third']) await queue.add('x', { id: next })
      await eventually(() => expect(ofGroup).to.deep.equal(['first', 'second', 'third']))
      expect(quarantined).to.deep.equal([])
      const epochs = (await raw.xrange(key, '-', '+')).map(([, [, entry]]) => entry!.split(' ')[0])
      expect(epochs.at(-1))
        .to.match(/^[0-9a-f]{16}$/)
        .and.to.equal((await queue.changeStatus()).epoch)
    })
  }

  it('an entry from the future ends neither a reader without a group nor allEvents() when the stream begins anew', async () => {
    const [HALF_A_MINUTE, CENTURIES] = [30_000, 8_000_000_000_000]
    const cases = [HALF_A_MINUTE, CENTURIES].flatMap((aheadMs) =>
      (['another', 'the same'] as const).map((epoch) => ({ aheadMs, epoch })),
    )
    const failures = await failuresOf(cases, async ({ aheadMs, epoch }) => {
      const { queue, key } = await make('recent')
      const ids = follow(queue)
      const added: string[] = []
      queue.on('added', (event) => added.push(...event.ids))
      const end = await queue.allEvents()
      await eventually(() => expect(ids).to.deep.equal(['first']))
      const [[, [, entry = '']] = ['', []]] = await raw.xrange(key, '-', '+')
      const forged = entry.replace('first', 'forge')
      await raw.xadd(key, `${Date.now() + aheadMs}-0`, 'changes', forged)
      await eventually(() => expect([ids, added]).to.deep.equal([['first', 'forge'], ['forge']]))
      const anew = raw.multi().del(key)
      if (epoch === 'the same') anew.xadd(key, '*', 'changes', forged)
      await anew.exec()
      await queue.add('x', { id: 'second' })
      let next = 0
      await eventually(
        async () => {
          await queue.add('x', { id: `next ${next++}` })
          expect([ids, added].map((got) => got.at(-1)!.slice(0, 4))).to.deep.equal(['next', 'next'])
        },
        15_000,
        500,
      )
      // with the same epoch, and a time that a clock can have, it might be a failover: then nothing may come twice
      if (epoch === 'another' || aheadMs === CENTURIES) for (const got of [ids, added]) expect(got).to.include('second')
      await end()
    })
    expect(failures).to.deep.equal([])
  })

  for (const groups of [1, 1_001]) {
    it(`no reader asks for the consumers of its group when another program has made thousands, beside ${groups} groups`, async () => {
      const { queue, key } = await make()
      const ids = follow(queue, 'group')
      await eventually(() => expect(ids).to.deep.equal(['first']))
      const pipeline = raw.pipeline()
      for (let n = 0; n < 2_001; n++) pipeline.xgroup('CREATECONSUMER', key, 'group', `stranger ${n}`)
      for (let n = 1; n < groups; n++) pipeline.xgroup('CREATE', key, `stranger ${n}`, '0')
      await pipeline.exec()
      await raw.config('RESETSTAT')
      follow(queue, 'group')
      await eventually(async () => expect(await raw.info('commandstats')).to.match(/cmdstat_xgroup\|create:calls=/))
      expect(await raw.info('commandstats')).not.to.include('cmdstat_xinfo|consumers')
    })
  }

  it('10,000 entries of another program cost a reader one command per hundred entries, not one per entry', async () => {
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
