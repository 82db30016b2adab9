import { expect } from 'chai'
import type { Server } from '../../src/doctor/access.js'
import { discoverQueues } from '../../src/doctor/discover.js'

/** A server with some keys, in one order; notes the bytes of each reply. */
function serverWith(keys: readonly Buffer[]) {
  const bytes: number[] = []
  const counts: number[] = []
  const server: Server = {
    address: '127.0.0.1:1',
    ask: () => Promise.reject(new Error('not asked')),
    askBytes: (_command, cursor, ...args) => {
      const [from, count] = [Number(cursor), Number(args.at(-1))]
      const page = keys.slice(from, from + count)
      bytes.push(page.reduce((sum, { length }) => sum + length, 0))
      counts.push(count)
      const next = from + count < keys.length ? from + count : 0
      return Promise.resolve([Buffer.from(String(next)), page])
    },
  }
  return { server, bytes, counts }
}

describe('the search for queues', () => {
  it('looks at more keys at once while their names are small', async () => {
    const { server, counts } = serverWith(
      Array.from({ length: 10_000 }, (_, n) => Buffer.from(`redelayed:wheel:{q${n}}`)),
    )
    const { delayed } = await discoverQueues([server], () => {})
    expect(delayed).to.have.length(10_000)
    expect(counts.slice(0, 5)).to.deep.equal([100, 200, 400, 800, 1_000])
  })

  it('looks at fewer while their names are large, because Redis answers no other call meanwhile', async () => {
    const big = (n: number) => Buffer.from(`redelayed:wheel-${'x'.repeat(100_000)}${n}:{q}`)
    const { server, bytes } = serverWith(Array.from({ length: 1_000 }, (_, n) => big(n)))
    const { delayed } = await discoverQueues([server], () => {})
    expect(delayed).to.deep.equal(['q'])
    expect(bytes[0]).to.be.below(11_000_000)
    expect(Math.max(...bytes.slice(1))).to.be.below(1_100_000)
  })

  it('keeps the bytes of names that are not UTF-8', async () => {
    const key = Buffer.from('redelayed:wheel-\xff:{q}', 'latin1')
    const { buckets } = await discoverQueues([serverWith([key]).server], () => {})
    expect(buckets.get('q')?.misnamed).to.deep.equal([key])
  })
})
