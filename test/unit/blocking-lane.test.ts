import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { BlockingLane } from '../../src/connection/blocking-lane.js'
import type { Link } from '../../src/connection/link.js'

describe('BlockingLane', () => {
  it('lets a connection end that refuses at once what is sent to it', async () => {
    // between the end of the stream and its close ioredis says that it is ready, and refuses; the close needs the event loop
    const [ending, next] = [new EventEmitter(), new EventEmitter()] as unknown as [Redis, Redis]
    let current = ending
    let refused = 0
    setImmediate(() => setImmediate(() => (current = next)))
    const link = {
      get current() {
        return current
      },
      close: () => Promise.resolve(),
    } as unknown as Link
    const lane = new BlockingLane({
      link,
      beside: () => undefined,
      command: {
        wait: (redis, [key = '']) => {
          if (redis === next || ++refused > 1_000) return Promise.resolve([key, [Buffer.from('element')]])
          return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"))
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
      shared: { hasServed: true },
      onMoved: () => expect.fail('it has not moved'),
      onGone: () => expect.fail('it is not gone'),
    })
    const taken = await new Promise((resolve, reject) =>
      lane.add({ keys: ['queue'], group: 0, max: 1, resolve: (elements) => resolve(elements), reject }),
    )
    expect(taken).to.deep.equal([Buffer.from('element')])
    expect(refused, 'how often it was tried meanwhile').to.be.within(1, 10)
    await lane.close()
  })
})
