/** What scripts still do after they have read too many bytes of other programs' large names. */
import { expect } from 'chai'
import * as groupScripts from '../../src/store/reliable-group-scripts.js'
import * as scripts from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import { NOW, pollArgs, useReliable } from './reliable-support.js'

const SPAN = 2n ** 43n
/** The score of a message set aside for the task with this number that was visible at `at`. */
const asideAt = (number: number, at: number): number => Number(2n ** 53n + 2n * (BigInt(number) * SPAN + BigInt(at)))
/** A name with more bytes than one script reads of such names. */
const LARGE = 'x'.repeat(300_000)

/** The record of a message of this task. */
function recordOf(task: string): Buffer {
  const headers = JSON.stringify({ task })
  const meta = `,,${headers.length}`
  return Buffer.concat([Buffer.of(meta.length), Buffer.from(`${meta}${headers}payload`)])
}

describe('after large names of other programs', () => {
  const rig = useReliable()

  it('a message of a resumed task waits for older ones that have not come back yet', async () => {
    const old = Array.from({ length: 700 }, (_, n) => `old${n}`)
    const queue = await rig.queue({
      messages: [...old, 'young'].map((id) => [id, recordOf('report')]),
      due: { 0: [[LARGE, asideAt(1, 0)], ...old.map((id, n) => [id, asideAt(1, n)] as const), ['young', NOW - 1]] },
      taskPauses: [['report', 1_001]],
      config: [['tasks', '1']],
    })
    const came: string[] = []
    for (let polls = 0; polls < 20; polls++) {
      const reply = await run(rig.sender, scripts.poll, queue.keys, pollArgs(queue, { count: 1_000 }))
      came.push(...reply.messages.map(({ id }) => id))
    }
    expect(came.indexOf('young')).to.equal(700)
    expect(new Set(came).size).to.equal(701)
  })

  it('a count has the time and the task of messages that are set aside', async () => {
    const queue = await rig.queue({
      messages: [['m', recordOf('report')]],
      due: {
        0: [['m', asideAt(7, NOW - 12_345)]],
        3: [['o', asideAt(9, NOW - 3)]],
        4: [['n', asideAt(511, NOW - 12_346)]],
      },
      taskPauses: [
        [LARGE, 1],
        [`${LARGE}x`, 2],
        ['report', 7],
        ['other', 511],
      ],
      config: [['tasks', '1']],
    })
    const reply = await run(rig.sender, scripts.count, queue.keys, { nowMs: NOW })
    expect(reply).to.deep.include({ visible: 3, delayed: 0, firstVisibleAt: NOW - 12_346 })
    expect(reply.asides).to.include.members([7, 9, 511])
  })

  it('a poll that asks for another one because it has removed some counts that as work', async () => {
    const queue = await rig.queue({
      messages: [['m', Buffer.from('\0payload')]],
      due: {
        0: [
          ...Array.from({ length: 5 }, (_, n) => [`${n}${'x'.repeat(1_100_000)}`, NOW + 10 + n] as const),
          ['m', NOW + 500],
        ],
      },
    })
    const replies = []
    for (let polls = 0; polls < 6; polls++) {
      const { next, changed } = await run(rig.sender, scripts.poll, queue.keys, pollArgs(queue))
      replies.push({ isDue: next !== null && next <= NOW, isWork: changed > 0, next })
    }
    for (const { isDue, isWork } of replies) if (isDue) expect(isWork).to.equal(true)
    expect(replies.at(-1)).to.deep.equal({ isDue: false, isWork: false, next: NOW + 500 })
  })
})

describe('the longest id of a dead letter', () => {
  const rig = useReliable()

  it('loses its completed record when its message has expired, and waiting calls learn that', async () => {
    const id = 'i'.repeat(576)
    const meta = `${NOW - 1},,0`
    const queue = await rig.queue({
      messages: [[id, Buffer.concat([Buffer.of(meta.length), Buffer.from(`${meta}payload`)])]],
      due: { 0: [[id, NOW - 10]] },
      completed: [[id, `${NOW - 50},1,0\n`]],
      completedAt: [[id, NOW - 50]],
      config: [['keepCompleted', '10']],
    })
    const subscriber = rig.redis.duplicate()
    try {
      const heard: string[] = []
      subscriber.on('message', (_: string, text: string) => heard.push(text))
      await subscriber.subscribe(queue.keys.messages.replace(':messages:', ':ends:'))
      const reply = await run(rig.sender, scripts.poll, queue.keys, pollArgs(queue))
      expect(reply.expired).to.equal(1)
      expect(await rig.redis.zcard(queue.keys.completedAt)).to.equal(0)
      await subscriber.ping()
      expect(heard).to.deep.equal([id])
    } finally {
      await subscriber.quit()
    }
  })

  it('the states of paused groups that are too long are removed by a poll, and stay when groups are only counted', async () => {
    const groups = Array.from({ length: 20 }, (_, n) => `g${n}`)
    const place = (group: string): string => `${String.fromCharCode(group.length)}${group}0000000000000005m${group}`
    const queue = await rig.queue({
      messages: groups.map((group) => [`m${group}`, `\u0005,,0,${group.length}${group}payload`]),
      due: { 10: groups.map((group) => [`m${group}`, 5]) },
      groupOrder: groups.map((group) => [place(group), 0]),
      groupTurns: groups.map((group, n) => [group, n + 1]),
      groups: groups.map((group) => [group, LARGE]),
      groupPauses: groups.map((group) => [group, 0]),
      config: [
        ['grouped', '1'],
        ['groupConcurrency', '2'],
      ],
    })
    const longest = async (): Promise<number> =>
      Math.max(...(await rig.redis.hvals(queue.keys.groups)).map((text) => text.length))
    await run(rig.sender, groupScripts.totals, queue.keys, { nowMs: NOW, most: 100 })
    expect(await longest()).to.equal(LARGE.length)
    await run(rig.sender, scripts.poll, queue.keys, pollArgs(queue, { count: 100 }))
    expect(await rig.redis.hlen(queue.keys.groups)).to.equal(0)
  })
})
