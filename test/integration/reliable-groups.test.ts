/** Groups of a reliable queue over all processes: turns and limits. Only announcements wake the consumers: no client here sweeps within a test. */
import { expect } from 'chai'
import { InvalidArgumentError, type AddOptions, type ReliableQueue, type ReliableQueueConfig } from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { eventually, once } from '../support/events.js'
import { isLongForm } from '../support/long-form.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, redisNow, rejection, track, untilRedisClock } from './fixtures.js'
import { startWorker, untilItWaits } from './fixtures/limited-workers.js'

const NO_SWEEP = { sweepInterval: 3_600_000 } as const

async function makeQueue(config: ReliableQueueConfig = {}): Promise<ReliableQueue<number>> {
  const name = uniqueName('groups')
  forgetReliable(name)
  const queue = makeClient(NO_SWEEP).getReliableQueue<number>(name)
  await queue.setConfig(config)
  return queue
}

/** `REDELAYED_CROWD=1000000` adds as many as the promise says. */
const CROWD = Number(process.env['REDELAYED_CROWD'] ?? (isLongForm ? 100_000 : 10_000))
const SLOTS = 4

/** Ids of messages here begin with their group. */
const groupOf = (id: string): string => id.split('-')[0]!

describe('groups of messages', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  it('are never handled twice at once with a concurrency of one for each, in three processes, and all of them are', async () => {
    const queue = await makeQueue({ groupConcurrency: 1 })
    const groups = ['a', 'b', 'c', 'd', 'e']
    await queue.addMany(
      groups.flatMap((group) => Array.from({ length: 15 }, (_, n) => ({ payload: n, group, id: `${group}-${n}` }))),
    )
    const children = [1, 2, 3].map(() => startWorker(queue, 5))
    await eventually(async () => expect(await queue.size()).to.equal(0), 30_000)
    await eventually(() => expect(children.flatMap(({ reports }) => reports)).to.have.length(150))
    const steps = children.flatMap(({ reports }) => reports).sort((a, b) => a.at - b.at || (a.is === 'ended' ? -1 : 1))
    const running = new Map<string, number>()
    let most = 0
    for (const { id, is } of steps) {
      const now = (running.get(groupOf(id)) ?? 0) + (is === 'begun' ? 1 : -1)
      expect(now, id).to.be.within(0, 1)
      running.set(groupOf(id), now)
      most = Math.max(
        most,
        [...running.values()].reduce((a, b) => a + b, 0),
      )
    }
    expect(most, 'groups at once').to.be.above(1)
    const keys = reliableKeys(queue.name)
    expect(await rawClient().exists(keys.groups, keys.groupOrder, keys.groupTurns, keys.groupWakes)).to.equal(0)
  })

  it("have the slot of a killed consumer again when its message's visibility ends, and others continue meanwhile", async () => {
    const queue = await makeQueue({ groupConcurrency: 1 })
    await queue.addMany([1, 2].map((n) => ({ payload: n, group: 'a', id: `a-${n}` })))
    const { child, reports } = startWorker(queue, 3_600_000, 3_000)
    await eventually(() => expect(reports).to.have.length(1), 20_000)
    const ended = once(child, 'exit', () => true, 20_000)
    child.kill('SIGKILL')
    await ended
    const held = (await queue.get('a-1'))!
    expect(await queue.poll()).to.equal(null)
    await queue.add(3, { group: 'b', id: 'b-1' })
    expect((await queue.poll())!.id).to.equal('b-1')
    const next = (await queue.poll({ timeout: 20_000 }))!
    expect(next.group).to.equal('a')
    expect(next.polledAt).to.be.at.least(held.visibleAt)
    expect(await queue.poll()).to.equal(null)
  })

  it('of one message wait for one message of a group with 20,000', async () => {
    const queue = await makeQueue()
    for (let n = 0; n < 20; n++)
      await queue.addMany(Array.from({ length: 1_000 }, (_, m) => ({ payload: m, group: 'many' })))
    for (let n = 0; n < 3; n++) expect((await queue.poll())!.group).to.equal('many')
    await queue.add(1, { group: 'one' })
    const next = [(await queue.poll())!.group, (await queue.poll())!.group]
    expect(next).to.include('one')
    await queue.clear()
  })

  /** A queue with messages of one group, and a worker whose handlers end only when they are let go. */
  async function crowded() {
    const queue = await makeQueue()
    const thousand = Array.from({ length: 1_000 }, (_, payload) => ({ payload, group: 'crowd' }))
    for (let added = 0; added < CROWD; added += 10_000)
      await Promise.all(Array.from({ length: 10 }, () => queue.addMany(thousand)))
    const begun: (string | null)[] = []
    const running: (() => void)[] = []
    let isHeld = true
    const client = makeClient(NO_SWEEP)
    const handle = (_: number, { message }: { readonly message: { readonly group: string | null } }): unknown => {
      begun.push(message.group)
      return isHeld ? new Promise<void>((resolve) => running.push(resolve)) : undefined
    }
    const options = { concurrency: SLOTS, visibilityTimeout: 600_000 }
    const worker = client.createWorker(client.getReliableQueue<number>(queue.name), handle, options)
    const release = (): void => {
      isHeld = false
      for (const end of running.splice(0)) end()
    }
    const close = async (): Promise<void> => {
      const closing = worker.close()
      release()
      await closing
    }
    return { queue, begun, running, release, close }
  }

  it(`of one message wait for one handler of each slot while a group has ${CROWD} waiting`, async () => {
    const { queue, begun, running, close } = await crowded()
    try {
      await eventually(() => expect(running).to.have.length(SLOTS))
      await queue.add(0, { group: 'one' })
      // one handler after the other ends; each slot that is free is taken again before the next one ends
      for (let ended = 1; ended <= SLOTS + 1 && !begun.includes('one'); ended++) {
        running.shift()?.()
        await eventually(() => expect(begun).to.have.length(SLOTS + ended), 20_000)
      }
      const before = begun.slice(SLOTS, begun.indexOf('one'))
      expect(begun).to.include('one')
      expect(before.length, 'of the crowd before it').to.be.at.most(SLOTS)
    } finally {
      await close()
    }
  }).timeout(600_000)

  for (const many of isLongForm ? [150, 250, 5_000] : [250])
    it(`wait for one message of a group with ${CROWD} also where ${many} become visible between two polls`, async () => {
      const { queue, begun, running, release, close } = await crowded()
      try {
        await eventually(() => expect(running).to.have.length(SLOTS))
        // no slot is free, so no poll comes
        const small = Array.from({ length: many }, (_, n) => ({ payload: n, group: `small-${n}`, delay: 1 }))
        await queue.addMany(small)
        await untilRedisClock((await redisNow()) + 1)
        release()
        await eventually(() => expect(new Set(begun)).to.have.property('size', many + 1), 20_000)
        const last = begun.findLastIndex((group) => group !== 'crowd')
        const before = begun.slice(SLOTS, last).filter((group) => group === 'crowd')
        expect(before.length, 'of the crowd before the last of them').to.be.at.most(1)
      } finally {
        await close()
      }
    }).timeout(600_000)

  it('are delivered on time, and wake waiting consumers', async () => {
    const queue = await makeQueue({ groupConcurrency: 1 })
    const other = makeClient(NO_SWEEP).getReliableQueue<number>(queue.name)
    await queue.add(1, { group: 'a', delay: 60 })
    const first = (await other.poll({ timeout: 20_000 }))!
    expect(first.polledAt - first.visibleAt).to.be.within(0, 5_000)
    await queue.add(2, { group: 'a' })
    const waiting = track(other.poll({ timeout: 20_000 }))
    await untilItWaits(queue, other)
    expect(waiting.settled).to.equal(false)
    const from = await redisNow()
    await first.acknowledge()
    expect((await waiting.promise)!.polledAt - from).to.be.lessThan(5_000)
  })

  it('keep to the rate of each of them', async () => {
    const queue = await makeQueue({ groupRateLimit: { max: 2, perMs: 300 } })
    await queue.addMany(
      ['a', 'b'].flatMap((group) => Array.from({ length: 5 }, (_, n) => ({ payload: n, group, id: `${group}-${n}` }))),
    )
    const times = new Map<string, number[]>()
    for (let n = 0; n < 10; n++) {
      const message = (await queue.poll({ timeout: 20_000 }))!
      times.set(message.group!, [...(times.get(message.group!) ?? []), message.polledAt])
      await message.acknowledge()
    }
    expect([...times.keys()]).to.have.members(['a', 'b'])
    for (const each of times.values())
      for (let n = 0; n + 2 < each.length; n++) expect(each[n + 2]! - each[n]!).to.be.at.least(299)
  })

  it('are known of a message wherever it is read, and stay with it', async () => {
    const queue = await makeQueue()
    const group = 'tenant ö\n7'
    await queue.add(1, { id: 'x', group, headers: { h: '1' }, timeToLive: '1h' })
    expect(await queue.get('x')).to.include({ group, priority: 0, payload: 1 })
    const listed: unknown[] = []
    for await (const { id, group: of } of queue.listAll()) listed.push([id, of])
    expect(listed).to.deep.equal([['x', group]])
    expect(await queue.updatePayload('x', 2)).to.equal(true)
    expect(await queue.reschedule('x', 0)).to.equal(true)
    const [raw] = await queue.getAllRaw(['x'])
    expect(raw).to.include({ group })
    await queue.remove('x')
    const { inFlight: _, ...item } = raw!
    expect(await queue.restoreMany([item])).to.deep.equal(['restored'])
    const message = (await queue.poll())!
    expect(message).to.include({ group, payload: 2, priority: 0 })
    expect(message.headers).to.deep.equal({ h: '1' })
    expect(await queue.negativeAcknowledge([message.receipt], { reject: true })).to.deep.equal([true])
    expect(await queue.deadLetters.get('x')).to.include({ group })
    expect(await queue.redrive()).to.equal(1)
    expect((await queue.poll())!.group).to.equal(group)
    expect(await queue.remove('x')).to.equal(1)
    await queue.add(1, { id: 'y' })
    expect((await queue.poll())!.group).to.equal(null)
    expect(await queue.get('y')).to.not.have.property('group')
  })

  for (const [what, options] of Object.entries<AddOptions>({
    'an empty group': { group: '' },
    'one of more than 255 bytes': { group: 'ö'.repeat(128) },
    'half a character': { group: '\ud800' },
    'a number': { group: 7 as never },
    'one together with a priority': { group: 'a', priority: 3 },
  })) {
    it(`are refused where they are none: ${what}`, async () => {
      const queue = await makeQueue()
      expect(await rejection(queue.add(1, options))).to.be.instanceOf(InvalidArgumentError)
      expect(await queue.size()).to.equal(0)
    })
  }

  it('do not keep a first configuration from being set', async () => {
    const queue = await makeQueue()
    await queue.add(1, { group: 'a' })
    expect(await queue.getConfig()).to.deep.equal({})
    expect(await queue.setConfigIfAbsent({ groupConcurrency: 3 })).to.equal(true)
    expect(await queue.getConfig()).to.deep.equal({ groupConcurrency: 3 })
  })

  it('are counted and listed', async () => {
    const queue = await makeQueue({ groupConcurrency: 1, groupRateLimit: { max: 10, perMs: '1h' } })
    await queue.addMany(['a', 'a', 'b'].map((group, payload) => ({ payload, group })))
    await queue.add(9, { group: 'ö', delay: '1h' })
    await queue.pollMany({ count: 9 })
    await queue.pauseGroup('p')
    const limits = { concurrency: 1, rateLimit: { max: 10, perMs: 3_600_000 } }
    const none = { visible: 0, delayed: 0, inFlight: 0, delivered: 0, paused: false, ...limits }
    const expected = [
      { group: 'a', ...none, visible: 1, inFlight: 1, delivered: 1 },
      { group: 'b', ...none, inFlight: 1, delivered: 1 },
      { group: 'p', ...none, paused: true },
      { group: 'ö', ...none, delayed: 1 },
    ]
    const listed = []
    for await (const each of queue.listGroups({ pageSize: 1 })) listed.push(each)
    expect(listed.sort((x, y) => (x.group < y.group ? -1 : 1))).to.deep.equal(expected)
    for (const one of expected) expect(await queue.countsOfGroup(one.group)).to.deep.equal(one)
    expect(await queue.countsOfGroup('other')).to.deep.equal({ group: 'other', ...none })
    expect(await rejection(queue.countsOfGroup(''))).to.be.instanceOf(InvalidArgumentError)
    await queue.setConfig({ groupConcurrency: null, groupRateLimit: null })
    expect(await queue.countsOfGroup('a')).to.include({ concurrency: null, rateLimit: null, delivered: 0 })
  })

  it('use a raised limit at once, and waiting consumers are woken', async () => {
    const queue = await makeQueue({ groupConcurrency: 1 })
    const other = makeClient(NO_SWEEP).getReliableQueue<number>(queue.name)
    await queue.addMany([1, 2].map((payload) => ({ payload, group: 'a' })))
    await queue.poll()
    const waiting = track(other.poll({ timeout: 20_000 }))
    await untilItWaits(queue, other)
    expect(waiting.settled).to.equal(false)
    const from = await redisNow()
    await queue.setConfig({ groupConcurrency: 2 })
    expect((await waiting.promise)!.polledAt - from).to.be.lessThan(5_000)
  })

  it('are paused for all clients, and wake waiting consumers when they are resumed', async () => {
    const queue = await makeQueue()
    const other = makeClient(NO_SWEEP).getReliableQueue<number>(queue.name)
    await queue.pauseGroup('tenant ö')
    await queue.pauseGroup('b')
    expect(await other.pausedGroups()).to.deep.equal(['b', 'tenant ö'])
    await queue.add(1, { group: 'tenant ö' })
    await queue.add(2, { group: 'c' })
    expect((await other.poll())!.group).to.equal('c')
    const waiting = track(other.poll({ timeout: 20_000 }))
    await untilItWaits(queue, other)
    expect(waiting.settled).to.equal(false)
    const from = await redisNow()
    await queue.resumeGroup('tenant ö')
    const message = (await waiting.promise)!
    expect(message.group).to.equal('tenant ö')
    expect(message.polledAt - from).to.be.lessThan(5_000)
    expect(await queue.pausedGroups()).to.deep.equal(['b'])
    expect(await rejection(queue.pauseGroup(''))).to.be.instanceOf(InvalidArgumentError)
    expect(await rejection(queue.resumeGroup('ö'.repeat(128)))).to.be.instanceOf(InvalidArgumentError)
  })

  it('are listed where more are paused than one page has', async () => {
    const queue = await makeQueue()
    const names = Array.from({ length: 2_500 }, (_, n) => `g${String(n).padStart(4, '0')}`)
    await rawClient().zadd(reliableKeys(queue.name).groupPauses, ...names.flatMap((name) => [0, name]))
    expect(await queue.pausedGroups()).to.deep.equal(names)
  })

  it('are listed to an end where another program gave those that are paused scores of their own', async () => {
    const queue = await makeQueue()
    // the last name of the first page comes before all others
    const names = [...Array.from({ length: 999 }, (_, n) => `b${n}`), 'a', 'z']
    await rawClient().zadd(reliableKeys(queue.name).groupPauses, ...names.flatMap((name, n) => [n, name]))
    expect(await queue.pausedGroups()).to.include.members(names.slice(0, 1_000))
    const listed: string[] = []
    for await (const { group } of queue.listGroups({ pageSize: 1_000 })) {
      listed.push(group)
      if (listed.length > 20_000) break
    }
    expect(listed.length).to.be.lessThan(20_000)
  })
})
