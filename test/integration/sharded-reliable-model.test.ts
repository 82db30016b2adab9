/** A sharded reliable queue whose number of shards changes at random, against a map: every id is found, once, with what was last said of it. */
import { expect } from 'chai'
import { codecs, type ShardedReliableQueue, type StoredRawMessage } from '../../src/index.js'
import { deadLettersOf, listKeys, reliableKeys } from '../../src/keys.js'
import { randomFrom } from '../support/random.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup } from './fixtures.js'

const LATER = 600_000
const STEPS = 500
const IDS = 60
const MOST_SHARDS = 24

describe('a sharded reliable queue whose number of shards changes', () => {
  afterEach(cleanUp)

  for (const seed of [1, 2, 3]) {
    it(`finds every message by its id, and each id once, seed ${seed}`, async () => {
      const random = randomFrom(seed)
      const upTo = (most: number) => Math.floor(random() * most)
      const client = makeClient()
      const name = uniqueName('resized')
      let most = 1
      const open = (): ShardedReliableQueue<string> => {
        const shards = 1 + upTo(MOST_SHARDS)
        most = Math.max(most, shards)
        return client.getShardedReliableQueue<string>(name, { shards, formerShards: most, codec: codecs.string() })
      }
      let queue = open()
      onCleanup(async () => {
        const keys = queue.names.flatMap((shard) =>
          [shard, deadLettersOf(shard)].flatMap((each) => listKeys(reliableKeys(each))),
        )
        await rawClient().unlink(...keys)
      })
      const model = new Map<string, string>()
      const dead = new Map<string, string>()
      const saved = new Map<string, StoredRawMessage>()
      const drawn: string[] = []
      const some = () => (drawn.length > 0 && random() < 0.3 ? drawn[upTo(drawn.length)]! : `id ${upTo(IDS)}`)
      const several = () => [...new Set([some(), some(), some(), some()])]
      /** Of dead letters that were moved back: they are visible, and would be polled. */
      const revive = async (ids: readonly string[]): Promise<void> => {
        for (const id of ids) {
          model.set(id, dead.get(id)!)
          dead.delete(id)
          expect(await queue.reschedule(id, LATER), id).to.equal(true)
        }
      }
      // one whose id was added again stays
      const redrivable = (ids: readonly string[]) => ids.filter((id) => dead.has(id) && !model.has(id))
      const stepsOfDeadLetters: (() => Promise<void>)[] = [
        async () => {
          const id = some()
          if (model.has(id) || dead.has(id)) return
          const payload = `payload ${upTo(1_000)}`
          expect((await queue.add(payload, { id })).outcome, id).to.equal('added')
          const message = await queue.poll()
          expect(message?.id).to.equal(id)
          expect(await message?.negativeAcknowledge({ reject: true }), id).to.equal(true)
          dead.set(id, payload)
        },
        async () => {
          const back = redrivable([...dead.keys()])
          expect(await queue.redrive(1_000), [...dead.keys()].join()).to.equal(back.length)
          await revive(back)
        },
        async () => {
          // the shards do not look for ids in one another
          const ids = several().filter((id) => !model.has(id))
          const back = redrivable(ids)
          const moved = await Promise.all(queue.shards.map((shard) => shard.deadLetters.move({ to: shard, ids })))
          expect(
            moved.reduce((sum, each) => sum + each, 0),
            ids.join(),
          ).to.equal(back.length)
          await revive(back)
        },
        async () => {
          const ids = several()
          const letters = await queue.deadLetters.getAll(ids)
          expect(letters.map((letter) => letter?.payload)).to.deep.equal(ids.map((id) => dead.get(id)))
          expect(await queue.deadLetters.containsMany(ids)).to.equal(ids.filter((id) => dead.has(id)).length)
        },
        async () => {
          const [first = '', ...others] = [...dead.keys()]
          if (others.length < 3) return
          const [raw] = await queue.deadLetters.getAllRaw([first])
          expect(await queue.deadLetters.remove(first), first).to.equal(1)
          const restore = () => queue.deadLetters.restoreMany([raw!], { deadLetters: true })
          expect([await restore(), await restore()], first).to.deep.equal([['restored'], ['present']])
        },
      ]
      const steps: (() => Promise<void>)[] = [
        ...stepsOfDeadLetters,
        async () => {
          const ids = several()
          const there = ids.filter((id) => model.delete(id))
          expect(await queue.remove(...ids), ids.join()).to.equal(there.length)
        },
        async () => {
          const ids = several()
          const raw = await queue.getAllRaw(ids)
          const payloads = raw.map((message) => message && Buffer.from(message.payload).toString())
          expect(payloads).to.deep.equal(ids.map((id) => model.get(id) ?? null))
          for (const message of raw) if (message !== null) saved.set(message.id, message)
        },
        async () => {
          const items = several().flatMap((id) => saved.get(id) ?? [])
          const outcomes = await queue.restoreMany(items)
          expect(outcomes).to.deep.equal(items.map(({ id }) => (model.has(id) ? 'present' : 'restored')))
          for (const { id, payload } of items) if (!model.has(id)) model.set(id, Buffer.from(payload).toString())
        },
        async () => {
          const id = some()
          const [now = null] = await queue.getAllRaw([id])
          const payload = Buffer.from(`payload ${upTo(1_000)}`)
          const item = saved.get(id)
          if (item === undefined) return
          const outcomes = await queue.restoreMany([{ ...item, payload, replaces: now?.dueAt ?? 1 }])
          expect(outcomes, id).to.deep.equal([now === null ? 'absent' : 'replaced'])
          if (now !== null) model.set(id, payload.toString())
        },
        async () => {
          queue = open()
        },
        async () => {
          const { id } = await queue.add('drawn', { delay: LATER })
          model.set(id, 'drawn')
          drawn.push(id)
        },
        async () => {
          const [id, payload] = [some(), `payload ${upTo(1_000)}`]
          const { outcome } = await queue.add(payload, { id, delay: LATER })
          expect(outcome, id).to.equal(model.has(id) ? 'kept' : 'added')
          if (outcome === 'added') model.set(id, payload)
        },
        async () => {
          const [id, payload] = [some(), `payload ${upTo(1_000)}`]
          const { outcome } = await queue.add(payload, { id, delay: LATER, existing: 'replace' })
          expect(outcome, id).to.equal(model.has(id) ? 'replaced' : 'added')
          model.set(id, payload)
        },
        async () => {
          const id = some()
          expect(await queue.cancel(id), id).to.equal(model.delete(id))
        },
        async () => {
          const id = some()
          expect(await queue.updatePayload(id, 'changed'), id).to.equal(model.has(id))
          if (model.has(id)) model.set(id, 'changed')
        },
        async () => {
          const id = some()
          expect(await queue.reschedule(id, LATER), id).to.equal(model.has(id))
        },
        async () => {
          const ids = [some(), some(), some()]
          const infos = await queue.getAll(ids)
          expect(infos.map((info) => info?.payload)).to.deep.equal(ids.map((id) => model.get(id)))
        },
      ]
      for (let step = 0; step < STEPS; step++) await steps[upTo(steps.length)]!()
      expect(await queue.size(), 'no id twice').to.equal(model.size)
      expect(await queue.containsMany([...model.keys()])).to.equal(model.size)
      const listed = new Map<string, string>()
      for await (const { id, payload } of queue.listAll()) listed.set(id, payload)
      expect(listed).to.deep.equal(model)
      const raw: [string, string][] = []
      for await (const page of queue.listAllRaw())
        raw.push(...page.map(({ id, payload }): [string, string] => [id, Buffer.from(payload).toString()]))
      expect(raw).to.have.length(model.size)
      expect(new Map(raw)).to.deep.equal(model)
      const letters = new Map<string, string>()
      for await (const { id, payload } of queue.deadLetters.listAll()) letters.set(id, payload)
      expect(letters).to.deep.equal(dead)
      expect(await queue.deadLetters.size(), 'no dead letter twice').to.equal(dead.size)
    })
  }
})
