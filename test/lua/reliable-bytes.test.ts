/** Scripts that copy or free whole messages end by bytes, and what calls them goes on behind these. */
import { expect } from 'chai'
import { deadLettersOf, reliableKeys } from '../../src/keys.js'
import { resolveSettings } from '../../src/options.js'
import { poll } from '../../src/store/reliable-scripts.js'
import { ReliableStore } from '../../src/store/reliable-store.js'
import { run } from '../../src/store/run.js'
import type { Sender } from '../../src/store/sender.js'
import {
  asDead,
  having,
  memberOf,
  pollArgs,
  useReliable,
  type Message,
  type ReliableFixture,
} from './reliable-support.js'

const LARGE = 'x'.repeat(3 * 2 ** 20)
/** A size of which five messages need three scripts, as a script handles 8 MiB. */
const IDS = ['a', 'b', 'c', 'd', 'e']
const FUTURE = 8_000_000_000_000

describe('scripts that handle whole messages', function () {
  this.timeout(60_000)
  const rig = useReliable()
  const large = (more: Partial<Message> = {}): Message[] => IDS.map((id) => ({ id, at: 1, payload: LARGE, ...more }))

  /** A store that counts the scripts it sends. */
  function counted({ name }: ReliableFixture, of: 'queue' | 'dead' = 'queue') {
    const sent = { scripts: 0 }
    const sender: Sender = {
      call: (command, args, options) => {
        if (command === 'EVALSHA') sent.scripts++
        return rig.sender.call(command, args, options)
      },
      pipeline: (commands) => rig.sender.pipeline(commands),
    }
    const [own, dead] = [reliableKeys(name), reliableKeys(deadLettersOf(name))]
    const keys = of === 'queue' ? { keys: own, dead } : { keys: dead, dead: own }
    return { sent, target: keys.dead, store: new ReliableStore(sender, resolveSettings({}), keys, 'me') }
  }

  for (const ids of [undefined, IDS.map((id) => Buffer.from(id))]) {
    it(`move 8 MiB at a time, ${ids === undefined ? 'the first ones' : 'by ids'}`, async () => {
      const queue = await rig.queue(having([], { dead: asDead(large()) }))
      const { store, target, sent } = counted(queue, 'dead')
      expect(await store.moves.moveTo(target, { ids, count: 100, priority: 0, isRedriven: true })).to.equal(5)
      expect(sent.scripts).to.equal(3)
      expect(await rig.redis.hlen(queue.keys.messages)).to.equal(5)
      expect(await rig.redis.hlen(queue.dead.messages)).to.equal(0)
    })
  }

  it('move 1 MiB at a time, and at least one, where the other queue keeps the payloads of its changes', async () => {
    const queue = await rig.queue(having([], { config: [['changes', 'r,1000,,1,epoch']], dead: asDead(large()) }))
    const { store, target, sent } = counted(queue, 'dead')
    expect(await store.moves.moveTo(target, { count: 100, priority: 0, isRedriven: true })).to.equal(5)
    expect(sent.scripts).to.equal(5)
    expect(await queue.changes()).to.have.length(5)
  })

  it('move no more than the count, and skip messages that stay without reading their bytes', async () => {
    const there = IDS.slice(0, 3).map((id) => ({ id, at: 1 }))
    const queue = await rig.queue(having(there, { dead: asDead(large()) }))
    const { store, target, sent } = counted(queue, 'dead')
    expect(await store.moves.moveTo(target, { count: 1, priority: 0, isRedriven: true })).to.equal(1)
    expect(await store.moves.moveTo(target, { count: 100, priority: 0, isRedriven: true })).to.equal(1)
    expect(sent.scripts).to.equal(2)
    expect(await rig.redis.hkeys(queue.dead.messages)).to.have.members(['a', 'b', 'c'])
  })

  for (const [how, result] of [
    ['rejected', 2],
    ['failed', 1],
  ] as const) {
    it(`give back 8 MiB at a time, ${how}, with an answer for each message`, async () => {
      const queue = await rig.queue(having(large({ until: FUTURE, attempts: 1 })))
      const { store, sent } = counted(queue)
      const claims = [...IDS, 'none'].map((id) => ({ id, member: memberOf(id), delivery: '1 t' }))
      const results = await store.giveBack(claims, { how, delayMs: 0, reason: '"why"' })
      expect(results).to.deep.equal([...IDS.map(() => result), 0])
      expect(sent.scripts).to.equal(3)
      expect(await rig.redis.zcard(queue.keys.inFlight)).to.equal(0)
      expect(await rig.redis.hlen(queue.dead.messages)).to.equal(how === 'rejected' ? 5 : 0)
    })
  }

  it('acknowledge 8 MiB of messages with a group at a time, which are read for its name, with an answer for each', async () => {
    const inGroup = Buffer.concat([Buffer.from('\x06,,0,1g'), Buffer.from(LARGE)])
    const queue = await rig.queue({
      messages: IDS.map((id) => [id, inGroup] as const),
      deliveries: IDS.map((id) => [id, '1 t'] as const),
      inFlight: IDS.map((id) => [`g${id}`, FUTURE] as const),
      config: [['keepCompleted', '100']],
    })
    const { store, sent } = counted(queue)
    const claims = ['none', ...IDS].map((id) => ({ id, member: `g${id}`, delivery: '1 t' }))
    const results = claims.map(({ id }) => Buffer.from(`of ${id}`))
    expect(await store.acknowledge(claims, results)).to.deep.equal([false, ...IDS.map(() => true)])
    expect(sent.scripts).to.equal(3)
    expect(await rig.redis.exists(queue.keys.messages, queue.keys.inFlight)).to.equal(0)
    const kept = await rig.redis.hgetall(queue.keys.completed)
    expect(IDS.map((id) => kept[id]?.split('\n')[1])).to.deep.equal(IDS.map((id) => `of ${id}`))
  })

  it('bring back about 1 MiB of messages with a group, however long they may work', async () => {
    const inGroup = Buffer.concat([Buffer.from('\x06,,0,1g'), Buffer.from(LARGE)])
    const queue = await rig.queue({
      messages: IDS.map((id) => [id, inGroup] as const),
      deliveries: IDS.map((id) => [id, '1 t'] as const),
      inFlight: IDS.map((id) => [`g${id}`, 1] as const),
      config: [['pollPaused', '1']],
    })
    const { returned } = await run(rig.sender, poll, queue.keys, pollArgs(queue))
    expect(returned).to.equal(1)
  })

  it('move dead letters behind large ids, which only other programs write, and read these in steps', async () => {
    const strange = Array.from({ length: 30 }, (_, n) => [`${n}${'x'.repeat(300_000)}`, 1] as const)
    const queue = await rig.queue(
      having([], { dead: { ...asDead([{ id: 'good', at: 2 }]), due: { 0: [...strange, ['good', 2]] } } }),
    )
    const { store, target, sent } = counted(queue, 'dead')
    expect(await store.moves.moveTo(target, { count: 100, priority: 0, isRedriven: true })).to.equal(1)
    expect(sent.scripts).to.be.within(5, 12)
    expect(await rig.redis.hkeys(queue.keys.messages)).to.deep.equal(['good'])
  })

  it('forget a few large names at a time: of completed messages, of dead letters', async () => {
    const names = Array.from({ length: 40 }, (_, n) => [`${n}${'x'.repeat(100_000)}`, 1] as const)
    const queue = await rig.queue({
      ...having([{ id: 'x', until: FUTURE }]),
      completedAt: names,
      config: [
        ['keepCompleted', '1'],
        ['keepDeadLettersFor', '1000'],
      ],
      dead: { due: { 0: names } },
    })
    const { store } = counted(queue)
    expect(await store.acknowledge([{ id: 'x', member: '0x', delivery: '1 t' }])).to.deep.equal([true])
    expect(await rig.redis.zcard(queue.keys.completedAt)).to.equal(37)
    await run(rig.sender, poll, queue.keys, pollArgs(queue))
    expect(await rig.redis.zcard(queue.dead.due0)).to.equal(36)
  })

  it('remove 8 MiB at a time, and say of each id whether it was there', async () => {
    const queue = await rig.queue(having(large()))
    const { store, sent } = counted(queue)
    const removed: string[] = []
    for await (const page of store.remove(['none', ...IDS, 'nor this'], { alsoHeld: false })) removed.push(...page)
    expect(removed).to.deep.equal(IDS)
    expect(sent.scripts).to.equal(3)
    expect(await rig.redis.exists(queue.keys.messages, queue.keys.due0)).to.equal(0)
  })
})
