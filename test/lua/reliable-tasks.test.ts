/** Paused tasks: what polls set aside, what every other script makes of it, and how it comes back; then all of it at random against a model. */
import { expect } from 'chai'
import fc from 'fast-check'
import { countGroups, pauseGroup, pauseTask, totals } from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import type { PollReply } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import { rounds } from '../support/long-form.js'
import { groupKeysOf, NOW, pollArgs, useReliable, type PollArgs, type ReliableFixture } from './reliable-support.js'
import { raw } from './support.js'

interface Item {
  readonly id: string
  readonly task?: string
  readonly group?: string
  readonly at?: number
  readonly priority?: number
  readonly ttl?: number
}

const SPAN = 2n ** 43n
/** The score of a message set aside for the task with this number that was visible at `at`. */
const asideAt = (number: number, at: number): number => Number(2n ** 53n + 2n * (BigInt(number) * SPAN + BigInt(at)))

describe('messages of paused tasks', () => {
  const rig = useReliable()

  const add = (queue: ReliableFixture, items: readonly Item[], nowMs = NOW, existing: 'keep' | 'replace' = 'keep') =>
    run(rig.sender, scripts.add, queue.keys, {
      // long ago, as a time before now is none
      ...{ channel: queue.channel, nowMs: 1, existing, sentAgoMs: -1, durable: false, batch: '', client: 'me' },
      items: items.flatMap(({ id, task, group = '', at = nowMs, priority = 0, ttl = '' }) => {
        const headers = task === undefined ? '' : JSON.stringify({ other: 'x', task })
        const place = group === '' ? priority : `g${group.length}`
        return [id, `${place},@${at},${ttl},,${Buffer.byteLength(headers)},,`, `${group}${headers}payload of ${id}`]
      }),
    })
  const pause = (queue: ReliableFixture, task: string, isOn = true) =>
    run(rig.sender, pauseTask, queue.keys, { channel: queue.channel, pause: isOn, task: Buffer.from(task) })
  const poll = (queue: ReliableFixture, args: Partial<PollArgs> = {}): Promise<PollReply> =>
    run(rig.sender, scripts.poll, queue.keys, pollArgs(queue, { budgetUs: 60_000_000, ...args }))
  const ids = ({ messages }: PollReply): string[] => messages.map(({ id }) => id)
  const counted = async (queue: ReliableFixture, nowMs = NOW) => {
    const { visible, delayed, firstVisibleAt } = await run(rig.sender, scripts.count, queue.keys, { nowMs })
    const sums = await run(rig.sender, totals, queue.keys, { nowMs, most: 500 })
    return { visible, delayed, firstVisibleAt, paused: sums.paused, limited: sums.limited, tasks: sums.pausedTasks }
  }
  const get = async (queue: ReliableFixture, names: readonly string[], nowMs = NOW) =>
    (await run(rig.sender, scripts.get, queue.keys, { nowMs, ids: names })).messages.map(
      (message) => message && { priority: message.priority, visibleAt: message.visibleAt, inFlight: message.inFlight },
    )

  it('are set aside in their schedules by the first poll that meets them, and examined by no later one', async () => {
    const queue = await rig.queue()
    await add(queue, [
      { id: 'a', task: 'report', at: NOW - 5 },
      { id: 'b', task: 'report', priority: 4 },
      { id: 'c', task: 'welcome' },
      { id: 'd' },
      { id: 'later', task: 'report', at: NOW + 10 },
    ])
    expect(await pause(queue, 'report')).to.equal(1)
    expect(await pause(queue, 'report')).to.equal(0)
    const reply = await poll(queue)
    expect(ids(reply)).to.deep.equal(['c', 'd'])
    const { queue: after } = await queue.read()
    expect(after.config).to.deep.equal({ tasks: '1' })
    expect(after.taskPauses).to.deep.equal([['report', '1']])
    const shown = (zset: unknown) => (zset as string[][]).map(([id, score]) => [id, Number(score)])
    expect(shown(after.due?.['0'])).to.deep.equal([
      ['later', NOW + 10],
      ['a', asideAt(1, NOW - 5)],
    ])
    expect(shown(after.due?.['4'])).to.deep.equal([['b', asideAt(1, NOW)]])
    const second = await poll(queue, { token: 'u' })
    expect(second).to.deep.include({ messages: [], changed: 0, next: NOW + 10 })
    expect(await counted(queue)).to.deep.equal({
      ...{ visible: 2, delayed: 1, firstVisibleAt: NOW - 5, paused: 2, limited: 0, tasks: 1 },
    })
    expect(await get(queue, ['a', 'b'])).to.deep.equal([
      { priority: 0, visibleAt: NOW - 5, inFlight: false },
      { priority: 4, visibleAt: NOW, inFlight: false },
    ])
  })

  it('come back as they were, after which nothing of the pause is left', async () => {
    const queue = await rig.queue()
    await add(queue, [
      { id: 'a', task: 'report', at: NOW - 5 },
      { id: 'b', task: 'report', priority: 4 },
      { id: 'g', task: 'report', group: 'tenant', at: NOW - 7 },
    ])
    await pause(queue, 'report')
    expect(ids(await poll(queue))).to.deep.equal([])
    await queue.published()
    expect(await pause(queue, 'report', false)).to.equal(1)
    expect(await pause(queue, 'report', false)).to.equal(0)
    expect(await queue.published()).to.deep.equal(['0'])
    expect(await counted(queue)).to.deep.include({ visible: 3, paused: 0, limited: 0, tasks: 0 })
    const got = [...ids(await poll(queue)), ...ids(await poll(queue))]
    expect(got.sort()).to.deep.equal(['a', 'b', 'g'])
    await poll(queue)
    const { queue: after } = await queue.read()
    expect(after).to.not.have.any.keys('taskPauses', 'due', 'groupOrder')
    expect(after.config).to.deep.equal({ grouped: '1' })
  })

  it('in a group leave its turn to messages of other tasks, and count as visible', async () => {
    const queue = await rig.queue()
    await add(queue, [
      ...Array.from({ length: 40 }, (_, n) => ({ id: `r${n}`, task: 'report', group: 'a', at: NOW - 50 + n })),
      { id: 'w', task: 'welcome', group: 'a' },
      { id: 'x', group: 'b' },
    ])
    await pause(queue, 'report')
    const got: string[] = []
    for (let polls = 0; polls < 5; polls++) got.push(...ids(await poll(queue)))
    expect(got.sort()).to.deep.equal(['w', 'x'])
    const names = [Buffer.from('a')]
    const [counts] = await run(rig.sender, countGroups, queue.keys, { nowMs: NOW, names })
    expect(counts).to.include({ visible: 40, delayed: 0, inFlight: 1 })
    expect(await poll(queue)).to.deep.include({ messages: [], changed: 0 })
    await pause(queue, 'report', false)
    const args = { channel: queue.channel, nowMs: NOW, pause: true, group: Buffer.from('a') }
    await run(rig.sender, pauseGroup, queue.keys, args)
    expect(ids(await poll(queue))).to.deep.equal([])
    await run(rig.sender, pauseGroup, queue.keys, { ...args, pause: false })
    expect(ids(await poll(queue, { count: 3 }))).to.deep.equal(['r0', 'r1', 'r2'])
  })

  it('are found by the scripts that remove, reschedule, replace, move, restore and withdraw', async () => {
    const queue = await rig.queue()
    const names = ['removed', 'later', 'replaced', 'moved', 'restored', 'kept']
    for (const group of [undefined, 'a']) {
      const of = (name: string): string => `${name}${group ?? ''}`
      const all = names.map((name) => ({ id: of(name), task: 'report', ...(group !== undefined && { group }) }))
      await add(queue, all)
      await pause(queue, 'report')
      expect(ids(await poll(queue))).to.deep.equal([])
      expect(await counted(queue)).to.deep.include({ visible: 6, delayed: 0 })
      const some = { nowMs: NOW, alsoHeld: false, client: 'me', ids: [of('removed')] }
      expect(await run(rig.sender, scripts.remove, queue.keys, some)).to.deep.equal([true])
      const later = { channel: queue.channel, nowMs: NOW, id: raw(of('later')), when: '5', priority: -1, client: 'me' }
      expect(await run(rig.sender, scripts.reschedule, queue.keys, later)).to.equal(NOW + 5)
      await add(queue, [{ id: of('replaced'), task: 'welcome', ...(group !== undefined && { group }) }], NOW, 'replace')
      const moving = { client: 'me', targetName: '"t"', priority: 0, isRedriven: false, nowMs: NOW, count: 1 }
      const keys = { ...queue.keys, due: queue.keys.due0, ...groupKeysOf(queue.keys, queue.dead) }
      const target = {
        ...{ targetMessages: queue.dead.messages, targetDue: queue.dead.due0 },
        ...{ targetConfig: queue.dead.config, targetChanges: queue.dead.changes },
      }
      const move = { ...moving, targetChannel: queue.deadChannel, ids: [raw(of('moved'))] }
      expect(await run(rig.sender, scripts.move, { ...keys, ...target }, move)).to.include({ moved: 1 })
      const back = `${group === undefined ? '0' : 'g1'},${NOW + 1},0,,,0,0,${NOW}`
      const items = [of('restored'), back, `${group ?? ''}new`]
      const restoring = { channel: queue.channel, client: 'me', known: false, items }
      expect(await run(rig.sender, scripts.restore, queue.keys, restoring)).to.deep.equal([2])
      const withdrawing = {
        ...{
          channel: queue.channel,
          nowMs: NOW,
          computedAt: NOW,
          name: raw('r'),
          at: '',
          client: 'me',
          priority: 0,
          items: [],
        },
        ...{ expected: raw(group === undefined ? '' : 'v'), value: raw('v'), withdrawn: raw(of('kept')) },
      }
      expect(await run(rig.sender, scripts.repeat, queue.keys, withdrawing)).to.equal(1)
      expect(ids(await poll(queue))).to.deep.equal([of('replaced')])
      expect(ids(await poll(queue, { nowMs: NOW + 6 }))).to.deep.equal([of('restored')])
      expect((await get(queue, names.map(of), NOW + 6)).map((message) => message?.visibleAt ?? null)).to.deep.equal(
        [null, NOW + 5, NOW + 506 - 6, null, NOW + 506, NOW], // two are with the consumer
      )
      await pause(queue, 'report', false)
      const came: string[] = []
      for (let polls = 0; polls < 3; polls++) came.push(...ids(await poll(queue, { nowMs: NOW + 6 })))
      expect(came.sort()).to.deep.equal([of('kept'), of('later')])
      await pause(queue, 'report')
      const given = await queue.read()
      expect(given.queue.groupOrder ?? []).to.deep.equal([])
    }
  })

  it('delay the only message of another task by bounded steps, each of them once', async () => {
    const queue = await rig.queue()
    const MANY = 5_000
    for (let from = 0; from < MANY; from += 1_000) {
      const page = Array.from({ length: 1_000 }, (_, n) => ({
        id: `r${from + n}`,
        task: 'report',
        at: NOW - MANY + from + n,
      }))
      await add(queue, page)
    }
    await add(queue, [{ id: 'w', task: 'welcome' }])
    await pause(queue, 'report')
    let [polls, changed] = [0, 0]
    for (let got: string[] = []; got.length === 0; polls++) {
      const reply = await poll(queue, { count: 1 })
      got = ids(reply)
      changed += reply.changed
      if (got.length === 0) expect(reply.next, 'the time of the next poll').to.be.at.most(NOW)
      expect(polls).to.be.below(MANY / 500)
    }
    expect(changed).to.equal(MANY + 1)
    expect(await poll(queue)).to.deep.include({ messages: [], changed: 0, next: NOW + 500 })
    await pause(queue, 'report', false)
    const came: string[] = []
    for (let left = MANY; came.length < MANY && left > 0; left--) came.push(...ids(await poll(queue, { count: 100 })))
    expect(came).to.deep.equal(Array.from({ length: MANY }, (_, n) => `r${n}`))
  }).timeout(60_000)

  it('come back before a younger one of their task, also where one poll does not bring back all', async () => {
    const queue = await rig.queue()
    const old = Array.from({ length: 700 }, (_, n) => ({ id: `r${n}`, task: 'report', at: NOW - 900 + n }))
    for (const group of [undefined, 'a']) {
      await add(
        queue,
        old.map((one) => ({ ...one, ...(group !== undefined && { group }) })),
      )
      await pause(queue, 'report')
      for (let polls = 0; polls < 30; polls++) expect(ids(await poll(queue))).to.deep.equal([])
      await add(queue, [{ id: 'young', task: 'report', at: NOW - 1, ...(group !== undefined && { group }) }])
      await pause(queue, 'report', false)
      const came: string[] = []
      for (let polls = 0; came.length <= old.length && polls < 100; polls++) {
        const reply = await poll(queue, { count: 1_000 })
        came.push(...ids(reply))
        if (came.length <= old.length) expect(reply.next, 'the time of the next poll').to.be.at.most(NOW)
        const handled = reply.messages.flatMap(({ member, delivery }) => [member, delivery])
        await run(rig.sender, scripts.acknowledge, queue.keys, {
          nowMs: NOW,
          client: 'me',
          withResults: false,
          handled,
        })
      }
      expect(came).to.deep.equal([...old.map(({ id }) => id), 'young'])
      await poll(queue)
    }
  })

  it('come back where another program has removed the pauses, or the setting that there are any', async () => {
    const queue = await rig.queue()
    for (const gone of ['taskPauses', 'config'] as const) {
      await add(queue, [{ id: gone, task: 'report' }])
      await pause(queue, 'report')
      expect(ids(await poll(queue))).to.deep.equal([])
      await rig.redis.unlink(queue.keys[gone])
      if (gone === 'taskPauses') {
        expect(ids(await poll(queue))).to.deep.equal([gone])
      } else {
        expect((await poll(queue)).next).to.equal(NOW)
        await pause(queue, 'report', false)
        expect(ids(await poll(queue))).to.deep.equal([gone])
      }
    }
  })

  it('come back if another program has removed their task from the pauses, besides those of tasks that stay paused', async () => {
    const queue = await rig.queue()
    const ofTask = (task: string) => [
      { id: `${task} p`, task },
      { id: `${task} g`, task, group: 'a', at: NOW - 3 },
      { id: `${task} 4`, task, priority: 4, at: NOW - 7 },
    ]
    const tasks = ['r0', 'r1', 'r2', 'r3', 'r4']
    for (const task of tasks) {
      await pause(queue, task)
      await add(queue, ofTask(task))
    }
    expect(ids(await poll(queue))).to.deep.equal([])
    await rig.redis.zrem(queue.keys.taskPauses, 'r0', 'r3')
    await rig.redis.zadd(queue.keys.taskPauses, 600, 'no number of a task', 2.5, 'nor is this')
    await rig.redis.zadd(queue.keys.due0, asideAt(0, NOW), 'no message', asideAt(511, NOW), 'nor is this')
    const came: string[] = []
    for (let polls = 0; came.length < 6 && polls < 20; polls++) came.push(...ids(await poll(queue)))
    const lost = ['r0', 'r3'].flatMap((task) => ofTask(task).map(({ id }) => id))
    expect(came.sort()).to.deep.equal(lost.sort())
    expect(await get(queue, ['r1 p', 'r1 g', 'r1 4'])).to.deep.equal([
      { priority: 0, visibleAt: NOW, inFlight: false },
      { priority: 0, visibleAt: NOW - 3, inFlight: false },
      { priority: 4, visibleAt: NOW - 7, inFlight: false },
    ])
    expect(await poll(queue)).to.deep.include({ messages: [], changed: 0 })
    for (const task of ['r1', 'r2', 'r4']) await pause(queue, task, false)
    for (let polls = 0; came.length < 15 && polls < 20; polls++) came.push(...ids(await poll(queue)))
    expect(came.sort()).to.deep.equal(tasks.flatMap((task) => ofTask(task).map(({ id }) => id)).sort())
  })

  it('come back besides names of another program that no task can have; a poll reads few of these', async () => {
    const queue = await rig.queue()
    await pause(queue, 'report')
    await add(queue, [{ id: 'r', task: 'report' }])
    expect(ids(await poll(queue))).to.deep.equal([])
    await pause(queue, 'report', false)
    const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    for (const letter of letters) await rig.redis.zadd(queue.keys.taskPauses, 1001, letter.repeat(100_000))
    const left = (): Promise<number> => rig.redis.zcard(queue.keys.taskPauses)
    const [came, counts]: [string[], number[]] = [[], []]
    for (let polls = 0; polls < 4; polls++) {
      came.push(...ids(await poll(queue)))
      counts.push(await left())
    }
    expect(came).to.deep.equal(['r'])
    expect(counts).to.deep.equal([5, 1, 0, 0])
  })

  describe('where another program gives two tasks one number', () => {
    const MANY = 1_200
    const crowd = (task: string) =>
      Array.from({ length: MANY }, (_, n) => ({ id: `${task} ${n}`, task, at: NOW - 2 * MANY + n }))
    /** Makes a paused task with the number 1; all its messages are set aside. */
    const withCrowd = async (): Promise<ReliableFixture> => {
      const queue = await rig.queue()
      await pause(queue, 'report')
      await add(queue, crowd('report'))
      await drained(queue)
      return queue
    }
    /** Polls until nothing more comes at once; what has come. */
    const drained = async (queue: ReliableFixture): Promise<string[]> => {
      const came: string[] = []
      for (let polls = 0, goesOn = true; goesOn; polls++) {
        expect(polls, 'polls').to.be.below(40)
        const reply = await poll(queue, { count: 1_000, visibilityMs: 1_000_000, token: `t${polls}` })
        came.push(...ids(reply))
        goesOn = reply.messages.length > 0 || (reply.next !== null && reply.next <= NOW)
      }
      return came
    }
    const numbers = async (queue: ReliableFixture): Promise<Record<string, string>> => {
      const { taskPauses = [] } = (await queue.read()).queue
      return Object.fromEntries(taskPauses as [string, string][])
    }

    it('one of them resumed, the messages of the paused one stay set aside', async () => {
      const queue = await withCrowd()
      await rig.redis.zadd(queue.keys.taskPauses, 1001, 'welcome', 1001.5, 'foreign')
      await add(queue, [{ id: 'w', task: 'welcome' }])
      expect(await drained(queue)).to.deep.equal(['w'])
      expect(await numbers(queue)).to.deep.equal({ report: '1' })
      expect(await poll(queue)).to.deep.include({ messages: [], changed: 0 })
      await pause(queue, 'report', false)
      expect(await drained(queue)).to.deep.equal(crowd('report').map(({ id }) => id))
    })

    it('both paused, they come back with their own task', async () => {
      const queue = await withCrowd()
      await rig.redis.zadd(queue.keys.taskPauses, 1, 'welcome')
      await add(queue, [{ id: 'w', task: 'welcome' }])
      expect(await drained(queue)).to.deep.equal([])
      expect(await numbers(queue)).to.deep.equal({ report: '1', welcome: '2' })
      await pause(queue, 'welcome', false)
      expect(await drained(queue)).to.deep.equal(['w'])
      expect(await numbers(queue)).to.deep.equal({ report: '1' })
    })

    it('one that is resumed comes back beside a paused one that has its number', async () => {
      const queue = await withCrowd()
      await rig.redis.zadd(queue.keys.taskPauses, 1, 'welcome')
      await pause(queue, 'report', false)
      await add(queue, [{ id: 'w', task: 'welcome' }])
      expect(await drained(queue)).to.deep.equal(crowd('report').map(({ id }) => id))
      expect(await numbers(queue)).to.deep.equal({ welcome: '2' })
    })

    it('after it took away that of the first, which comes back while the second stays paused', async () => {
      const queue = await withCrowd()
      await rig.redis.zrem(queue.keys.taskPauses, 'report')
      await pause(queue, 'welcome')
      await add(queue, [{ id: 'w', task: 'welcome' }])
      expect(await drained(queue)).to.have.members(crowd('report').map(({ id }) => id))
      expect(await numbers(queue)).to.deep.equal({ welcome: '2' })
    })
  })

  it('that cannot come back, as the keys of groups are of another type, keep no poll busy', async () => {
    const queue = await rig.queue({ config: [['grouped', '1']] })
    await add(queue, [{ id: 'later', at: NOW + 10 }])
    await rig.redis.zadd(queue.keys.due10, asideAt(3, NOW), 'of another program')
    await queue.block('groupWakes')
    const idle = { messages: [], changed: 0, next: NOW + 10 }
    for (const number of [undefined, 1003]) {
      if (number !== undefined) await rig.redis.zadd(queue.keys.taskPauses, number, 'stuck')
      await rig.redis.hset(queue.keys.config, 'tasks', '1')
      await poll(queue)
      expect(await poll(queue)).to.deep.include(idle)
      await pause(queue, 'report')
      await poll(queue)
      expect(await poll(queue)).to.deep.include(idle)
    }
    await rig.redis.unlink(queue.keys.groupWakes)
    for (let polls = 0; polls < 3; polls++) await poll(queue)
    expect(await rig.redis.exists(queue.keys.due10)).to.equal(0)
  })

  it('make each poll end some of the returning tasks if none of their messages is left, and count as work', async () => {
    const queue = await rig.queue()
    await pause(queue, 'report')
    for (let n = 0; n < 50; n++) await rig.redis.zadd(queue.keys.taskPauses, 1005, `t${n}`)
    const left = (): Promise<number> => rig.redis.zcard(queue.keys.taskPauses)
    for (let polls = 0; (await left()) > 1; polls++) {
      expect((await poll(queue)).changed).to.be.above(0)
      expect(polls).to.be.below(5)
    }
    expect(await poll(queue)).to.deep.include({ messages: [], changed: 0, next: null })
  })

  it('come back if the settings were lost, also with a group, and besides messages that are due later', async () => {
    for (const group of [undefined, 'a']) {
      const queue = await rig.queue()
      const of = group === undefined ? {} : { group }
      await add(queue, [
        { id: 'r', task: 'report', ...of },
        { id: 'later', ...of, at: NOW + 10 },
      ])
      await pause(queue, 'report')
      expect(ids(await poll(queue))).to.deep.equal([])
      await rig.redis.unlink(queue.keys.config)
      await add(queue, [{ id: 'one more', ...of }]) // from which the queue knows again that it has groups
      expect(ids(await poll(queue))).to.deep.equal(['one more'])
      await poll(queue)
      await pause(queue, 'report', false)
      const came: string[] = []
      for (let polls = 0; polls < 3; polls++) came.push(...ids(await poll(queue)))
      expect(came, group).to.deep.equal(['r'])
      await poll(queue)
      expect((await queue.read()).queue).to.not.have.any.keys('taskPauses')
    }
  })

  it('of groups come back a few megabytes at a time', async () => {
    const queue = await rig.queue()
    const [MANY, LARGE] = [20, 400_000]
    for (let n = 0; n < MANY; n++) await add(queue, [{ id: `r${n}`, task: 'report', group: 'a', at: NOW - MANY + n }])
    for (let n = 0; n < MANY; n++) {
      const record = await rig.redis.hgetBuffer(queue.keys.messages, `r${n}`)
      await rig.redis.hset(queue.keys.messages, `r${n}`, Buffer.concat([record ?? Buffer.of(0), Buffer.alloc(LARGE)]))
    }
    await pause(queue, 'report')
    for (let polls = 0; polls < MANY; polls++) await poll(queue)
    const setAside = (): Promise<number> => rig.redis.zcount(queue.keys.due10, 2 ** 53, '+inf')
    expect(await setAside()).to.equal(MANY)
    await pause(queue, 'report', false)
    const came: string[] = []
    for (let left = MANY, polls = 0; left > 0; polls++) {
      const reply = await poll(queue, { count: 1_000 })
      came.push(...ids(reply))
      const now = await setAside()
      expect(left - now, 'brought back by one poll').to.be.within(1, 5)
      left = now
      expect(polls).to.be.below(MANY)
    }
    for (let polls = 0; came.length < MANY && polls < MANY; polls++) came.push(...ids(await poll(queue)))
    expect(came).to.deep.equal(Array.from({ length: MANY }, (_, n) => `r${n}`))
  })

  it('come back even if those of another task cannot, because a key of its groups has another type', async () => {
    const queue = await rig.queue()
    await add(queue, [
      { id: 'g', task: 'stuck', group: 'a' },
      { id: 'p', task: 'report' },
    ])
    await pause(queue, 'stuck')
    await pause(queue, 'report')
    expect(ids(await poll(queue))).to.deep.equal([])
    await rig.redis.unlink(queue.keys.groupWakes)
    await queue.block('groupWakes')
    await pause(queue, 'stuck', false)
    await pause(queue, 'report', false)
    expect(ids(await poll(queue))).to.deep.equal(['p'])
  })

  it('hold back no message if the key of the pauses has another type', async () => {
    const queue = await rig.queue({ config: [['tasks', '1']] })
    await queue.block('taskPauses')
    await add(queue, [{ id: 'a', task: 'report' }])
    const reply = await poll(queue)
    expect(ids(reply)).to.deep.equal(['a'])
    expect(reply.problem).to.match(/^the paused tasks: WRONGTYPE/)
  })

  it('are of 511 tasks at most', async () => {
    const queue = await rig.queue()
    for (let n = 0; n < 511; n++) expect(await pause(queue, `t${n}`)).to.equal(1)
    expect(await pause(queue, 'one more')).to.equal(-1)
    await pause(queue, 't5', false)
    await poll(queue)
    expect(await pause(queue, 'one more')).to.equal(1)
  })

  it('behave as their model', async () => {
    const TASKS = [undefined, 'r', 'w'] as const
    const item = fc.record({
      task: fc.constantFrom(...TASKS, 'r'),
      place: fc.constantFrom(0, 0, 3, 'a', 'b'),
      delay: fc.constantFrom(-20, -3, 0, 0, 9),
    })
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.record({ is: fc.constant('add' as const), items: fc.array(item, { maxLength: 5 }) }) },
      { weight: 5, arbitrary: fc.record({ is: fc.constant('poll' as const), count: fc.integer({ min: 1, max: 4 }) }) },
      {
        weight: 3,
        arbitrary: fc.record({
          is: fc.constant('pause' as const),
          task: fc.constantFrom('r', 'w'),
          isOn: fc.boolean(),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ is: fc.constantFrom('remove' as const, 'later' as const, 'now' as const), n: fc.nat() }),
      },
      { weight: 2, arbitrary: fc.record({ is: fc.constant('drain' as const) }) },
      { weight: 2, arbitrary: fc.record({ is: fc.constant('pass' as const), ms: fc.constantFrom(1, 10) }) },
    )
    interface Known {
      readonly task: string | undefined
      readonly place: number | string
      at: number
    }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async (steps) => {
        const queue = await rig.queue()
        const known = new Map<string, Known>()
        const paused = new Set<string>()
        let [now, drawn] = [NOW, 0]
        const isPaused = ({ task }: Known): boolean => task !== undefined && paused.has(task)
        const take = async (count: number): Promise<PollReply> => {
          const reply = await poll(queue, { nowMs: now, count, visibilityMs: 1_000_000, token: `t${drawn++}` })
          expect(reply.problem).to.equal('')
          for (const { id, visibleAt, priority, member, delivery } of reply.messages) {
            const one = known.get(id)
            if (one === undefined) throw new Error(`${id} came, and is not there`)
            expect(isPaused(one), `${id} is of a paused task`).to.equal(false)
            expect(visibleAt).to.equal(one.at)
            expect(priority).to.equal(typeof one.place === 'number' ? one.place : 0)
            for (const [other, each] of known) {
              if (other !== id && each.task === one.task && each.place === one.place)
                expect(each.at, `${other} is before ${id}`).to.be.at.least(one.at)
            }
            known.delete(id)
            const handled = [member, delivery]
            const args = { nowMs: now, client: 'me', withResults: false, handled }
            expect(await run(rig.sender, scripts.acknowledge, queue.keys, args)).to.deep.equal([true])
          }
          return reply
        }
        for (const each of steps) {
          if (each.is === 'add') {
            const items = each.items.map(({ task, place, delay }) => ({
              id: `m${drawn++}`,
              task,
              place,
              at: now + delay,
            }))
            for (const { id, ...one } of items) known.set(id, one)
            const added = items.map(({ id, task, place, at }) => ({
              ...{ id, at },
              ...(task !== undefined && { task }),
              ...(typeof place === 'number' ? { priority: place } : { group: place }),
            }))
            await add(queue, added, now)
          } else if (each.is === 'poll') await take(each.count)
          else if (each.is === 'pause') {
            expect(await pause(queue, each.task, each.isOn)).to.equal(paused.has(each.task) === each.isOn ? 0 : 1)
            if (each.isOn) paused.add(each.task)
            else paused.delete(each.task)
          } else if (each.is === 'pass') now += each.ms
          else if (each.is === 'drain') {
            let reply = await take(100)
            for (let n = 0; reply.next !== null && reply.next <= now; n++) {
              expect(n, 'polls').to.be.below(50)
              reply = await take(100)
            }
            for (const [id, one] of known) expect(isPaused(one) || one.at > now, `${id} was left`).to.equal(true)
            const delayed = Math.min(...[...known.values()].filter(({ at }) => at > now).map(({ at }) => at))
            if (delayed !== Infinity) expect(reply.next).to.be.at.most(delayed)
          } else {
            const [id, one] = [...known][each.n % Math.max(1, known.size)] ?? []
            if (id === undefined || one === undefined) continue
            if (each.is === 'remove') {
              const args = { nowMs: now, alsoHeld: false, client: 'me', ids: [id] }
              expect(await run(rig.sender, scripts.remove, queue.keys, args)).to.deep.equal([true])
              known.delete(id)
            } else {
              one.at = now + (each.is === 'later' ? 9 : 0)
              const args = {
                channel: queue.channel,
                nowMs: now,
                id: raw(id),
                when: `@${one.at}`,
                priority: -1,
                client: 'me',
              }
              expect(await run(rig.sender, scripts.reschedule, queue.keys, args)).to.equal(one.at)
            }
          }
          const visible = [...known.values()].filter(({ at }) => at <= now)
          const { visible: counts, delayed, firstVisibleAt, paused: held, limited, tasks } = await counted(queue, now)
          expect({ counts, delayed, tasks, limited }).to.deep.equal({
            ...{ counts: visible.length, delayed: known.size - visible.length, tasks: paused.size, limited: 0 },
          })
          expect(held).to.be.at.most(visible.filter(isPaused).length)
          const times = [...known.values()].map(({ at }) => at)
          expect(firstVisibleAt).to.equal(times.length === 0 ? null : Math.min(...times))
          const stored = await get(queue, [...known.keys()], now)
          expect(stored.map((message) => message?.visibleAt)).to.deep.equal(times)
        }
      }),
      { numRuns: rounds(120) },
    )
  }).timeout(240_000)
})
