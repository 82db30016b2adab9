import { expect } from 'chai'
import { keySlot, SLOTS } from '../../src/redis/topology/key-slot.js'
import { InvalidArgumentError } from '../../src/errors.js'
import { ShardNames, shardName, shardOf } from '../../src/sharding/shard-names.js'
import { leastCpuMs } from '../support/cpu.js'
import { jumpHash, shardOfKey } from '../../src/sharding/shard-of-key.js'

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

/** The first slots of the masters, as `redis-cli --cluster create` deals them out. */
function rangesOf(masters: number): number[] {
  const each = SLOTS / masters
  return upTo(masters).map((master) => (master === 0 ? 0 : Math.round(master * each - 1) + 1))
}

describe('names of shards', () => {
  const names = upTo(256).map((shard) => shardName('orders', shard, asIs))
  const slots = names.map(keySlot)
  const firsts = upTo(256).map((shard) => {
    const third = Math.floor(shard / 3)
    const within = upTo(8).reduce((sum, bit) => sum + ((third >> bit) & 1) / 2 ** (bit + 1), 0)
    return Math.ceil((((shard % 3) + within) / 3) * SLOTS)
  })

  /** How many of the first shards each master has. */
  const heldBy = (masters: number, shards: number): number[] => {
    const starts = rangesOf(masters)
    const held = new Array<number>(masters).fill(0)
    for (const slot of slots.slice(0, shards)) held[starts.findLastIndex((start) => start <= slot)]! += 1
    return held
  }

  const spreadOf = (masters: number, shards: number): number => {
    const held = heldBy(masters, shards)
    return Math.max(...held) - Math.min(...held)
  }

  // messages are stored under these names, so a later version must find the same
  it('of earlier versions stay valid', () => {
    expect(names.slice(0, 6)).to.deep.equal([
      'orders:0:638',
      'orders:1:159',
      'orders:2:65',
      'orders:3:577',
      'orders:4:766',
      'orders:5:446',
    ])
    expect(shardName('a', 255, asIs)).to.equal('a:255:242')
  })

  it('have slots in the windows of their shards, and no two windows have a slot in common', () => {
    expect(firsts.slice(0, 9)).to.deep.equal([0, 5462, 10923, 2731, 8192, 13654, 1366, 6827, 12288])
    for (const [shard, slot] of slots.entries()) {
      expect(slot - firsts[shard]!, `shard ${shard}`).to.be.within(0, 31)
    }
    const inOrder = [...firsts, SLOTS].sort((a, b) => a - b)
    for (let i = 1; i < inOrder.length; i++) expect(inOrder[i]! - inOrder[i - 1]!).to.be.at.least(32)
    expect(new Set(slots).size).to.equal(256)
  })

  it('are found well within the bound, whatever the queue is called', () => {
    const tries = upTo(5).flatMap((n) =>
      upTo(256).map((shard) => Number(shardName(`queue ${n}`, shard, asIs).split(':')[2])),
    )
    expect(Math.max(...tries)).to.be.below(10_000)
    expect(tries.reduce((sum, each) => sum + each, 0) / tries.length).to.be.within(300, 600)
  })

  it('the smallest k that hits the window is taken', () => {
    for (const [shard, name] of names.entries()) {
      const [, , k] = name.split(':').map(Number)
      const smaller = upTo(k!).map((other) => keySlot(`orders:${shard}:${other}`) - firsts[shard]!)
      expect(smaller.filter((distance) => distance >= 0 && distance < 32)).to.deep.equal([])
    }
  })

  it('the masters of the tests are those of redis-cli', () => {
    expect(rangesOf(3)).to.deep.equal([0, 5461, 10923])
    expect(rangesOf(6)).to.deep.equal([0, 2731, 5461, 8192, 10923, 13653])
  })

  it('multiples of three are exactly even over three masters, all others as even as can be', () => {
    for (let shards = 1; shards <= 256; shards++) {
      expect(spreadOf(3, shards), `${shards} shards`).to.equal(shards % 3 === 0 ? 0 : 1)
    }
  })

  it('twelve are exactly even over two, three, four and six masters', () => {
    for (const masters of [2, 3, 4, 6]) expect(heldBy(masters, 12)).to.deep.equal(Array(masters).fill(12 / masters))
  })

  it('multiples of six are exactly even over two and six masters, those of twelve over four', () => {
    for (let shards = 6; shards <= 256; shards += 6) {
      for (const masters of shards % 12 === 0 ? [2, 4, 6] : [2, 6]) {
        expect(spreadOf(masters, shards), `${shards} shards, ${masters} masters`).to.equal(0)
      }
    }
  })

  it('any number differs by two at most over two, four and six masters', () => {
    for (const masters of [2, 4, 6]) {
      for (let shards = 1; shards <= 256; shards++) {
        expect(spreadOf(masters, shards), `${shards} shards, ${masters} masters`).to.be.at.most(2)
      }
    }
  })

  it('with twice as many shards as masters every master has one', () => {
    for (let masters = 2; masters <= 128; masters++) {
      expect(Math.min(...heldBy(masters, 2 * masters)), `${masters} masters`).to.be.at.least(1) // further ones only add
    }
  })

  it('the name in Redis decides', () => {
    const mapped = shardName('orders', 1, (name) => `app:${name}`)
    expect(keySlot(`app:${mapped}`)).to.be.within(5462, 5462 + 31)
    expect(mapped).to.match(/^orders:1:\d+$/)
  })

  it('each is searched for once only, which keeps the mapper from being asked thousands of times', () => {
    const asked: string[] = []
    const found = new ShardNames((name) => {
      asked.push(name)
      return `app:${name}`
    })
    const first = upTo(12).map((shard) => found.of('orders', shard))
    expect(first).to.deep.equal(upTo(12).map((shard) => shardName('orders', shard, (name) => `app:${name}`)))
    expect(new Set(asked).size, 'each candidate once').to.equal(asked.length)
    const before = asked.length
    expect(upTo(12).map((shard) => found.of('orders', shard))).to.deep.equal(first)
    expect(asked).to.have.length(before)
    expect(found.of('orders', 12)).to.match(/^orders:12:/)
    expect(found.of('others', 0)).to.match(/^others:0:/)
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

describe('the queue and the shard of a name', () => {
  it('are those that have this name, and no others', () => {
    for (const queue of ['mails', 'a:1:2', '7']) {
      for (const shard of [0, 1, 17, 255])
        expect(shardOf(shardName(queue, shard, asIs))).to.deep.equal({ queue, shard })
    }
    const name = shardName('mails', 3, asIs)
    const [, , k = ''] = name.split(':')
    for (const other of [
      'mails',
      'mails:3',
      name.slice(1),
      `mails:03:${k}`,
      `{mails}:3:${k}`,
      `mails:300:1`,
      ':3:1',
      '',
    ]) {
      expect(shardOf(other), other).to.equal(null)
    }
    const later = upTo(20_000)
      .map((at) => `mails:3:${at}`)
      .filter((one) => shardOf(one) !== null)
    expect(later, 'not the next that would fit').to.deep.equal([name])
  })

  it('take one walk through a long name, which anyone can write', async () => {
    const queue = 'x'.repeat(1_000_000)
    const name = shardName(queue, 7, asIs)
    expect(keySlot(name) - keySlot(shardName('mails', 7, asIs))).to.be.within(-31, 31)
    expect(await leastCpuMs(500, () => expect(shardOf(name)).to.deep.equal({ queue, shard: 7 }))).to.be.lessThan(500)
  })
})
