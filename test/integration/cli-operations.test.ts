/** Changes of reliable queues by the command line: redriven dead letters, moved messages, pauses. */
import { expect } from 'chai'
import { PassThrough } from 'node:stream'
import { confirm } from '../../src/cli/confirm.js'
import { NegativeResult, UsageError } from '../../src/cli/failure.js'
import { inProcess } from '../support/cli.js'
import { eventually } from '../support/events.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient } from './fixtures.js'

const HOUR = 3_600_000

async function done(...args: readonly string[]): Promise<unknown> {
  const { code, out, err } = await inProcess([...args, '--json'])
  expect({ code, err }).to.deep.equal({ code: 0, err: '' })
  return JSON.parse(out)
}

async function refused(code: number, says: RegExp, ...args: readonly string[]): Promise<void> {
  const result = await inProcess(args)
  expect(result.err).to.match(/^redelayed: [^\n]+\n$/)
  expect(result.err).to.match(says)
  expect(result.code).to.equal(code)
}

function makeQueue(client = makeClient(), name = uniqueName('cli')) {
  forgetReliable(name)
  return client.getReliableQueue(name)
}

function makeSharded(shards: number) {
  const queue = makeClient().getShardedReliableQueue(uniqueName('cli'), { shards })
  for (const name of queue.names) forgetReliable(name)
  return queue
}

interface Rejecting {
  add(payload: unknown, options: { id: string }): Promise<unknown>
  poll(): Promise<{ negativeAcknowledge(how: { reject: true }): Promise<unknown> } | null>
}

async function deadLetter(queue: Rejecting, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await queue.add(id, { id })
    await (await queue.poll())?.negativeAcknowledge({ reject: true })
  }
}

describe('the command line, on reliable queues', function () {
  this.timeout(60_000)
  afterEach(cleanUp)

  describe('redrive', () => {
    it('moves all dead letters back, or the oldest so many', async () => {
      const queue = makeQueue()
      await deadLetter(queue, ['a', 'b', 'c', 'd'])
      expect(await done('redrive', queue.name, '--count', '1', '--yes')).to.deep.equal({
        queue: queue.name,
        dead: 4,
        moved: 1,
      })
      expect(await queue.contains('a')).to.equal(true)
      const { code, out, err } = await inProcess(['redrive', queue.name, '--yes'])
      expect({ code, out, err }).to.deep.equal({ code: 0, out: `3 moved back to "${queue.name}"\n`, err: '' })
      expect(await queue.counts()).to.include({ visible: 4, dead: 0 })
      expect(await done('redrive', queue.name)).to.deep.include({ dead: 0, moved: 0 }) // nothing to ask about
    })

    it('takes ids of any form, from all shards, and reports missing ones by its exit code', async () => {
      const queue = makeSharded(3)
      const ids = ['007', '-x', '1e5', '--yes', 'e', 'f']
      await deadLetter(queue, ids)
      const chosen = ids.slice(0, 4).flatMap((id) => ['--id', id])
      expect(await done('redrive', queue.name, ...chosen, '--yes')).to.include({ dead: 6, moved: 4 })
      expect(await queue.containsMany(ids.slice(0, 4))).to.equal(4)
      await refused(1, /1 were not moved/, 'redrive', queue.name, '--id', 'e', '--id=nothing', '--yes')
      expect(await queue.counts()).to.include({ visible: 5, dead: 1 })
      expect(await done('redrive', queue.name, '--yes')).to.include({ moved: 1 })
    })

    it('moves nothing without --yes and without a terminal, and refuses contradictory options', async () => {
      const queue = makeQueue()
      await deadLetter(queue, ['a'])
      await refused(2, /give --yes/, 'redrive', queue.name)
      await refused(2, /--count: not together with --id/, 'redrive', queue.name, '--id', 'a', '--count', '3', '--yes')
      await refused(2, /--count: expected a whole number/, 'redrive', queue.name, '--count', '0', '--yes')
      await refused(2, /--id: expected a non-empty string/, 'redrive', queue.name, '--id', '', '--yes')
      await refused(1, /there is no reliable queue/, 'redrive', uniqueName('none'), '--yes')
      expect(await queue.counts()).to.include({ total: 0, dead: 1 })
    })
  })

  describe('move', () => {
    it('moves messages that no consumer has, of all priorities, and no more than existed at the start', async () => {
      const client = makeClient()
      const [from, to] = [makeQueue(client), makeQueue(client)]
      await from.addMany(Array.from({ length: 250 }, (_, n) => ({ payload: n, id: `${n}`, priority: n % 10 })))
      await from.add('later', { id: 'later', delay: HOUR })
      const held = await from.poll()
      expect(await done('move', from.name, to.name, '--count', '5', '--yes')).to.include({
        visible: 249,
        delayed: 1,
        moved: 5,
      })
      expect(await done('move', from.name, to.name, '--id', 'later', '--yes')).to.include({ moved: 1 })
      await refused(1, /1 were not moved/, 'move', from.name, to.name, '--id', held!.id, '--yes')
      expect(await done('move', from.name, to.name, '--yes')).to.include({ moved: 244 })
      expect(await from.counts()).to.include({ total: 1, inFlight: 1 })
      expect(await to.counts()).to.include({ total: 250, visible: 250 })
    })

    it('refuses sharded queues, the same queue and a missing one', async () => {
      const [queue, sharded] = [makeQueue(), makeSharded(3)]
      await queue.add(1)
      await sharded.addMany([{ payload: 1 }, { payload: 2 }])
      await refused(2, /is sharded/, 'move', sharded.name, queue.name, '--yes')
      await refused(2, /is sharded/, 'move', queue.name, sharded.name, '--yes')
      await refused(2, /another queue/, 'move', queue.name, queue.name, '--yes')
      await refused(1, /there is no reliable queue/, 'move', uniqueName('none'), queue.name, '--yes')
      await refused(2, /give --yes/, 'move', queue.name, uniqueName('other'))
      expect(await queue.size()).to.equal(1)
    })
  })

  describe('pause and resume', () => {
    it('make consumers of all clients wait, which continue at once after resume', async () => {
      const queue = makeQueue()
      const consumer = makeQueue(makeClient(), queue.name)
      await queue.setConfig({ visibilityTimeout: HOUR })
      expect(await done('pause', queue.name)).to.deep.equal({
        queue: queue.name,
        operation: 'poll',
        paused: true,
        shards: null,
      })
      await queue.add('x')
      expect(await queue.poll()).to.equal(null)
      const waiting = consumer.poll({ timeout: 50_000 })
      let isOver = false
      void waiting.then(() => (isOver = true))
      await eventually(() => expect(consumer.polledAt).to.be.greaterThan(-Infinity))
      expect(isOver).to.equal(false)

      const [stats] = (await done('stats', queue.name)) as object[]
      expect(stats).to.include({ visible: 1, pollPaused: true, addPaused: false })
      const { out } = await inProcess(['stats', queue.name])
      expect(out).to.include(
        `${queue.name}: paused: no consumer gets a message; redelayed resume "${queue.name}" ends it.`,
      )

      expect((await inProcess(['resume', queue.name])).out).to.equal(
        `${queue.name}: poll is resumed in all processes\n`,
      )
      expect((await waiting)?.payload).to.equal('x') // long before a sweep
    })

    it('take a task alone with --task', async () => {
      const queue = makeQueue()
      await queue.addTask('report', 'x')
      await queue.addTask('-w', 'y')
      expect(await done('pause', queue.name, '--task', 'report')).to.deep.equal({
        ...{ queue: queue.name, operation: 'poll', paused: true, shards: null, task: 'report' },
      })
      expect(await queue.pausedTasks()).to.deep.equal(['report'])
      expect((await queue.pollMany({ count: 2 })).map(({ payload }) => payload)).to.deep.equal(['y'])
      const waiting = []
      for await (const { state } of queue.listAll({ state: 'visible' })) waiting.push(state)
      expect(waiting).to.deep.equal(['visible'])
      for await (const { id } of queue.listAll({ state: 'delayed' })) expect.fail(id)
      expect((await inProcess(['stats', queue.name])).out).to.include(
        `${queue.name}: tasks: 1 paused in all processes: "report".`,
      )
      expect((await inProcess(['resume', queue.name, '--task', 'report'])).out).to.equal(
        `${queue.name}: the task "report" is resumed in all processes\n`,
      )
      expect((await queue.poll())?.payload).to.equal('x')
      await refused(2, /one task cannot be paused/, 'pause', queue.name, '--task', '7', '--operation', 'add')
      await refused(2, /either --task or --group/, 'pause', queue.name, '--task', '7', '--group', '7')
    })

    it('take a group alone with --group', async () => {
      const queue = makeQueue()
      await queue.add('x', { group: '7' })
      await queue.add('y', { group: '8' })
      expect(await done('pause', queue.name, '--group', '7')).to.deep.equal({
        ...{ queue: queue.name, operation: 'poll', paused: true, shards: null, group: '7' },
      })
      expect(await queue.pausedGroups()).to.deep.equal(['7'])
      expect((await queue.pollMany({ count: 2 })).map(({ payload }) => payload)).to.deep.equal(['y'])
      expect((await inProcess(['resume', queue.name, '--group', '7'])).out).to.equal(
        `${queue.name}: the group "7" is resumed in all processes\n`,
      )
      expect((await queue.poll())?.payload).to.equal('x')
      await refused(2, /one group cannot be paused/, 'pause', queue.name, '--group', '7', '--operation', 'add')
      await refused(2, /group/, 'pause', queue.name, '--group', '')
    })

    it('refuse adding with --operation add', async () => {
      const queue = makeQueue()
      await queue.add('x')
      await done('pause', queue.name, '--operation', 'add')
      await queue.add('y').then(
        () => expect.fail('it was added'),
        (error: { code: string }) => expect(error.code).to.equal('ERR_OPERATION_DISABLED'),
      )
      await done('resume', queue.name, '--operation', 'add')
      await queue.add('y')
      await refused(2, /--operation: expected poll, add, got "take"/, 'pause', queue.name, '--operation', 'take')
    })

    it('go to all shards of a sharded queue, for which they need their number', async () => {
      const queue = makeSharded(4)
      await queue.addMany(Array.from({ length: 30 }, (_, payload) => ({ payload })))
      await refused(2, /is sharded: ".*" is one of its shards; give --shards/, 'pause', queue.name)
      await refused(2, /--shards: 3 are too few/, 'pause', queue.name, '--shards', '3')
      await refused(2, /--shards: expected a whole number from 1 to 256/, 'pause', queue.name, '--shards', '257')
      expect(await done('pause', queue.name, '--shards', '4')).to.include({ paused: true, shards: 4 })
      expect(await queue.pollMany({ count: 30 })).to.deep.equal([])
      await queue.shards[1]!.enableOperation('poll')
      expect((await inProcess(['stats', queue.name])).out).to.include(
        `${queue.name}: paused in 3 of 4 shards: no consumer`,
      )
      await done('resume', queue.name, '--shards', '4')
      expect(await queue.pollMany({ count: 30 })).not.to.have.lengthOf(0)
      const plain = makeQueue()
      await plain.add('a', { id: 'a' })
      await refused(2, /is a reliable queue without shards/, 'pause', plain.name, '--shards', '4')
      await refused(1, /delayed queues cannot be paused/, 'pause', uniqueName('none'))
    })
  })

  describe('the question before', () => {
    const terminal = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY })

    async function answered(answer: string | null): Promise<unknown> {
      const [input, output] = [terminal(true), terminal(true)]
      const asked = confirm('Move?', false, { input, output }).then(
        () => 'yes',
        (error: unknown) => error,
      )
      if (answer === null) input.end()
      else input.write(answer)
      const result = await asked
      expect(String(output.read())).to.include('Move? [y/N] ')
      return result
    }

    it('is agreed to by yes only; an end of the input is a no', async () => {
      expect(await answered('y\n')).to.equal('yes')
      expect(await answered('Yes\n')).to.equal('yes')
      for (const answer of ['n\n', '\n', 'yess\n', null])
        expect(await answered(answer), String(answer)).to.be.instanceOf(NegativeResult)
    })

    it('is not asked with --yes, and cannot be without a terminal', async () => {
      await confirm('Move?', true, { input: terminal(false), output: terminal(false) })
      for (const [input, output] of [
        [terminal(true), terminal(false)],
        [terminal(false), terminal(true)],
      ] as const) {
        const error: unknown = await confirm('Move?', false, { input, output }).catch((thrown: unknown) => thrown)
        expect(error).to.be.instanceOf(UsageError)
      }
    })
  })
})
