import { expect } from 'chai'
import { keySlot, SLOTS } from '../../src/connection/key-slot.js'
import { InvalidArgumentError } from '../../src/errors.js'
import { shardName } from '../../src/queues/sharded/shard-names.js'
import { jumpHash, shardOfKey } from '../../src/queues/sharded/shard-of-key.js'

const asIs = (name: string) => name
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)

describe('slots of keys', () => {
  // from `redis-cli cluster keyslot`
  const known: [key: string, slot: number][] = [
    ['123456789', 12739],
    ['', 0],
    ['foo', 12182],
    ['{foo}.following', 12182],
    ['redisson_delay_queue:{foo}', 12182],
    ['foo{}{bar}', 8363],
    ['foo{{bar}}zap', 4015],
    ['foo{bar}{zap}', 5061],
    ['bar', 5061],
    ['größe:ключ', 14720],
  ]
  for (const [key, slot] of known) it(`${JSON.stringify(key)}: ${slot}`, () => expect(keySlot(key)).to.equal(slot))
})

describe('names of shards', () => {
  const names = upTo(256).map((shard) => shardName('orders', shard, asIs))

  // messages stand under these names, so a later version must find the same
  it('of earlier versions stay valid', () => {
    expect(names.slice(0, 4)).to.deep.equal(['orders:0:279', 'orders:1:403', 'orders:2:131', 'orders:3:157'])
    expect(shardName('a', 255, asIs)).to.equal('a:255:32')
  })

  it('each lies in the window of its shard, the windows being halves of halves', () => {
    const windows = names.map((name) => Math.floor(keySlot(name) / 64))
    expect(windows.slice(0, 9)).to.deep.equal([0, 128, 64, 192, 32, 160, 96, 224, 16])
    expect([...windows].sort((a, b) => a - b)).to.deep.equal(upTo(256))
  })

  it('the smallest k that hits the window is taken', () => {
    for (const [shard, name] of names.entries()) {
      const [, , k] = name.split(':').map(Number)
      const smaller = upTo(k!).map((other) => Math.floor(keySlot(`orders:${shard}:${other}`) / 64))
      expect(smaller).not.to.include(Math.floor(keySlot(name) / 64))
    }
  })

  for (const masters of [3, 4, 5, 6]) {
    it(`2 to 64 shards are spread over ${masters} masters, each with its part, give or take two`, () => {
      for (let shards = 2; shards <= 64; shards++) {
        const held = new Array<number>(masters).fill(0)
        for (const name of names.slice(0, shards)) held[Math.floor((keySlot(name) / SLOTS) * masters)]! += 1
        for (const count of held)
          expect(Math.abs(count - shards / masters), `${shards}: ${held.join()}`).to.be.below(2.5)
        if (Number.isInteger(Math.log2(shards))) expect(Math.max(...held) - Math.min(...held)).to.be.at.most(1)
      }
    })
  }

  it('the name in Redis is what is looked at', () => {
    const mapped = shardName('orders', 1, (name) => `app:${name}`)
    expect(Math.floor(keySlot(`app:${mapped}`) / 64)).to.equal(128)
    expect(mapped).to.match(/^orders:1:\d+$/)
  })

  it('braces are refused, in the name and from the mapper', () => {
    for (const name of ['{a}', 'a{b', 'a}b', '{}']) {
      expect(() => shardName(name, 0, asIs)).to.throw(InvalidArgumentError, /^name: expected one without/)
    }
    expect(() => shardName('a', 0, (name) => `{tag}${name}`)).to.throw(InvalidArgumentError, /nameMapper.*without/)
  })

  it('a mapper that makes all names alike is refused, and not asked for ever', () => {
    expect(() => shardName('a', 0, () => 'foo')).to.throw(InvalidArgumentError, /nameMapper.*another one.*"foo"/)
  })
})

describe('shards of keys', () => {
  it('jumpHash gives what Guava gives', () => {
    const golden = [0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83]
    expect(golden.map((_, hash) => jumpHash(BigInt(hash), 100))).to.deep.equal(golden)
    expect(jumpHash(10863919174838991n, 11)).to.equal(6)
    expect(jumpHash(2016238256797177309n, 11)).to.equal(3)
    expect(jumpHash(1673758223894951030n, 11)).to.equal(5)
    expect(jumpHash(2n, 100_001)).to.equal(80_343)
    expect(jumpHash(2201n, 100_001)).to.equal(22_152)
    expect(jumpHash(2202n, 100_001)).to.equal(15_018)
  })

  // a shard more must not move the keys of those who have not heard of a new version
  it('of earlier versions stay valid', () => {
    expect(['a', 'customer-17', 'größe', '🙂'].map((key) => shardOfKey(key, 16))).to.deep.equal([1, 5, 7, 5])
  })

  it('keys are spread evenly, and a shard more takes its part and moves nothing else', () => {
    const keys = upTo(8_000).map(String)
    for (const shards of [1, 2, 7, 8, 16]) {
      const counts = new Array<number>(shards).fill(0)
      let moved = 0
      for (const key of keys) {
        const before = shardOfKey(key, shards)
        const after = shardOfKey(key, shards + 1)
        counts[before]! += 1
        if (before === after) continue
        moved++
        expect(after, 'only to the new one').to.equal(shards)
      }
      for (const count of counts) expect(count / (keys.length / shards)).to.be.within(0.85, 1.15)
      expect(moved / (keys.length / (shards + 1))).to.be.within(0.85, 1.15)
    }
  })
})
