/** The command line's output about reliable queues, and about sharded queues of both kinds. */
import { expect } from 'chai'
import { codecs } from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { inProcess } from '../support/cli.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup, rawTo, redisNow } from './fixtures.js'

const HOUR = 3_600_000
const HOSTILE = 'a\u202e\x1b[31m\u2028b'
/** Nothing else may steer a terminal; line feeds end the lines. */
// eslint-disable-next-line no-control-regex
const UNPRINTABLE = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/u

type Json = Readonly<Record<string, unknown>>

async function json(...args: readonly string[]): Promise<unknown> {
  const { code, out, err } = await inProcess([...args, '--json'])
  expect({ code, err }).to.deep.equal({ code: 0, err: '' })
  return JSON.parse(out)
}

async function lines(...args: readonly string[]): Promise<string[]> {
  const { code, out, err } = await inProcess(args)
  expect({ code, err }).to.deep.equal({ code: 0, err: '' })
  expect(out).not.to.match(UNPRINTABLE)
  return out.trimEnd().split('\n')
}

const cells = (line = ''): string[] => line.trim().split(/ {2,}/)

/** One visible, one delayed, one in flight, one dead letter; changes are kept for a group. */
async function makeReliable(name: string) {
  forgetReliable(name)
  const queue = makeClient().getReliableQueue(name)
  await queue.setConfig({ changes: { keep: 'groups' } })
  await queue.add('dead', { id: 'dead' })
  await (await queue.poll())?.negativeAcknowledge({ reject: true, error: HOSTILE })
  await queue.add('held', { id: 'held' })
  await queue.poll()
  await queue.add({ to: HOSTILE }, { id: 'now', priority: 7, headers: { task: HOSTILE } })
  await queue.add('later', { id: 'later', delay: 2 * HOUR + 5_000 })
  return queue
}

describe('the command line, about reliable and sharded queues', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  it('reports that a delay looks like a timestamp', async () => {
    const name = uniqueName('cli')
    const { code, out, err } = await inProcess(['offer', name, '1', String(Date.now())])
    expect(code).to.equal(0)
    expect(err).to.contain('The delay looks like a point in time')
    expect((await inProcess(['cancel', name, out.trim()])).code).to.equal(0)
  })

  it('counts the messages of a batch, and fails for an unknown name', async () => {
    const name = uniqueName('cli')
    forgetReliable(name)
    const queue = makeClient().getReliableQueue(name)
    await queue.addMany([{ payload: 1 }, { payload: 2 }, { payload: 3 }], { batch: HOSTILE })
    await (await queue.poll())?.acknowledge()
    await (await queue.poll())?.negativeAcknowledge({ reject: true })
    const counts = { total: 3, pending: 1, completed: 1, dead: 1, expired: 0, removed: 0 }
    const open = { queue: name, batch: HOSTILE, state: 'open', ...counts, closedAt: null, finishedAt: null }
    expect(await json('batch', name, HOSTILE)).to.deep.include({ ...open, finishedTime: null })
    const [headings, row] = await lines('batch', name, HOSTILE)
    expect(cells(headings)).to.have.length(cells(row).length)
    expect(cells(row).slice(1)).to.deep.equal(['open', '3', '1', '1', '1', '0', '0', '-'])
    await queue.clear()
    const { code, err } = await inProcess(['batch', name, HOSTILE])
    expect(code).to.equal(1)
    expect(err).to.contain('nothing was added to it')
    expect((await inProcess(['batch', name, ''])).code).to.equal(2)
  })

  it('offers a message under the name of a reliable queue, and warns that its consumers do not see it', async () => {
    const name = uniqueName('cli')
    await makeReliable(name)
    const { code, out, err } = await inProcess(['offer', name, '1', '1h'])
    expect(code).to.equal(0)
    expect(out).to.match(/^\S+\n$/)
    expect(err).to.match(
      /^due .*\nThere is a reliable queue of this name, too, whose consumers do not see this message: /,
    )
    expect(err).to.contain(`redelayed cancel "${name}" <ticket>`)
    expect((await inProcess(['cancel', name, out.trim()])).code).to.equal(0)
  })

  describe('stats', () => {
    it('counts the groups that have turns, that wait for a time, and that are paused', async () => {
      const name = uniqueName('cli')
      forgetReliable(name)
      const queue = makeClient().getReliableQueue(name)
      for (const group of ['a', 'b', 'p']) await queue.add(1, { group })
      await queue.add(1)
      await queue.add(1, { group: 'c', delay: '1h' })
      await queue.pauseGroup('p')
      const [stats] = (await json('stats', name)) as Json[]
      expect(stats!['groups']).to.deep.equal({ ready: 2, later: 1, paused: 1 })
      expect(await lines('stats', name)).to.include(`${name}: groups: 2 with turns, 1 that wait for a time, 1 paused.`)
      expect(await json('peek', name)).to.have.nested.property('reliable.groups.paused', 1)
      expect(await lines('peek', name)).to.include('Groups: 2 with turns, 1 that wait for a time, 1 paused.')
      expect((await inProcess(['doctor', name])).out).to.include(
        '1 group is paused; 2 have turns, and 1 wait for a time.',
      )
    })

    it('shows the states of a reliable queue, its dead letters, stuck repeats and how far the groups are', async () => {
      const name = uniqueName('cli')
      const queue = await makeReliable(name)
      await queue.upsertSchedule('hourly', 'x', { every: HOUR })
      await rawClient().zadd(reliableKeys(name).ticks, Math.floor(await redisNow()) - 60_000, 'hourly')
      await queue.releaseChanges('audit', (await queue.changeStatus()).last!)
      await queue.add('one more')

      const [stats] = (await json('stats', name)) as Json[]
      expect(stats).to.include({ queue: name, kind: 'reliable', shards: null })
      // the message of the next tick is delayed
      expect(stats).to.include({ total: 5, visible: 2, delayed: 2, inFlight: 1, dead: 1, pollPaused: false })
      expect(stats!['repeats']).to.deep.equal({ stored: 1, stuck: 1 })
      expect(stats).to.have.nested.property('changes.groups[0].name', 'audit')
      expect(stats).to.have.nested.property('changes.groups[0].pending', 0)

      const [headings, row, , groupHeadings, group] = await lines('stats', name)
      expect(cells(headings)).to.deep.equal([
        'RELIABLE QUEUE',
        'VISIBLE',
        'DELAYED',
        'NEXT DUE',
        'IN FLIGHT',
        'DEAD',
        'REPEATS',
        'CHANGES',
      ])
      expect(cells(row).map((cell) => cell.replace(/\(for up to .*/, '(…)'))).to.deep.equal([
        name,
        '2 (…)',
        '2',
        '-',
        '1',
        '1',
        '1 (1 stuck)',
        String((await queue.changeStatus()).length),
      ])
      expect(cells(groupHeadings)[0]).to.equal('CHANGES OF')
      expect(cells(group).slice(0, 2)).to.deep.equal([name, 'audit'])
    })

    it('finds the shards of a named queue, and sums up both kinds', async () => {
      const name = uniqueName('cli')
      const client = makeClient()
      const reliable = client.getShardedReliableQueue<number>(name, { shards: 5 })
      for (const shard of reliable.names) forgetReliable(shard)
      const delayed = client.getShardedDelayedQueue<number>(name, { shards: 3, deliver: false })
      await reliable.addMany(Array.from({ length: 40 }, (_, payload) => ({ payload, delay: payload < 10 ? 0 : HOUR })))
      await delayed.offerAll(Array.from({ length: 12 }, (_, value) => ({ value, delay: HOUR })))
      onCleanup(() => delayed.delete())

      const found = (await json('stats', name)) as (Json & { shards: Json[] })[]
      expect(found.map(({ kind }) => kind)).to.deep.equal(['delayed', 'reliable'])
      const [ofDelayed, ofReliable] = found
      expect(ofDelayed).to.include({ queue: name, pending: 12, overdue: 0 })
      expect(ofDelayed!.shards.map(({ queue }) => queue)).to.deep.equal(delayed.names)
      expect(ofReliable).to.include({ total: 40, visible: 10, delayed: 30 })
      expect(ofReliable!.shards.map(({ queue }) => queue)).to.deep.equal(reliable.names)
      expect(ofReliable!.shards.map(({ total }) => total)).to.deep.equal(await reliable.sizes())

      const table = await lines('stats', name)
      expect(table.map((line) => cells(line)[0])).to.deep.equal([
        'QUEUE',
        `${name} (3 shards)`,
        ...delayed.names,
        `${name}: no client delivers its shards now; one that consumes it, or calls getShardedDelayedQueue on it, does.`,
        '',
        'RELIABLE QUEUE',
        `${name} (5 shards)`,
        ...reliable.names,
      ])
    })

    it('finds all queues of a Redis by itself, also those with only dead letters, and those it cannot read', async function () {
      requireServerBin(this)
      const server = await startRedis({})
      onCleanup(() => server.stop())
      const client = makeClient({ url: server.url })
      expect((await inProcess(['stats', '--url', server.url])).out).to.equal('No queue was found.\n')
      const sharded = client.getShardedReliableQueue('sharded', { shards: 4 })
      await sharded.addMany(Array.from({ length: 200 }, (_, payload) => ({ payload }))) // so many that each shard has some
      const dead = client.getReliableQueue('deadly')
      await dead.add(1)
      await (await dead.poll())?.negativeAcknowledge({ reject: true })
      await dead.setConfig({ deliveryLimit: null })
      const delayed = client.getDelayedQueue(client.getQueue('plain'), { deliver: false })
      await delayed.offer('x', HOUR)

      const found = (await json('stats', '--url', server.url)) as Json[]
      expect(found.map(({ kind, queue, total, dead, pending }) => [kind, queue, total ?? pending, dead])).to.deep.equal(
        [
          ['delayed', 'plain', 1, undefined],
          ['reliable', 'deadly', 0, 1],
          ['reliable', 'sharded', 200, 0],
        ],
      )

      const raw = client.getReliableQueue('wrong')
      await raw.add(1)
      await rawTo(server.port).set(reliableKeys('wrong').inFlight, 'in the way')
      const { code, out, err } = await inProcess(['stats', '--url', server.url])
      expect(code).to.equal(1)
      expect(err).to.match(/^redelayed: 1 cannot be read; the first: .*another type/)
      expect(out)
        .to.include('sharded (4 shards)')
        .and.match(/wrong +.*another type/)
    })
  })

  describe('peek', () => {
    it('shows the limits, the messages that they and pauses hold back, and the number of batches', async () => {
      const name = uniqueName('cli')
      forgetReliable(name)
      const queue = makeClient().getReliableQueue(name)
      await queue.setConfig({ concurrency: 5, rateLimit: { max: 100, perMs: '1m' }, groupConcurrency: 1 })
      for (const group of ['a', 'a', 'p', 'p', 'p']) await queue.add(1, { group, batch: 'open' })
      await queue.batch('empty').close()
      await queue.pauseGroup('p')
      const { reliable } = (await json('peek', name)) as { reliable: Json }
      expect(reliable).to.deep.include({
        limits: {
          concurrency: 5,
          rateLimit: { max: 100, perMs: 60_000 },
          groupConcurrency: 1,
          groupRateLimit: null,
        },
        heldBack: { byPause: 3, byLimit: 1 },
        batches: { unfinished: 1, finished: 1 },
      })
      expect(await lines('peek', name)).to.include.members([
        'Limits: 5 at once, 100 in 1 min; of each group 1 at once.',
        'Held back: 1 by a limit, 3 by a pause.',
        'Batches: 1 unfinished, 1 finished.',
      ])
    })

    it('shows the next messages of a reliable queue in all states, dead letters with their last failure, and takes nothing', async () => {
      const name = uniqueName('cli')
      const queue = await makeReliable(name)
      const before = await queue.counts()
      const found = await lines('peek', name)
      expect(found.filter((line) => !line.startsWith(' '))).to.deep.equal([
        '1 visible (next delivered first)',
        '1 delayed (next due first)',
        '1 in flight (next back first)',
        '1 dead letters (oldest first)',
      ])
      const row = (id: string): string[] => cells(found.find((line) => cells(line)[1] === id))
      const hostile = 'a\\u202e\\u001b[31m\\u2028b'
      expect(row('now').slice(2)).to.deep.equal(['7', '0', `{"task":"${hostile}"}`, `{"to":"${hostile}"}`, '-'])
      expect(row('later')[0]).to.match(/\(in 2 h\)$/)
      expect(row('held').slice(2)).to.deep.equal(['0', '1', '-', '"held"', '-'])
      expect(row('dead').slice(5)).to.deep.equal(['"dead"', 'Error: a\\u202e\\u001b[31m b'])
      expect({ ...(await queue.counts()), oldestMs: 0 }).to.deep.equal({ ...before, oldestMs: 0 })

      const { reliable } = (await json('peek', name)) as { reliable: { messages: Json[]; deadLetters: Json[] } }
      expect(reliable).to.include({ total: 3, visible: 1, delayed: 1, inFlight: 1, dead: 1 })
      expect(
        reliable.messages.map(({ id, state, priority, attempts }) => [id, state, priority, attempts]),
      ).to.deep.equal([
        ['now', 'visible', 7, 0],
        ['later', 'delayed', 0, 0],
        ['held', 'inFlight', 0, 1],
      ])
      expect(reliable.messages[0]).to.deep.include({ payload: { to: HOSTILE }, headers: { task: HOSTILE } })
      expect(reliable.deadLetters).to.have.lengthOf(1)
      expect(reliable.deadLetters[0]).to.have.nested.include({ id: 'dead', 'failures[0].attempt': 1 })
    })

    it('shows in the order of delivery and of due times, over all priorities and shards, up to the limit', async () => {
      const name = uniqueName('cli')
      const queue = makeClient().getShardedReliableQueue<number>(name, { shards: 3 })
      for (const shard of queue.names) forgetReliable(shard)
      await queue.addMany(Array.from({ length: 20 }, (_, n) => ({ payload: n, id: `v${n}`, priority: n % 10 })))
      await queue.addMany(
        Array.from({ length: 20 }, (_, n) => ({ payload: n, id: `d${n}`, priority: n % 10, delay: HOUR + n * 1_000 })),
      )
      const { reliable } = (await json('peek', name, '--limit', '4')) as { reliable: { messages: Json[] } }
      const of = (state: string) => reliable.messages.filter((message) => message['state'] === state)
      expect(of('visible').map(({ priority }) => priority)).to.deep.equal([9, 9, 8, 8])
      expect(of('delayed').map(({ id }) => id)).to.deep.equal(['d0', 'd1', 'd2', 'd3'])
      expect(queue.names).to.include(of('delayed')[0]!['queue'])
      expect((await lines('peek', name, '--limit', '4'))[0]).to.equal('20 visible (4 shown, next delivered first)')
    })

    it('shows undecodable payloads and unreadable records as hex', async () => {
      const name = uniqueName('cli')
      forgetReliable(name)
      const queue = makeClient().getReliableQueue(name, { codec: codecs.bytes() })
      await queue.add(Buffer.from('{"not":"msgpack"}'), { id: 'a' })
      await queue.add(Buffer.from('x'), { id: 'b' })
      await rawClient().hset(reliableKeys(name).messages, 'b', Buffer.from([9, 1, 2, 3]))
      const hex = Buffer.from('{"not":"msgpack"}').toString('hex')

      const { code, out, err } = await inProcess(['peek', name])
      expect(code).to.equal(0)
      expect(err).to.match(/^redelayed: 2 elements shown as hex, because --codec does not fit: [^\n]*\n$/)
      expect(out).to.include(`0x${hex} (17 bytes, cannot be decoded)`).and.include('0x09010203 (4 bytes')
      const { reliable } = JSON.parse((await inProcess(['peek', name, '--json'])).out) as {
        reliable: { messages: { id: string; payload: null; undecodable: Json }[] }
      }
      expect(reliable.messages.map(({ id, payload }) => [id, payload])).to.deep.equal([
        ['a', null],
        ['b', null],
      ])
      expect(reliable.messages[0]!.undecodable).to.include({ hex, size: 17 })
      expect((await inProcess(['peek', name, '--codec', 'json'])).out).to.include('{"not":"msgpack"}')
    })

    it('merges the shards of a delayed queue', async () => {
      const name = uniqueName('cli')
      const delayed = makeClient().getShardedDelayedQueue<number>(name, { shards: 3, deliver: false })
      onCleanup(() => delayed.delete())
      await delayed.offerAll([3, 1, 2, 4].map((value) => ({ value, delay: HOUR + value * 1_000 })))
      const peeked = (await json('peek', name, '--limit', '3')) as {
        pending: number
        scheduled: Json[]
        reliable: null
      }
      expect(peeked).to.include({ pending: 4, reliable: null })
      expect(peeked.scheduled.map(({ value }) => value)).to.deep.equal([1, 2, 3])
      const { shard, ticket } = peeked.scheduled[0] as { shard: string; ticket: string }
      expect(await json('cancel', shard, ticket)).to.include({ cancelled: true })
    })

    it('ends a list before 8 MiB, however many messages are asked for', async () => {
      const name = uniqueName('cli')
      forgetReliable(name)
      const client = makeClient({ codec: codecs.string() })
      const large = Array.from({ length: 4 }, () => 'x'.repeat(3 * 2 ** 20))
      const delayed = client.getDelayedQueue(client.getQueue<string>(name), { deliver: false })
      onCleanup(() => delayed.delete())
      onCleanup(() => delayed.destination.delete())
      for (const value of large) await delayed.offer(value, HOUR)
      await delayed.destination.addAll(large)
      await client.getReliableQueue<string>(name).addMany(large.map((payload) => ({ payload })))
      const peeked = (await json('peek', name, '--limit', '100', '--codec', 'string')) as Record<string, Json[]> & {
        reliable: { visible: number; messages: Json[] }
      }
      expect(peeked).to.include({ pending: 4, delivered: 4 })
      expect(peeked['scheduled']).to.have.length(2)
      expect(peeked['ready']).to.have.length(2)
      expect(peeked.reliable.visible).to.equal(4)
      expect(peeked.reliable.messages).to.have.length(3)
      const text = await lines('peek', name, '--limit', '100', '--codec', 'string')
      expect(text).to.include('4 pending (2 shown, next due first)')
      expect(text).to.include('4 visible (3 shown, next delivered first)')
    })
  })
})
