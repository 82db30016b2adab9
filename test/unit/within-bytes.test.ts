import { expect } from 'chai'
import { queueKeys } from '../../src/keys.js'
import type { Sender } from '../../src/store/sender.js'
import type { Access } from '../../src/doctor/access.js'
import { findFamilies, MOST_QUEUES } from '../../src/doctor/families.js'
import { countWithin, firstWithin, MOST_BYTES } from '../../src/doctor/within-bytes.js'

describe('reading a list with elements of any size', () => {
  async function read(sizes: readonly number[], limit: number): Promise<{ found: number; pages: number[] }> {
    const pages: number[] = []
    const page = (from: number, count: number): Promise<number[]> => {
      pages.push(count)
      return Promise.resolve(sizes.slice(from, from + count))
    }
    const found = await firstWithin(page, (size) => size, limit)
    expect(found).to.deep.equal(sizes.slice(0, found.length))
    return { found: found.length, pages }
  }

  it('is all of few, and no more than is asked for', async () => {
    expect(await read([], 10)).to.deep.equal({ found: 0, pages: [4] })
    expect(await read([1, 2, 3], 10)).to.deep.equal({ found: 3, pages: [4] })
    expect(await read([1, 2, 3, 4, 5], 2)).to.deep.equal({ found: 2, pages: [2] })
  })

  it('takes larger pages of small elements, but none that could be gigabytes', async () => {
    const { found, pages } = await read(Array<number>(1_000).fill(100), 100)
    expect(found).to.equal(100)
    expect(pages).to.deep.equal([4, 8, 16, 16, 16, 16, 16, 8])
  })

  it('ends before 8 MiB, but has its first element', async () => {
    expect(await read(Array<number>(30).fill(16 * 2 ** 20), 100)).to.deep.equal({ found: 1, pages: [4] })
    expect(await read(Array<number>(30).fill(MOST_BYTES / 2), 100)).to.deep.equal({ found: 2, pages: [4] })
    expect((await read([...Array<number>(12).fill(1), ...Array<number>(30).fill(2 ** 22)], 100)).found).to.equal(13)
  })

  it('is of 10,000 queues of a kind at most, with the number of the others', async () => {
    const of = (kind: string): string[] =>
      Array.from({ length: MOST_QUEUES + 5 }, (_, n) => `${kind}${String(n).padStart(6, '0')}}`)
    const keys = [...of('redisson_delay_queue_timeout:{d'), ...of('redelayed:reliable:messages:{r')]
    const server = {
      address: '',
      askBytes: () => Promise.resolve([Buffer.from('0'), keys.map((key) => Buffer.from(key))]),
    }
    const { delayed, reliable, left } = await findFamilies({ masters: [server] } as unknown as Access, [])
    expect([delayed.length, reliable.length, left]).to.deep.equal([MOST_QUEUES, MOST_QUEUES, 10])
    expect(delayed[0]?.queue).to.equal('d000000')
  })
})

describe('how many elements of a list are read', () => {
  it('is asked of that list alone, and of no more than are shown', async () => {
    const asked: (readonly unknown[])[] = []
    const call = (command: string, args: readonly unknown[]): Promise<Buffer[]> => {
      asked.push([command, ...args])
      return Promise.resolve([Buffer.from('a'), Buffer.from('b'), Buffer.from('c')])
    }
    const sender = { call } as unknown as Sender
    expect(await countWithin(sender, 'q', 'quarantine', 3)).to.equal(3)
    expect(asked).to.deep.equal([['LRANGE', queueKeys('q').quarantine, '0', '2']])
  })
})
