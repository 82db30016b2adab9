/** What the command line shows of results, progress, groups, pauses and settings, and how it changes settings. */
import { expect } from 'chai'
import { codecs } from '../../src/index.js'
import { reliableKeys } from '../../src/keys.js'
import { inProcess } from '../support/cli.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient } from './fixtures.js'

const HOSTILE = 'a\u202e\x1b[31m\u2028b'
/** Nothing else may steer a terminal; line feeds end the lines. */
// eslint-disable-next-line no-control-regex
const UNPRINTABLE = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/u

type Json = Readonly<Record<string, unknown>>

async function json<T = Json>(...args: readonly string[]): Promise<T> {
  const { code, out, err } = await inProcess([...args, '--json'])
  expect({ code, err }).to.deep.equal({ code: 0, err: '' })
  return JSON.parse(out) as T
}

async function text(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await inProcess(args)
  expect({ code, err }).to.deep.equal({ code: 0, err: '' })
  expect(out).not.to.match(UNPRINTABLE)
  return out
}

async function refused(code: number, says: RegExp, ...args: readonly string[]): Promise<void> {
  const result = await inProcess(args)
  expect(result.err).to.match(/^redelayed: [^\n]+\n$/)
  expect(result.err).to.match(says)
  expect(result.code).to.equal(code)
}

function makeQueue() {
  const name = uniqueName('cli')
  forgetReliable(name)
  return makeClient().getReliableQueue(name)
}

function makeSharded(shards: number) {
  const queue = makeClient().getShardedReliableQueue(uniqueName('cli'), { shards })
  for (const name of queue.names) forgetReliable(name)
  return queue
}

const rowOf = (out: string, name: string): string[] =>
  (out.split('\n').find((line) => line.startsWith(`${name} `)) ?? '').split(/ {2,}/)

describe('the command line, looking into reliable queues', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  describe('completed', () => {
    it('shows results, the latest first, in pages, of all shards together', async () => {
      for (const queue of [makeQueue(), makeSharded(3)]) {
        await queue.setConfig({ keepCompleted: 20, keepCompletedFor: '1h' })
        const shards = 'shards' in queue ? queue.shards : [queue]
        const at = Date.now()
        for (let n = 0; n < 12; n++) {
          const shard = shards[n % shards.length]!
          await shard.add(n, { id: `m${n}` })
          await (await shard.poll())?.acknowledge(n === 11 ? {} : { result: { n, note: HOSTILE } })
          await rawClient().zadd(reliableKeys(shard.name).completedAt, at + n, `m${n}`)
        }
        const page = await json<{ completed: Json[] }>('completed', queue.name, '--limit', '5')
        expect(page).to.include({
          queue: queue.name,
          kept: 12,
          keepCompleted: 20,
          keepCompletedFor: 3_600_000,
          skip: 0,
        })
        expect(page.completed.map(({ id }) => id)).to.deep.equal(['m11', 'm10', 'm9', 'm8', 'm7'])
        expect(page.completed[0]).to.include({ queue: shards.at(11 % shards.length)?.name, attempts: 1, result: null })
        expect(page.completed[1]!['result']).to.deep.equal({ n: 10, note: HOSTILE })
        const next = await json<{ completed: Json[] }>('completed', queue.name, '--limit', '6', '--skip', '8')
        expect(next.completed.map(({ id }) => id)).to.deep.equal(['m3', 'm2', 'm1', 'm0'])
        const out = await text('completed', queue.name, '--limit', '2')
        expect(out).to.include('keeps completed messages: at most 20, for 1 h')
        expect(out).to.include('12 completed (2 shown, latest first)').and.include('a\\u202e\\u001b[31m\\u2028b')
      }
    })

    it('shows what the codec cannot read as hex, says that nothing is kept, and refuses wrong usage', async () => {
      const queue = makeQueue()
      await queue.add(1)
      expect(await text('completed', queue.name))
        .to.include('keeps no completed messages')
        .and.include('0 completed')
      await queue.setConfig({ keepCompleted: 1 })
      await (await queue.poll())?.acknowledge({ result: { a: 1 } })
      const { code, out, err } = await inProcess(['completed', queue.name, '--codec', 'json', '--json'])
      expect(code).to.equal(0)
      expect(err).to.include('1 element shown as hex')
      expect(JSON.parse(out)).to.have.nested.property('completed[0].undecodable.size')
      await refused(2, /--skip: expected a whole number from 0/, 'completed', queue.name, '--skip', '-1')
      await refused(1, /there is no reliable queue/, 'completed', uniqueName('none'))
    })

    it('shows each message whose id is not UTF-8, and reads no other keys of the queue than those of completed messages', async () => {
      const queue = makeQueue()
      await queue.add(1, { id: 'waits' })
      await queue.setConfig({ keepCompleted: 5, keepCompletedFor: '1h' })
      const { completed, completedAt, groupTurns } = reliableKeys(queue.name)
      const now = Date.now()
      const kept = [
        [now, [0x61, 0xff]],
        [now - 1_000, [0x61, 0xfe]],
        [now - 7_200_000, [0x6f, 0x6c, 0x64]], // older than an hour
      ] as const
      for (const [at, bytes] of kept) {
        await rawClient().zadd(completedAt, at, Buffer.from(bytes))
        await rawClient().hset(completed, Buffer.from(bytes), `${at},3,\n`)
      }
      await rawClient().set(groupTurns, 'of another program')
      const page = await json<{ kept: number; completed: Json[] }>('completed', queue.name)
      expect(page.completed.map(({ id, completedAt: at, attempts }) => [id, at, attempts])).to.deep.equal([
        ['a\ufffd', now, 3],
        ['a\ufffd', now - 1_000, 3],
      ])
      expect(page.kept).to.equal(2)
    })

    it('ends a page before 8 MiB', async () => {
      const name = uniqueName('cli')
      forgetReliable(name)
      const queue = makeClient({ codec: codecs.string() }).getReliableQueue<string>(name)
      await queue.setConfig({ keepCompleted: 10 })
      for (let n = 0; n < 4; n++) {
        await queue.add('x')
        await (await queue.poll())?.acknowledge({ result: 'x'.repeat(3 * 2 ** 20) })
      }
      const found = await json<{ kept: number; completed: Json[] }>('completed', name, '--codec', 'string')
      expect([found.kept, found.completed.length]).to.deep.equal([4, 2])
    })
  })

  it('message: shows progress while a consumer has it, then the result, and a dead letter', async () => {
    for (const queue of [makeQueue(), makeSharded(4)]) {
      await queue.setConfig({ keepCompleted: 10 })
      await queue.add({ of: HOSTILE }, { id: HOSTILE, group: 'g' })
      const message = await queue.poll()
      await message?.progress({ done: 50 })
      const live = await json<{ message: Json }>('message', queue.name, HOSTILE)
      expect(live).to.include({ completed: null, deadLetter: null })
      expect(live.message).to.deep.include({ state: 'inFlight', attempts: 1, group: 'g', payload: { of: HOSTILE } })
      expect(live.message['progress']).to.deep.include({ value: { done: 50 }, attempt: 1 })
      expect(await text('message', queue.name, HOSTILE)).to.match(/PROGRESS +\{"done":50\} \(attempt 1, /)
      expect(await text('peek', queue.name))
        .to.include('PROGRESS')
        .and.include('{"done":50} (attempt 1')
      const peeked = await json<{ reliable: { messages: Json[] } }>('peek', queue.name)
      expect(peeked.reliable.messages[0]).to.have.nested.property('progress.value.done', 50)
      await message?.acknowledge({ result: [HOSTILE] })
      const done = await json<{ completed: Json }>('message', queue.name, HOSTILE)
      expect(done).to.include({ message: null, deadLetter: null })
      expect(done.completed).to.deep.include({ id: HOSTILE, attempts: 1, result: [HOSTILE] })
      expect(await text('message', queue.name, HOSTILE))
        .to.include('is completed')
        .and.match(/RESULT +\["a\\u202e/)
      await queue.add(1, { id: 'bad' })
      await (await queue.poll())?.negativeAcknowledge({ reject: true, error: new Error('no') })
      const dead = await json('message', queue.name, 'bad')
      expect(dead).to.have.nested.property('deadLetter.failures[0].reason', 'Error: no')
      expect(await text('message', queue.name, 'bad')).to.include('"bad" is a dead letter')
      await refused(1, /has nothing of the id "none"/, 'message', queue.name, 'none')
    }
  })

  it('groups: counts some, the paused ones, and one, in all shards', async () => {
    for (const queue of [makeQueue(), makeSharded(3)]) {
      await queue.setConfig({ groupConcurrency: 7, groupRateLimit: { max: 100, perMs: '1m' } })
      await queue.addMany([...Array<string>(9).fill('a'), 'b', HOSTILE].map((group) => ({ payload: group, group })))
      await queue.add('later', { group: 'b', delay: '1h' })
      await queue.pauseGroup(HOSTILE)
      await queue.poll()
      const all = await json<{ groups: { group: string; visible: number; inFlight: number }[] }>('groups', queue.name)
      expect(all).to.deep.include({ concurrency: 7, rateLimit: { max: 100, perMs: 60_000 }, isAll: true })
      expect(all.groups.map(({ group }) => group)).to.have.members(['a', 'b', HOSTILE])
      const sum = (of: 'visible' | 'inFlight') => all.groups.reduce((before, group) => before + group[of], 0)
      expect([sum('visible'), sum('inFlight')]).to.deep.equal([10, 1])
      const { groups } = await json<{ groups: Json[] }>('groups', queue.name, '--group', 'b')
      const { concurrency: _, rateLimit: __, ...counts } = await queue.countsOfGroup('b')
      expect(groups).to.deep.equal([counts])
      expect(counts).to.include({ delayed: 1, paused: false })
      const paused = await json<{ groups: Json[] }>('groups', queue.name, '--paused')
      expect(paused.groups).to.deep.equal([
        { group: HOSTILE, visible: 1, delayed: 0, inFlight: 0, delivered: 0, paused: true },
      ])
      expect(await json('groups', queue.name, '--limit', '2')).to.have.property('isAll', false)
      const out = await text('groups', queue.name, '--limit', '2')
      expect(out).to.include('Limits of each group: 7 at once, 100 in 1 min.').and.include('more groups than these 2')
      expect(await text('groups', queue.name)).to.match(/a\\u202e\\u001b\[31m b +1 +0 +0 +0 +paused/)
      await refused(2, /--paused: not together/, 'groups', queue.name, '--paused', '--group', 'a')
    }
  })

  it('stats and peek name the paused tasks', async () => {
    for (const queue of [makeQueue(), makeSharded(3)]) {
      await queue.pauseTask(HOSTILE)
      for (let n = 0; n < 11; n++) await queue.pauseTask(`task ${n}`)
      const [stats] = await json<{ tasks: { paused: number; names: string[] } }[]>('stats', queue.name)
      expect(stats!.tasks.paused).to.equal(12)
      expect(stats!.tasks.names).to.have.members(await queue.pausedTasks())
      for (const command of ['stats', 'peek'])
        expect(await text(command, queue.name)).to.match(/asks: 12 paused in all processes: "a\\u202e.* and 2 more\./)
    }
  })

  describe('config', () => {
    it('shows the settings, changes those that are given, and removes them again', async () => {
      const queue = makeQueue()
      await queue.add(1)
      const none = { queue: queue.name, changed: [], config: {}, shards: null }
      expect(await json('config', queue.name)).to.deep.equal(none)
      const groups = ['--group-concurrency', '2', '--group-rate-limit', '3/500']
      const kept = ['--keep-completed', '10', '--keep-completed-for', '1h', '--dead-letters', 'false', '--yes']
      const others = ['--visibility-timeout', '1m', '--max-message-bytes', '100', '--keep-dead-letters', '9']
      await text('config', queue.name, ...others, '--keep-dead-letters-for', '1d', '--yes')
      expect(await queue.getConfig()).to.deep.equal({
        ...{ visibilityTimeout: 60_000, maxMessageBytes: 100, keepDeadLetters: 9, keepDeadLettersFor: 86_400_000 },
      })
      const defaults = others.map((word) => (word.startsWith('-') ? word : 'default'))
      await text('config', queue.name, ...defaults, '--keep-dead-letters-for', 'default')
      await text('config', queue.name, '--concurrency', '5', '--rate-limit', '100/1m', ...groups, ...kept)
      expect(await queue.getConfig()).to.deep.equal({
        ...{ concurrency: 5, rateLimit: { max: 100, perMs: 60_000 }, deadLetters: false },
        ...{
          groupConcurrency: 2,
          groupRateLimit: { max: 3, perMs: 500 },
          keepCompleted: 10,
          keepCompletedFor: 3_600_000,
        },
      })
      const out = await text('config', queue.name, '--concurrency', 'default')
      expect(out).to.include('concurrency set for all processes')
      expect(rowOf(out, 'concurrency')).to.deep.equal(['concurrency', 'default'])
      expect(rowOf(out, 'rateLimit')).to.deep.equal(['rateLimit', '100 in 1 min'])
      expect(rowOf(out, 'keepCompletedFor')).to.deep.equal(['keepCompletedFor', '1 h'])
      expect(await queue.getConfig()).not.to.have.property('concurrency')
    })

    it('asks before it removes what is kept, and refuses what is no setting', async () => {
      const queue = makeQueue()
      await queue.add(1)
      await queue.setConfig({ keepCompleted: 10 })
      await refused(2, /give --yes/, 'config', queue.name, '--keep-completed', '9')
      await refused(2, /give --yes/, 'config', queue.name, '--keep-completed', 'default')
      await refused(2, /give --yes/, 'config', queue.name, '--keep-dead-letters-for', '1h')
      expect(await queue.getConfig()).to.deep.equal({ keepCompleted: 10 })
      await refused(2, /give --yes/, 'config', queue.name, '--keep-completed-for', '1h')
      await text('config', queue.name, '--keep-completed', '11')
      await text('config', queue.name, '--keep-completed', 'default', '--yes')
      expect(await queue.getConfig()).to.deep.equal({})
      await text('config', queue.name, '--keep-completed', '5', '--keep-completed-for', '1h') // none is kept
      await text('config', queue.name, '--keep-completed', 'default', '--keep-completed-for', 'default', '--yes')
      await refused(2, /--concurrency: expected a whole number/, 'config', queue.name, '--concurrency', '0')
      await refused(2, /--rate-limit: expected a number and a time/, 'config', queue.name, '--rate-limit', '5')
      await refused(2, /--delay: expected/, 'config', queue.name, '--delay', '5x')
      await refused(2, /--dead-letters: expected true, false/, 'config', queue.name, '--dead-letters', 'no')
      await refused(2, /groupRateLimit\.perMs/, 'config', queue.name, '--group-rate-limit', '5/2d')
      await refused(1, /there is no reliable queue/, 'config', uniqueName('none'), '--concurrency', '5')
      expect(await queue.getConfig()).to.deep.equal({})
    })

    it('goes to all shards, for which it needs their number, and shows where they differ', async () => {
      const queue = makeSharded(4)
      await queue.addMany(Array.from({ length: 30 }, (_, payload) => ({ payload })))
      await refused(2, /give --shards/, 'config', queue.name, '--concurrency', '5')
      await text('config', queue.name, '--concurrency', '5', '--shards', '4')
      for (const shard of queue.shards) expect(await shard.getConfig()).to.deep.equal({ concurrency: 5 })
      await queue.shards[1]!.setConfig({ concurrency: 6 })
      expect(rowOf(await text('config', queue.name), 'concurrency')[1]).to.equal('5, 6 (the shards differ)')
      const { shards } = await json<{ shards: { config: Json }[] }>('config', queue.name)
      expect(shards.map(({ config }) => config['concurrency'])).to.deep.equal([5, 6, 5, 5])
    })
  })
})
