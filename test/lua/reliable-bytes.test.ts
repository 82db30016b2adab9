/** Scripts that copy or free whole messages end by bytes, and what calls them goes on behind these. */
import { expect } from 'chai'
import { deadLettersOf, reliableKeys } from '../../src/keys.js'
import { resolveSettings } from '../../src/options.js'
import { ReliableStore } from '../../src/store/reliable-store.js'
import type { Sender } from '../../src/store/sender.js'
import { asDead, having, memberOf, useReliable, type Message, type ReliableFixture } from './reliable-support.js'

const LARGE = 'x'.repeat(3 * 2 ** 20)
/** Of the 8 MiB that a script handles, five such messages need three scripts. */
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
      expect(await store.moveTo(target, { ids, count: 100, priority: 0, isRedriven: true })).to.equal(5)
      expect(sent.scripts).to.equal(3)
      expect(await rig.redis.hlen(queue.keys.messages)).to.equal(5)
      expect(await rig.redis.hlen(queue.dead.messages)).to.equal(0)
    })
  }

  it('move 1 MiB at a time, and at least one, where the other queue keeps the payloads of its changes', async () => {
    const queue = await rig.queue(having([], { config: [['changes', 'r,1000,,1,epoch']], dead: asDead(large()) }))
    const { store, target, sent } = counted(queue, 'dead')
    expect(await store.moveTo(target, { count: 100, priority: 0, isRedriven: true })).to.equal(5)
    expect(sent.scripts).to.equal(5)
    expect(await queue.changes()).to.have.length(5)
  })

  it('move no more than the count, and pass over what stays where it is without its bytes', async () => {
    const there = IDS.slice(0, 3).map((id) => ({ id, at: 1 }))
    const queue = await rig.queue(having(there, { dead: asDead(large()) }))
    const { store, target, sent } = counted(queue, 'dead')
    expect(await store.moveTo(target, { count: 1, priority: 0, isRedriven: true })).to.equal(1)
    expect(await store.moveTo(target, { count: 100, priority: 0, isRedriven: true })).to.equal(1)
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
