import { expect } from 'chai'
import { placesOf } from '../../src/sharding/id-places.js'
import { MAX_SHARDS } from '../../src/sharding/shard-names.js'
import { shardOfKey, shardsOfKey } from '../../src/sharding/shard-of-key.js'
import { randomFrom } from '../support/random.js'

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

describe('places of ids', () => {
  it('the first is the shard of the id with the number of shards of now', () => {
    for (const id of upTo(500).map(String)) {
      expect(placesOf(id, { shards: 12, covered: 12 })[0]).to.equal(shardOfKey(id, 12))
      expect(placesOf(id, { shards: 5, covered: 12 })[0]).to.equal(shardOfKey(id, 5))
    }
  })

  it('whatever number of shards an id was added with, its shard is among them', () => {
    const random = randomFrom(7)
    for (const id of upTo(2_000).map((n) => `order ${n}`)) {
      const covered = 1 + Math.floor(random() * MAX_SHARDS)
      const shards = 1 + Math.floor(random() * covered)
      const before = 1 + Math.floor(random() * covered)
      const places = placesOf(id, { shards, covered })
      expect(places, `${id}, ${before} shards and then ${shards} of ${covered}`).to.include(shardOfKey(id, before))
      expect(new Set(places).size, 'each once').to.equal(places.length)
      expect(Math.max(...places)).to.be.lessThan(covered)
    }
  })

  it('all shards of a key as their number grows', () => {
    for (const key of upTo(300).map(String)) {
      const all = new Set(upTo(64).map((n) => shardOfKey(key, n + 1)))
      expect(shardsOfKey(key, 64)).to.deep.equal([...all])
    }
  })

  it('are few: the harmonic number of their count on average', () => {
    for (const [covered, mean] of [
      [1, 1],
      [12, 3.1],
      [256, 6.1],
    ] as const) {
      const counts = upTo(2_000).map((n) => placesOf(`id ${n}`, { shards: covered, covered }).length)
      expect(counts.reduce((sum, count) => sum + count, 0) / counts.length).to.be.within(mean - 0.2, mean + 0.2)
    }
  })

  it('the messages of ticks and dead letters whose id was taken are where what they were made of is', () => {
    for (const n of upTo(300)) {
      const [name, counts] = [`daily ${n}`, { shards: 12, covered: 12 }]
      const home = shardOfKey(name, 12)
      for (const id of [
        `${name}@1764000000000`,
        `${name}~1764000000000.1`,
        `${name}@5~1764000000000.2~1764000000009.1`,
      ]) {
        expect(placesOf(id, counts), id).to.include(home)
      }
    }
  })

  it('an id made of hundreds of others costs no more than one made of four', () => {
    const id = `a${'@1'.repeat(250)}`
    expect(placesOf(id, { shards: 256, covered: 256 }).length).to.be.lessThan(60)
  })
})
