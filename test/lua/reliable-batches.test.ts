/** Batches on raw state: who counts a message in and out, what ends a batch, and what keys of another type change. */
import { expect } from 'chai'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import {
  BUSY_LOOK,
  expected,
  groupKeysOf,
  handled,
  having,
  LOOK,
  NEXT_LOOK,
  NOW,
  pollArgs,
  record,
  useReliable,
  type Message,
  type PollArgs,
  type ReliableFixture,
  type State,
} from './reliable-support.js'
import { commandCalls, raw, readable, rejection } from './support.js'

const WEEK = 604_800_000
/** `<priority>,<time to live>,<delivery limit>,<bytes of headers>,<bytes of id>`, and the id. */
const LAST = '4,50,2,3,4\nlast{h}the last'

interface Counts {
  readonly pending?: number
  readonly completed?: number
  readonly dead?: number
  readonly expired?: number
  readonly removed?: number
  readonly finished?: number | ''
}

/** The counts of a batch as they are stored. */
function counts(state: 'o' | 'c' | 'f', of: Counts = {}): string {
  const { pending = 0, completed = 0, dead = 0, expired = 0, removed = 0, finished = '' } = of
  const closed = state === 'o' ? '' : 7
  return [state, pending, completed, dead, expired, removed, 5, closed, finished].join(',')
}

/** These messages, all in the batch `b`, which is closed and has a last message. */
function closedWith(messages: readonly Message[], config: readonly (readonly [string, string])[] = []): State {
  return having(messages, {
    config: [['batched', '1'], ...config],
    batches: [
      ...messages.map(({ id }) => [Buffer.concat([raw('m'), raw(id)]), 'b'] as const),
      ['bb', counts('c', { pending: messages.length })],
      ['lb', LAST],
    ],
  })
}

describe('batches of the reliable queue', () => {
  const rig = useReliable()
  const held = { id: 'x', until: NOW + 9, priority: 3 }
  const added = record('the last', { expires: NOW + 50, limit: 2, headers: '{h}' })

  const poll = (queue: ReliableFixture, args: Partial<PollArgs> = {}) =>
    run(rig.sender, scripts.poll, queue.keys, pollArgs(queue, args))
  const add = (queue: ReliableFixture, ids: readonly string[], options: Partial<Parameters<typeof argsOf>[1]> = {}) =>
    run(rig.sender, scripts.add, queue.keys, argsOf(queue, { ids, ...options }))
  const argsOf = (
    { channel }: ReliableFixture,
    given: { ids: readonly string[]; batch?: string; existing?: string; sentAgoMs?: number; details?: string },
  ) => {
    const { ids, batch = 'b', existing = 'keep', sentAgoMs = -1, details = '0,,,,0,,' } = given
    const items = ids.flatMap((id) => [id, details, `payload of ${id}`])
    return { channel, client: 'me', nowMs: NOW, existing, sentAgoMs, durable: false, batch, items }
  }
  const acknowledge = (queue: ReliableFixture, ...pairs: (readonly [string, string, number?])[]) =>
    run(rig.sender, scripts.acknowledge, queue.keys, {
      nowMs: NOW,
      client: 'me',
      withResults: false,
      handled: handled(...pairs),
    })
  const giveBack = ({ keys, channel, deadChannel }: ReliableFixture, how: string, member = '3x') =>
    run(rig.sender, scripts.negativeAcknowledge, keys, {
      ...{ channel, deadChannel, client: 'me', nowMs: NOW, how, delayMs: 0, reason: '""' },
      handled: [Buffer.from(member), Buffer.from('1 t')],
    })
  const remove = ({ keys }: ReliableFixture, ...ids: string[]) =>
    run(rig.sender, scripts.remove, keys, { nowMs: NOW, alsoHeld: true, client: 'me', ids })
  const close = ({ keys }: Pick<ReliableFixture, 'keys'>, last = '', size = 0, nowMs = NOW) =>
    run(rig.sender, scripts.closeBatch, keys, { nowMs, client: 'me', name: 'b', last: raw(last), size })
  const move = ({ keys, dead, deadChannel }: ReliableFixture) => {
    const { messages, deliveries, failures, due0: due, config, changes, completed, completedAt } = keys
    const own = { messages, deliveries, failures, due, config, changes, completed, completedAt }
    const targets = { targetMessages: dead.messages, targetDue: dead.due0 }
    const more = { targetConfig: dead.config, targetChanges: dead.changes }
    const how = { targetName: '"q"', priority: 0, isRedriven: false, ids: [] }
    return run(
      rig.sender,
      scripts.move,
      { ...own, ...groupKeysOf(keys, dead), ...targets, ...more },
      { targetChannel: deadChannel, nowMs: NOW, count: 9, client: 'me', ...how },
    )
  }
  const withdraw = ({ keys, channel }: ReliableFixture) =>
    run(rig.sender, scripts.repeat, keys, {
      ...{
        channel,
        nowMs: NOW,
        computedAt: NOW,
        name: raw('r'),
        expected: raw(''),
        value: raw(''),
        at: '',
        priority: 0,
      },
      ...{ withdrawn: raw('x'), client: 'me', items: [] },
    })

  for (const [finished, at] of [
    ['inf', NOW],
    [2 ** 53 - 1, NOW],
    [NOW + 600_000, NOW + 600_001],
  ] as const) {
    it(`finish ${at === NOW ? 'now' : 'after the last one'} where another one is said to have finished at ${finished}`, async () => {
      const queue = await rig.queue({ ...closedWith([held]), batchesAt: [['strange', finished]] })
      await acknowledge(queue, ['x', '1 t', 3])
      expect(await rig.redis.zscore(queue.keys.batchesAt, 'b')).to.equal(String(at))
    })
  }

  const ends: [
    what: string,
    before: Message,
    end: (queue: ReliableFixture) => Promise<unknown>,
    how: 'completed' | 'dead' | 'expired' | 'removed',
    config?: readonly (readonly [string, string])[],
  ][] = [
    ['an acknowledgement', held, (queue) => acknowledge(queue, ['x', '1 t', 3]), 'completed'],
    ['a rejection', held, (queue) => giveBack(queue, 'rejected'), 'dead'],
    ['the last failure', { ...held, limit: 1 }, (queue) => giveBack(queue, 'failed'), 'dead'],
    ['a rejection without dead letters', held, (queue) => giveBack(queue, 'rejected'), 'dead', [['deadLetters', '0']]],
    ['the end of the last visibility', { ...held, until: NOW, limit: 1 }, (queue) => poll(queue), 'dead'],
    ['the end of its time', { id: 'x', expires: NOW }, (queue) => poll(queue), 'expired'],
    ['a removal', held, (queue) => remove(queue, 'x'), 'removed'],
    ['a move to another queue', { id: 'x' }, move, 'removed'],
    ['a schedule that withdraws its message', { id: 'x', at: NOW + 9 }, withdraw, 'removed'],
    ['a replacement', held, (queue) => add(queue, ['x'], { batch: '', existing: 'replace' }), 'removed'],
    [
      'a message in the place of an expired one',
      { id: 'x', expires: NOW },
      (queue) => add(queue, ['x'], { batch: '' }),
      'expired',
    ],
  ]
  for (const [what, before, end, how, config] of ends) {
    for (const keepsCompleted of [false, true]) {
      const kept = keepsCompleted ? [['keepCompleted', '9'] as const] : []
      it(`${what} ends the batch of the message${keepsCompleted ? ', where completed messages are kept' : ''}`, async () => {
        const queue = await rig.queue(closedWith([before], [...(config ?? []), ...kept]))
        await queue.published()
        await end(queue)
        const { queue: state } = await queue.read()
        expect(state.batches).to.deep.equal({ bb: counts('f', { [how]: 1, finished: NOW }) })
        expect(state.batchesAt).to.deep.equal([['b', String(NOW)]])
        expect((state.messages as Record<string, string>)['last']).to.equal(readable(added))
        expect(await queue.published()).to.include(String(NOW))
        const { messages, returned } = await poll(queue)
        const last = messages.find(({ id }) => id === 'last')
        expect(last).to.deep.include({ priority: 4, delivery: '1 t', visibleAt: NOW, record: added })
        expect(returned).to.equal(0)
      })
    }
  }

  for (const [what, before, end, how, config] of ends) {
    for (const value of [undefined, '1'.repeat(17)]) {
      it(`${what} ends the batch where another program has ${value === undefined ? 'removed the setting' : 'changed the setting'}`, async () => {
        const queue = await rig.queue(closedWith([before], config))
        if (value === undefined) await rig.redis.hdel(queue.keys.config, 'batched')
        else await rig.redis.hset(queue.keys.config, 'batched', value)
        await end(queue)
        const { queue: state } = await queue.read()
        expect(state.batches).to.deep.equal({ bb: counts('f', { [how]: 1, finished: NOW }) })
        expect(Object.keys(state.messages ?? {})).to.include('last')
      })
    }
  }

  it('a dead letter that is dropped ends its batch where another program has removed the setting', async () => {
    const queue = await rig.queue(having([held]))
    await rig.redis.hset(queue.dead.batches, 'md', 'b', 'bb', counts('c', { pending: 1 }), 'lb', LAST)
    await rig.redis.hset(queue.keys.config, 'keepDeadLetters', '1')
    await rig.redis.hset(queue.dead.messages, 'd', record('an older one'))
    await rig.redis.zadd(queue.dead.due0, NOW - 1, 'd')
    expect(await giveBack(queue, 'rejected')).to.deep.equal([2])
    expect(await rig.redis.hgetall(queue.dead.batches)).to.deep.equal({
      bb: counts('f', { removed: 1, finished: NOW }),
    })
    expect(await rig.redis.hkeys(queue.dead.messages)).to.have.members(['x', 'last'])
  })

  it('a poll that finds nothing counts out messages that another program has deleted, and looks for more soon', async () => {
    const queue = await rig.queue(closedWith([held, { id: 'y', at: NOW + 9 }]))
    await rig.redis.unlink(queue.keys.messages, queue.keys.inFlight, queue.keys.due0)
    const isLeft = async () => (await rig.redis.hmget(queue.keys.batches, 'mx', 'my')).some((name) => name !== null)
    for (let polls = 0; await isLeft(); polls++) {
      expect(polls).to.be.lessThan(50)
      const before = await rig.redis.hlen(queue.keys.batches)
      const { next } = await poll(queue, { nowMs: LOOK })
      if ((await rig.redis.hlen(queue.keys.batches)) < before) expect(next).to.be.oneOf([LOOK, NEXT_LOOK])
    }
    expect((await queue.read()).queue.batches).to.deep.equal({ bb: counts('f', { removed: 2, finished: LOOK }) })
    expect(await rig.redis.hkeys(queue.keys.messages)).to.deep.equal(['last'])
  })

  it('one of seven polls that find nothing looks for messages that another program has deleted', async () => {
    const queue = await rig.queue(closedWith([held]))
    let looks = 0
    for (let at = 0; at < 700; at++) {
      const calls = await commandCalls(rig.redis, () => poll(queue, { nowMs: LOOK - 700 + at }))
      if ('hrandfield' in calls) looks++
    }
    expect(looks).to.be.within(100, 100 + 23)
  })

  it('some polls of a queue that always has messages count out messages that another program has deleted', async () => {
    const ids = Array.from({ length: 50 }, (_, n) => ({ id: `x${n}`, at: 0 }))
    const queue = await rig.queue(having(ids, { ...closedWith([held]), messages: [] }))
    await rig.redis.hset(queue.keys.messages, ...ids.flatMap(({ id }) => [id, record()]))
    for (let polls = 0; (await rig.redis.hget(queue.keys.batches, 'mx')) !== null; polls++) {
      expect(polls).to.be.lessThan(50)
      expect((await poll(queue, { nowMs: BUSY_LOOK, count: 1 })).messages).to.have.length(1)
    }
    expect(await rig.redis.hget(queue.keys.batches, 'bb')).to.equal(counts('f', { removed: 1, finished: BUSY_LOOK }))
  })

  it('a queue without messages whose claims have not ended finishes no batch', async () => {
    const queue = await rig.queue({ ...closedWith([held]), messages: [] })
    await rig.redis.hdel(queue.keys.batches, 'mx')
    await rig.redis.hset(queue.keys.batches, Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`b${n}`, '-'])))
    await rig.redis.zadd(queue.keys.inFlight, NOW + 1_000_000_000, '0y')
    for (let polls = 0; polls < 8; polls++) await poll(queue, { nowMs: LOOK })
    expect(String(await rig.redis.hget(queue.keys.batches, 'bb'))).to.match(/^c,/)
  })

  it('one poll counts out 32 deleted messages at most, and the next look is at most 0.35 s later', async () => {
    const ids = Array.from({ length: 500 }, (_, n) => ({ id: `x${n}` }))
    const queue = await rig.queue({ ...closedWith(ids), messages: [], due: {} })
    await rig.redis.hset(queue.keys.messages, 'other', record()) // in an empty queue the first such poll finishes the batch
    for (let polls = 0; polls < 5; polls++) {
      const before = await rig.redis.hlen(queue.keys.batches)
      expect((await poll(queue, { nowMs: LOOK })).next).to.equal(NEXT_LOOK)
      expect(before - (await rig.redis.hlen(queue.keys.batches))).to.be.within(20, 32)
    }
  })

  it('a poll that finds nothing removes the setting where no batch is left, and a new batch sets it again', async () => {
    const queue = await rig.queue({
      config: [
        ['batched', '1'],
        ['maxSize', '9'],
      ],
    })
    await poll(queue, { nowMs: LOOK })
    const config = () => rig.redis.hgetall(queue.keys.config)
    expect(await config()).to.deep.equal({ maxSize: '9' })
    await add(queue, ['x'])
    expect(await config()).to.deep.equal({ maxSize: '9', batched: '1' })
    await poll(queue, { nowMs: LOOK })
    expect(await config()).to.deep.equal({ maxSize: '9', batched: '1' })
    await rig.redis.unlink(queue.keys.batches)
    await poll(queue, { nowMs: LOOK })
    await close(queue)
    expect(await config()).to.deep.equal({ maxSize: '9', batched: '1' })
  })

  it('a poll counts a message that ends in it once, and does not look for more', async () => {
    for (let polls = 0; polls < 20; polls++) {
      const queue = await rig.queue(
        closedWith([
          { id: 'x', at: LOOK - 1, expires: LOOK },
          { ...held, id: 'y', until: NOW + 9 },
        ]),
      )
      expect(await poll(queue, { nowMs: LOOK })).to.include({ expired: 1, next: NOW + 9 })
      expect(await rig.redis.hget(queue.keys.batches, 'bb')).to.equal(counts('c', { pending: 1, expired: 1 }))
    }
  })

  it('a poll that finds nothing leaves messages, and what no script has written for them, as they are', async () => {
    const junk = 'l'.repeat(256)
    const queue = await rig.queue(closedWith([held]))
    await rig.redis.hset(queue.keys.batches, `m${'i'.repeat(577)}`, 'b', 'mj', junk, 'm', junk, 'x', 'b', '', 'b')
    const before = await queue.read()
    for (let polls = 0; polls < 20; polls++) expect((await poll(queue, { nowMs: LOOK })).next).to.equal(NOW + 9)
    expect(await queue.read()).to.deep.equal(before)
  })

  /** Polls until the batch has finished. */
  const polledToTheEnd = async (queue: ReliableFixture) => {
    for (let polls = 0; (await rig.redis.hget(queue.keys.batches, 'bb'))?.startsWith('f') !== true; polls++) {
      expect(polls).to.be.lessThan(500)
      await poll(queue, { nowMs: LOOK })
    }
  }
  const others = (state: 'o' | 'f', many: number) => Array.from({ length: many }, (_, n) => [`bo${n}`, counts(state)])
  /** Closed, with the last message, and with a count that is one too high. */
  const tooHigh = [
    ['bb', counts('c', { pending: 1, completed: 3 })],
    ['lb', LAST],
  ] as const

  for (const [what, messages, many] of [
    ['no message is left, among many batches', [], 60],
    ['no batch has a message, beside messages of none', [{ id: 'z', at: NOW + 9 }], 14],
  ] as const) {
    it(`a poll that finds nothing finishes a closed batch whose count is too high where ${what}`, async () => {
      const queue = await rig.queue(having(messages, { batches: [...tooHigh, ...others('o', many)] as never }))
      await polledToTheEnd(queue)
      const { queue: state } = await queue.read()
      expect((state.batches as Record<string, string>)['bb']).to.equal(
        counts('f', { completed: 3, removed: 1, finished: LOOK }),
      )
      expect(state.batchesAt).to.deep.equal([['b', String(LOOK)]])
      expect((state.messages as Record<string, string>)['last']).to.equal(
        readable(record('the last', { expires: LOOK + 50, limit: 2, headers: '{h}' })),
      )
    })

    it(`a closed batch whose count is too high finishes when it is closed again where ${what}`, async () => {
      const queue = await rig.queue(having(messages, { batches: [...tooHigh, ...others('o', many)] as never }))
      const after = counts('f', { completed: 3, removed: 1, finished: NOW })
      expect(await close(queue)).to.include({ state: 'finished', removed: 1 })
      expect(await rig.redis.hget(queue.keys.batches, 'bb')).to.equal(after)
      expect(await rig.redis.hkeys(queue.keys.messages)).to.include('last')
    })
  }

  for (const [what, more] of [
    ['a batch has a message', [['mz', 'other']]],
    ['there are more fields than one page', others('o', 16)],
  ] as const) {
    it(`a closed batch keeps a count that is too high where messages are left and ${what}`, async () => {
      const batches = [...tooHigh, ...more] as never
      const queue = await rig.queue(having([{ id: 'z', at: NOW + 9 }], { config: [['batched', '1']], batches }))
      const before = await queue.read()
      for (let polls = 0; polls < 20; polls++) await poll(queue, { nowMs: LOOK })
      await close(queue)
      expect(await queue.read()).to.deep.equal(before)
    })
  }

  it('an open batch keeps a count that is too high', async () => {
    const queue = await rig.queue({ batches: [['bb', counts('o', { pending: 1 })]] })
    const before = await queue.read()
    for (let polls = 0; polls < 20; polls++) await poll(queue, { nowMs: LOOK })
    expect((await queue.read()).queue.batches).to.deep.equal(before.queue.batches)
  })

  it('a batch that has finished in an empty queue counts no message twice', async () => {
    const queue = await rig.queue(closedWith([held, { id: 'y', at: NOW + 9 }]))
    await rig.redis.unlink(queue.keys.messages, queue.keys.inFlight, queue.keys.due0)
    expect(await close(queue)).to.include({ state: 'finished', removed: 2 })
    for (let polls = 0; (await rig.redis.hlen(queue.keys.batches)) > 1; polls++) {
      expect(polls).to.be.lessThan(500)
      await poll(queue, { nowMs: LOOK })
    }
    expect((await queue.read()).queue.batches).to.deep.equal({ bb: counts('f', { removed: 2, finished: NOW }) })
  })

  it('a poll that finds nothing gives finished batches their places back, by their times', async () => {
    const finished = Array.from({ length: 40 }, (_, n) => [`bf${n}`, counts('f', { finished: NOW - n })] as const)
    const queue = await rig.queue({
      batches: [...finished, ['bf', counts('f', { finished: NOW + 5 })], ['bo', counts('o')]],
    })
    for (let polls = 0; (await rig.redis.zcard(queue.keys.batchesAt)) < 41; polls++) {
      expect(polls).to.be.lessThan(500)
      await poll(queue, { nowMs: LOOK })
    }
    const places = await rig.redis.zrange(queue.keys.batchesAt, '0', '-1', 'WITHSCORES')
    expect(places.slice(0, 2)).to.deep.equal(['f39', String(NOW - 39)])
    expect(places.slice(-2)).to.deep.equal(['f7', String(LOOK)])
    expect(places).to.include('f')
    expect(await poll(queue, { nowMs: LOOK })).to.include({ next: null })
  })

  it('an attempt that failed, and a message that is released, count nothing', async () => {
    for (const how of ['failed', 'released']) {
      const queue = await rig.queue(closedWith([held]))
      const { batches } = (await queue.read()).queue
      expect(await giveBack(queue, how)).to.deep.equal([1])
      expect((await queue.read()).queue.batches).to.deep.equal(batches)
    }
  })

  it('a message that only its schedule has is counted out when it is found there', async () => {
    const queue = await rig.queue({ ...closedWith([{ id: 'x' }]), messages: [] })
    await poll(queue)
    expect((await queue.read()).queue.batches).to.deep.equal({ bb: counts('f', { removed: 1, finished: NOW }) })
  })

  it('a message that only its schedule has is counted out when a move finds it there', async () => {
    const queue = await rig.queue({ ...closedWith([{ id: 'x' }]), messages: [] })
    await move(queue)
    expect((await queue.read()).queue.batches).to.deep.equal({ bb: counts('f', { removed: 1, finished: NOW }) })
  })

  it('counts a message once however often it is added while it is there', async () => {
    const queue = await rig.queue()
    expect((await add(queue, ['x', 'y', 'x'])).outcomes).to.deep.equal([1, 1, 0])
    expect((await add(queue, ['x', 'y'], { sentAgoMs: 9 })).outcomes).to.deep.equal([1, 1])
    expect((await add(queue, ['x'])).outcomes).to.deep.equal([0])
    expect((await add(queue, ['x'], { existing: 'postpone', details: '0,5,,,0,,' })).outcomes).to.deep.equal([3])
    expect((await add(queue, ['x'], { existing: 'replace' })).outcomes).to.deep.equal([2])
    const { batches, config } = (await queue.read()).queue
    expect(config).to.deep.equal({ batched: '1' })
    expect(batches).to.deep.equal({ mx: 'b', my: 'b', bb: `o,2,0,0,0,1,${NOW},,`, n: '1' })
  })

  it('counts messages with a group and deduplicated messages too', async () => {
    const queue = await rig.queue()
    const { channel } = queue
    const items = ['x', 'g1,,,,0,,', 'aX', 'y', '0,,,,0,9,mark', 'Y', 'z', '0,,,,0,9,mark', 'Z']
    const args = {
      channel,
      client: 'me',
      nowMs: NOW,
      existing: 'keep',
      sentAgoMs: -1,
      durable: false,
      batch: 'b',
      items,
    }
    expect((await run(rig.sender, scripts.add, queue.keys, args)).outcomes).to.deep.equal([1, 1, -1])
    expect((await queue.read()).queue.batches).to.deep.equal({ mx: 'b', my: 'b', bb: `o,2,0,0,0,0,${NOW},,`, n: '1' })
  })

  it('a kept message stays in its batch, or without a batch', async () => {
    const queue = await rig.queue()
    await add(queue, ['x'], { batch: 'a' })
    await add(queue, ['y'], { batch: '' })
    await add(queue, ['x', 'y'])
    expect((await queue.read()).queue.batches).to.deep.equal({ mx: 'a', ba: `o,1,0,0,0,0,${NOW},,`, n: '1' })
  })

  it('a batch that is open does not end, whatever becomes of its messages', async () => {
    const queue = await rig.queue()
    await add(queue, ['x'])
    await poll(queue, { token: 't' })
    expect(await acknowledge(queue, ['x', '1 t'])).to.deep.equal([true])
    expect((await queue.read()).queue).to.deep.include({ batches: { bb: `o,0,1,0,0,0,${NOW},,`, n: '1' } })
    expect((await queue.read()).queue).to.not.have.property('batchesAt')
  })

  for (const [what, before] of [
    ['a batch that is there and empty', { batches: [['bb', counts('o', { completed: 2 })]] }],
    ['a batch that was never added to', {}],
  ] as const) {
    it(`${what} ends when it is closed, and closing it again adds nothing`, async () => {
      const queue = await rig.queue(before)
      const closed = await close(queue, LAST, 8)
      expect(closed).to.include({ state: 'finished', pending: 0, closedAt: NOW, finishedAt: NOW })
      expect(await queue.published()).to.deep.equal([String(NOW)])
      await remove(queue, 'last')
      expect(await close(queue, LAST, 8, NOW + 1)).to.deep.equal(closed)
      expect((await queue.read()).queue).to.not.have.property('messages')
    })
  }

  it('keeps the last message of the first call until the messages have ended', async () => {
    const queue = await rig.queue()
    await add(queue, ['x'])
    const closed = await close(queue, LAST, 8)
    expect(closed).to.deep.include({ state: 'closed', pending: 1, openedAt: NOW, closedAt: NOW, finishedAt: null })
    expect(await close(queue, '0,,,0,5\nothermore', 4, NOW + 1)).to.deep.equal(closed)
    await remove(queue, 'x')
    expect(Object.keys((await queue.read()).queue.messages ?? {})).to.deep.equal(['last'])
  })

  it('refuses to close a batch with a last message that is larger than the queue allows, and closes it later', async () => {
    const queue = await rig.queue({ config: [['maxMessageBytes', '7']] })
    const before = await queue.read()
    expect(await close(queue, LAST, 8)).to.equal(null)
    expect(await queue.read()).to.deep.equal(before)
    expect(await close(queue)).to.include({ state: 'finished' })
  })

  it('adds no message to a closed batch, and an existing message still counts as added when it is sent again', async () => {
    const queue = await rig.queue()
    await add(queue, ['x'])
    await close(queue)
    expect((await add(queue, ['x', 'y'], { sentAgoMs: 9 })).outcomes).to.deep.equal([1, -7])
    expect((await add(queue, ['x', 'y'])).outcomes).to.deep.equal([-7, -7])
    expect((await add(queue, ['y'], { batch: '' })).outcomes).to.deep.equal([1])
  })

  it('adds the last message once where it is there already', async () => {
    const restored = { id: 'last', at: NOW + 9, payload: 'restored' }
    const { config = [], batches = [] } = closedWith([held])
    const queue = await rig.queue(having([held, restored], { config, batches }))
    await acknowledge(queue, ['x', '1 t', 3])
    const finished = {
      batches: [['bb', counts('f', { completed: 1, finished: NOW })]],
      batchesAt: [['b', NOW]],
    } as const
    expect(await queue.read()).to.deep.equal(expected(having([restored], { config, ...finished })))
  })

  it('many batches end in one script', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `m${n}`)
    const queue = await rig.queue(
      having(
        ids.map((id) => ({ id, until: NOW + 9 })),
        {
          config: [['batched', '1']],
          batches: ids.flatMap((id) => [[`m${id}`, id] as const, [`b${id}`, counts('c', { pending: 1 })] as const]),
        },
      ),
    )
    await acknowledge(queue, ...ids.map((id) => [id, '1 t'] as const))
    const { batches, batchesAt } = (await queue.read()).queue
    expect(batches).to.deep.equal(
      Object.fromEntries(ids.map((id) => [`b${id}`, counts('f', { completed: 1, finished: NOW })])),
    )
    expect(batchesAt).to.have.length(ids.length)
  })

  it('clear forgets all batches', async () => {
    const queue = await rig.queue({ ...closedWith([held]), batchesAt: [['old', 3]] })
    await run(rig.sender, scripts.clear, queue.keys, { client: 'me' })
    expect((await queue.read()).queue).to.deep.equal({ config: { batched: '1' } })
  })

  it('forgets up to a hundred batches that finished more than a week ago whenever one finishes, and no open one', async () => {
    const old = Array.from({ length: 102 }, (_, n) => `old${String(n).padStart(3, '0')}`)
    const late = NOW + 2 * WEEK
    const queue = await rig.queue({
      batches: [
        ...old.map((name) => [`b${name}`, counts('f', { finished: 9 })] as const),
        ['bopen', counts('o', { pending: 1 })],
        ['brecent', counts('f', { finished: late - WEEK })],
      ],
      batchesAt: [...old.map((name) => [name, 9] as const), ['open', 8], ['recent', late - WEEK]],
    })
    await close(queue, '', 0, late)
    const { batches, batchesAt } = (await queue.read()).queue
    expect(Object.keys(batches as object)).to.have.members(['bold100', 'bold101', 'bopen', 'brecent', 'bb'])
    expect((batchesAt as [string, string][]).map(([name]) => name)).to.deep.equal(['old100', 'old101', 'recent', 'b'])
  })

  it('forgets the oldest of more than 10,000', async () => {
    const queue = await rig.queue({ batches: [['b0', counts('f', { finished: NOW })]] })
    await rig.redis.zadd(queue.keys.batchesAt, ...Array.from({ length: 10_000 }, (_, n) => [NOW, String(n)]).flat())
    await close(queue)
    expect(await rig.redis.zcard(queue.keys.batchesAt)).to.equal(10_000)
    expect(await rig.redis.hkeys(queue.keys.batches)).to.deep.equal(['bb'])
  })

  it('keeps one that finishes after the clock was set back, where there are 10,000', async () => {
    const queue = await rig.queue({ batches: [['b0', counts('f', { finished: NOW })]] })
    await rig.redis.zadd(queue.keys.batchesAt, ...Array.from({ length: 10_000 }, (_, n) => [NOW + n, String(n)]).flat())
    await close(queue, '', 0, NOW - 1)
    expect(await rig.redis.zscore(queue.keys.batchesAt, 'b')).to.equal(String(NOW + 10_000))
    expect(await rig.redis.hkeys(queue.keys.batches)).to.deep.equal(['bb'])
  })

  it('keeps one that finishes after the clock was set back among equal times, and keeps forgetting', async () => {
    const queue = await rig.queue()
    for (let from = 0; from < 12_000; from += 2_000) {
      const names = Array.from({ length: 2_000 }, (_, n) => `z${String(from + n).padStart(5, '0')}`)
      await rig.redis.zadd(queue.keys.batchesAt, ...names.flatMap((name) => [String(NOW + 5), name]))
    }
    const calls = await commandCalls(rig.redis, () => close(queue, '', 0, NOW - 1))
    expect(calls).to.include({ zrem: 101 })
    expect(await rig.redis.zscore(queue.keys.batchesAt, 'b')).to.equal(String(NOW + 6))
    expect(await rig.redis.hkeys(queue.keys.batches)).to.deep.equal(['bb'])
    for (let n = 0; n < 25; n++)
      await run(rig.sender, scripts.closeBatch, queue.keys, {
        nowMs: NOW - 1,
        client: 'me',
        name: `a${n}`,
        last: raw(''),
        size: 0,
      })
    expect(await rig.redis.zcard(queue.keys.batchesAt)).to.equal(10_000)
    expect(await rig.redis.zrange(queue.keys.batchesAt, '-1', '-1')).to.deep.equal(['a24'])
  })

  for (const [what, times] of [
    ['10,000 are said to have finished at the end of all times', Array.from({ length: 10_000 }, () => 'inf')],
    [
      '10,000 are said to have finished within the next week, and more later',
      Array.from({ length: 10_200 }, (_, n) => NOW + WEEK - 9_999 + n),
    ],
    [
      '9,999 are said to have finished within the next week, and one at the end of all times',
      Array.from({ length: 10_000 }, (_, n) => (n < 9_999 ? NOW + WEEK : 'inf')),
    ],
  ] as const) {
    it(`keeps those that finish now where ${what}`, async () => {
      const queue = await rig.queue()
      for (let from = 0; from < times.length; from += 2_000) {
        const page = times.slice(from, from + 2_000)
        await rig.redis.zadd(queue.keys.batchesAt, ...page.flatMap((time, n) => [time, `strange ${from + n}`]))
      }
      const names = Array.from({ length: 8 }, (_, n) => `zz${n}`)
      for (const name of names)
        await run(rig.sender, scripts.closeBatch, queue.keys, {
          nowMs: NOW,
          client: 'me',
          name,
          last: raw(''),
          size: 0,
        })
      expect(await rig.redis.hkeys(queue.keys.batches)).to.have.members(names.map((name) => `b${name}`))
      expect(await rig.redis.zcard(queue.keys.batchesAt)).to.equal(10_000)
    })
  }

  it('add the last message with no attempts that another program has written for its id', async () => {
    const queue = await rig.queue({
      ...closedWith([held]),
      ...{
        deliveries: [
          ['x', '1 t'],
          ['last', '9 t'],
        ],
      },
    })
    await acknowledge(queue, ['x', '1 t', 3])
    const { messages, deliveries } = (await queue.read()).queue
    expect(Object.keys(messages as object)).to.deep.equal(['last'])
    expect(deliveries).to.equal(undefined)
    const empty = await rig.queue({ deliveries: [['last', '9 t']] })
    await close(empty, LAST, 8)
    expect((await empty.read()).queue.deliveries).to.equal(undefined)
  })

  it('forgets no more in one script than have finished in it, and a hundred', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `m${n}`)
    const closed = ids.flatMap((id) => [[`m${id}`, id] as const, [`b${id}`, counts('c', { pending: 1 })] as const])
    const waiting = ids.map((id) => ({ id, expires: NOW }))
    const old = Array.from({ length: 300 }, (_, n) => [`old${n}`, -2 * WEEK] as const)
    for (const [end, state] of [
      [(queue: ReliableFixture) => remove(queue, ...ids), waiting],
      [(queue: ReliableFixture) => add(queue, ids, { batch: '', existing: 'replace' }), waiting],
      [
        (queue: ReliableFixture) => acknowledge(queue, ...ids.map((id) => [id, '1 t'] as const)),
        ids.map((id) => ({ id, until: NOW + 9 })),
      ],
    ] as const) {
      const queue = await rig.queue(having(state, { config: [['batched', '1']], batches: closed, batchesAt: old }))
      await end(queue)
      expect(await rig.redis.zcard(queue.keys.batchesAt)).to.equal(300 + 40 - 140)
    }
  })

  it('answers for the batches that are there', async () => {
    const queue = await rig.queue({
      batches: [
        ['bb', counts('c', { pending: 3, dead: 2 })],
        ['bjunk', 'x'],
        ['blong', '9'.repeat(200)],
      ],
    })
    const reply = await run(rig.sender, scripts.batches, queue.keys, { names: ['none', 'b', 'junk', 'long'] })
    expect(reply).to.deep.equal([
      null,
      {
        ...{ state: 'closed', pending: 3, completed: 0, dead: 2, expired: 0, removed: 0 },
        openedAt: 5,
        closedAt: 7,
        finishedAt: null,
      },
      null,
      null,
    ])
  })

  describe('where a key is of another type', () => {
    for (const [what, before, end, , config] of ends) {
      for (const wrong of ['batches', 'config'] as const) {
        it(`${wrong}: ${what} is refused, and changes nothing`, async () => {
          const queue = await rig.queue(closedWith([before], config))
          await queue.block(wrong)
          const then = await queue.read()
          expect(await rejection(Promise.resolve(end(queue)))).to.include({ code: 'ERR_WRONG_TYPE' })
          expect(await queue.read()).to.deep.equal(then)
        })
      }

      it(`batches: ${what} is carried out in a queue that has never had any`, async () => {
        const queue = await rig.queue(having([before], config === undefined ? {} : { config }))
        await queue.block('batches')
        await end(queue)
        const { queue: state } = await queue.read()
        expect(state.batches).to.equal('WRONGTYPE')
        expect(Object.keys(state.messages ?? {})).to.deep.equal(
          what.startsWith('a replacement') || what.includes('in the place') ? ['x'] : [],
        )
      })

      it(`${what} ends the batch, where only the list of finished ones cannot be written`, async () => {
        const queue = await rig.queue(closedWith([before], config))
        await queue.block('batchesAt')
        await end(queue)
        expect(Object.keys((await queue.read()).queue.messages ?? {})).to.include('last')
      })
    }

    for (const key of ['groups', 'groupTurns'] as const) {
      for (const [what, how, end] of [
        ['rejection', 'dead', (queue: ReliableFixture) => giveBack(queue, 'rejected', 'gx')],
        ['removal', 'removed', (queue: ReliableFixture) => remove(queue, 'x')],
      ] as const) {
        it(`${key}: a ${what} of a message with a group ends its batch`, async () => {
          const queue = await rig.queue(closedWith([], [['grouped', '1']]))
          await rig.redis.hset(queue.keys.batches, 'mx', 'b', 'bb', counts('c', { pending: 1 }))
          await rig.redis.hset(queue.keys.messages, 'x', '\x05,,0,1aof a group')
          await rig.redis.hset(queue.keys.deliveries, 'x', '1 t')
          await rig.redis.zadd(queue.keys.inFlight, NOW + 9, 'gx')
          await queue.block(key)
          await end(queue)
          const { queue: state } = await queue.read()
          expect(state.batches).to.deep.equal({ bb: counts('f', { [how]: 1, finished: NOW }) })
          expect(Object.keys(state.messages ?? {})).to.deep.equal(['last'])
        })
      }
    }

    it('deadInFlight: the last message of a batch of the dead letters is kept until the batch is closed once more', async () => {
      const queue = await rig.queue(having([held]))
      const batches = ['md', 'b', 'bb', counts('c', { pending: 1 }), 'lb', LAST]
      await rig.redis.hset(queue.dead.batches, ...batches)
      await rig.redis.hset(queue.dead.config, 'batched', '1')
      await rig.redis.hset(queue.keys.config, 'keepDeadLetters', '1')
      await rig.redis.hset(queue.dead.messages, 'd', record('an older one'))
      await rig.redis.zadd(queue.dead.due0, NOW - 1, 'd')
      await queue.block('deadInFlight')
      expect(await giveBack(queue, 'rejected')).to.deep.equal([2])
      const stored = () => rig.redis.hgetall(queue.dead.batches)
      expect(await stored()).to.deep.equal({ bb: counts('c', { removed: 1 }), lb: LAST })
      await queue.unblock('deadInFlight')
      expect(await close({ keys: queue.dead })).to.include({
        state: 'finished',
        closedAt: 7,
      })
      expect(await stored()).to.deep.equal({ bb: counts('f', { removed: 1, finished: NOW }) })
      expect(await rig.redis.hkeys(queue.dead.messages)).to.have.members(['x', 'last'])
    })

    it('batches: refuses the messages of a batch, and adds the others in a queue that has never had any', async () => {
      const queue = await rig.queue()
      await queue.block('batches')
      expect((await add(queue, ['x'])).outcomes).to.deep.equal([-8])
      expect((await add(queue, ['x'], { batch: '' })).outcomes).to.deep.equal([1])
    })

    it('batches: a poll that finds nothing restores the setting, and scripts need the key from then on', async () => {
      const queue = await rig.queue({ ...closedWith([held]), config: [] })
      await poll(queue)
      expect((await queue.read()).queue.config).to.deep.equal({ batched: '1' })
      await queue.block('batches')
      expect(await rejection(acknowledge(queue, ['x', '1 t', 3]))).to.include({ code: 'ERR_WRONG_TYPE' })
    })

    it('batches: a poll does not set the setting', async () => {
      const queue = await rig.queue()
      await queue.block('batches')
      await poll(queue)
      expect((await queue.read()).queue).to.not.have.property('config')
    })

    for (const key of ['deadConfig', 'deadBatches'] as const) {
      it(`${key}: a dead letter of a batch is not dropped until the key is back`, async () => {
        const queue = await rig.queue(having([held]))
        await rig.redis.hset(queue.dead.config, 'batched', '1')
        await rig.redis.hset(queue.keys.config, 'keepDeadLetters', '1')
        for (const [n, id] of ['d', 'e'].entries()) {
          await rig.redis.hset(queue.dead.messages, id, record('an older one'))
          await rig.redis.zadd(queue.dead.due0, n, id)
        }
        await queue.block(key)
        await poll(queue)
        expect(await rig.redis.hkeys(queue.dead.messages)).to.have.members(['d', 'e'])
        await queue.unblock(key)
        await poll(queue)
        expect(await rig.redis.hkeys(queue.dead.messages)).to.deep.equal(['e'])
      })
    }

    for (const key of ['batches', 'config', 'messages', 'inFlight'] as const) {
      it(`${key}: a batch is not closed, and it can be later`, async () => {
        const queue = await rig.queue()
        await queue.block(key)
        const before = await queue.read()
        expect(await rejection(close(queue, LAST, 8))).to.have.property('code', 'ERR_WRONG_TYPE')
        expect(await queue.read()).to.deep.equal(before)
        await queue.unblock(key)
        expect(await close(queue, LAST, 8)).to.include({ state: 'finished' })
      })
    }
  })

  it('skips values that no script has written', async () => {
    const junk = [
      '',
      'x',
      'c,1',
      `c,${'9'.repeat(17)},0,0,0,0,5,7,`,
      `c,-1,0,0,0,0,5,7,`,
      'q,1,0,0,0,0,5,7,',
      '9'.repeat(1_000),
    ]
    for (const text of junk) {
      const state = closedWith([held])
      const queue = await rig.queue({
        ...state,
        batches: [
          ['mx', 'b'],
          ['bb', text],
        ],
      })
      expect(await acknowledge(queue, ['x', '1 t', 3])).to.deep.equal([true])
      expect((await queue.read()).queue.batches).to.deep.equal({ bb: text })
    }
    for (const last of ['', 'x', '4,,,0,99\nlast', `4,,,0,${'9'.repeat(60)}\nlast`, '44,,,0,4\nlast']) {
      const state = closedWith([held])
      const queue = await rig.queue({
        ...state,
        batches: [
          ['mx', 'b'],
          ['bb', counts('c', { pending: 1 })],
          ['lb', last],
        ],
      })
      expect(await acknowledge(queue, ['x', '1 t', 3])).to.deep.equal([true])
      expect((await queue.read()).queue.batches).to.deep.equal({ bb: counts('f', { completed: 1, finished: NOW }) })
      expect((await queue.read()).queue).to.not.have.property('messages')
    }
  })

  it('reads no name of a batch that is longer than any', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `x${n}`)
    const batches = ids.map((id, n) => [`m${id}`, n % 3 === 0 ? 'l'.repeat(1_000_000) : 'b'] as const)
    const pending = ids.filter((_, n) => n % 3 !== 0).length
    const queue = await rig.queue(
      having(
        ids.map((id) => ({ id, until: NOW + 9 })),
        { config: [['batched', '1']], batches: [...batches, ['bb', counts('c', { pending })]] },
      ),
    )
    const calls = await commandCalls(rig.redis, () => acknowledge(queue, ...ids.map((id) => [id, '1 t'] as const)))
    // the first page shows that there are such names; of the other 32 ids the 21 of the batch are read
    expect(calls).to.include({ hget: 21 + 3 + 1 })
    expect(await rig.redis.hget(queue.keys.batches, 'bb')).to.equal(counts('f', { completed: pending, finished: NOW }))
  })

  it('cost no command in a queue without batches', async () => {
    const queue = await rig.queue(having([held]))
    const actions = [() => acknowledge(queue, ['x', '1 t', 3]), () => add(queue, ['y'], { batch: '' })]
    for (const action of actions) {
      const calls = await commandCalls(rig.redis, action)
      expect(calls).to.include({ hlen: 1, hmget: 1 }) // the settings; the deliveries, or the records
      expect(calls).to.not.include.any.keys('hget', 'hstrlen')
    }
  })

  it('has the last message in the change stream', async () => {
    const queue = await rig.queue(closedWith([held], [['changes', 'g,100,,1,first']]))
    await acknowledge(queue, ['x', '1 t', 3])
    const [entry = ''] = await queue.changes()
    expect(entry).to.include('k,,,').and.to.include(`a,,${NOW},4,`).and.to.include('the last')
  })
})
