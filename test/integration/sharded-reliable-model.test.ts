/** A sharded reliable queue whose number of shards changes at random, against a map: every id is found, once, with what was last said of it. */
import { expect } from 'chai'
import { codecs, type ShardedReliableQueue } from '../../src/index.js'
import { deadLettersOf, listKeys, reliableKeys } from '../../src/keys.js'
import { randomFrom } from '../support/random.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup } from './fixtures.js'

const LATER = 600_000
const STEPS = 400
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
      const drawn: string[] = []
      const some = () => (drawn.length > 0 && random() < 0.3 ? drawn[upTo(drawn.length)]! : `id ${upTo(IDS)}`)
      const steps: (() => Promise<void>)[] = [
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
    })
  }
})
