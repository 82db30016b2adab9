import { EventEmitter } from 'node:events'
import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { BlockingConnection } from '../../src/redis/blocking/blocking-connection.js'
import { learnClientId } from '../../src/redis/blocking/unblocking.js'
import type { ReconnectingConnection } from '../../src/redis/connections/reconnecting-connection.js'
import type { Waiter } from '../../src/redis/blocking/waiters.js'
import { ClientEndedError } from '../../src/redis/topology/topology.js'
import { nextTurn, pause } from '../../src/timing/pause.js'

type Given = ConstructorParameters<typeof BlockingConnection>[0]

/** A connection that stays where it is, unless the test says otherwise. */
function connectionWith(given: Pick<Given, 'connection' | 'command'> & Partial<Given>): BlockingConnection {
  return new BlockingConnection({
    beside: () => undefined,
    shared: { hasServed: true },
    commandTimeout: 10_000,
    isConnected: () => true,
    onMoved: () => expect.fail('it has not moved'),
    onGone: () => expect.fail('it is not gone'),
    ...given,
  })
}

describe('BlockingConnection', () => {
  it('lets a connection end that refuses commands at once', async () => {
    // between the end of the stream and its close ioredis says that it is ready, and refuses; the close needs the event loop
    const [ending, next] = [new EventEmitter(), new EventEmitter()] as unknown as [Redis, Redis]
    let current = ending
    let refused = 0
    setImmediate(() => setImmediate(() => (current = next)))
    const reconnecting = {
      get current() {
        return current
      },
      close: () => Promise.resolve(),
    } as unknown as ReconnectingConnection
    const connection = connectionWith({
      connection: reconnecting,
      command: {
        wait: (redis, [key = '']) => {
          if (redis === next || ++refused > 1_000) return Promise.resolve([key, [Buffer.from('element')]])
          return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false"))
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
    const taken = await new Promise((resolve, reject) =>
      connection.add({ keys: ['queue'], group: 0, max: 1, resolve: (elements) => resolve(elements), reject }),
    )
    expect(taken).to.deep.equal([Buffer.from('element')])
    expect(refused, 'how often it was tried meanwhile').to.be.within(1, 10)
    await connection.close()
  })

  /** A connection whose waits end as `wait` says, on a connection that must stay. */
  function connectionOf(wait: () => Promise<Buffer | null>): BlockingConnection {
    const redis = new EventEmitter() as unknown as Redis
    const drop = () => expect.fail('the connection was given up')
    return connectionWith({
      connection: { current: redis, drop, close: () => Promise.resolve() } as unknown as ReconnectingConnection,
      command: {
        wait: async (_redis, [key = '']) => {
          const element = await wait()
          return element === null ? null : [key, [element]]
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
  }

  const takeOf = (connection: BlockingConnection) =>
    new Promise((resolve, reject) =>
      connection.add({ keys: ['queue'], group: 0, max: 1, resolve: (elements) => resolve(elements), reject }),
    )

  /** How many elements its commands ask for while 4 takes of 100 take 8,000, where each reply comes after `way`. */
  async function askedFor(way: () => Promise<unknown>): Promise<number[]> {
    const asked: number[] = []
    const connection = connectionWith({
      connection: { current: new EventEmitter(), close: () => Promise.resolve() } as unknown as ReconnectingConnection,
      command: {
        wait: async (_redis, [key = ''], count) => {
          asked.push(count)
          await way()
          return [key, Array.from({ length: count }, () => Buffer.from('element'))]
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
    let left = 8_000
    const taker = async (): Promise<void> => {
      while (left > 0) {
        const elements = await new Promise<Buffer[] | null>((resolve, reject) =>
          connection.add({ keys: ['queue'], group: 0, max: 100, resolve, reject }),
        )
        left -= elements?.length ?? NaN
      }
    }
    await Promise.all([taker(), taker(), taker(), taker()])
    await connection.close()
    return asked
  }

  it('requests the elements for all waits on a slow network', async () => {
    const asked = await askedFor(() => pause(3)) // each reply takes so long
    expect(asked.slice(4, 9)).to.deep.equal([400, 400, 400, 400, 400])
  })

  it('leaves some waits for the next command where the reply is there before the client is idle', async () => {
    const asked = await askedFor(() => Promise.resolve())
    expect(Math.max(...asked)).to.equal(200)
  })

  it('keeps its connection when another client ends its waits with an error', async () => {
    let ended = 0
    const connection = connectionOf(async () => {
      const message = 'UNBLOCKED client unblocked via CLIENT UNBLOCK'
      if (++ended <= 5) throw Object.assign(new Error(message), { name: 'ReplyError' })
      return Buffer.from('element')
    })
    expect(await takeOf(connection)).to.deep.equal([Buffer.from('element')])
    await connection.close()
  })

  it('keeps its connection when a wait begins while it fetches further elements, as on servers without BLMPOP', async () => {
    let unblocked = 0
    const redis = Object.assign(new EventEmitter(), {
      call: (command: string, sub: string) => {
        if (sub === 'UNBLOCK') unblocked++
        return Promise.resolve(command === 'INFO' ? 'redis_version:5.0.10' : sub === 'ID' ? 7 : 1)
      },
    }) as unknown as Redis
    await learnClientId(redis)
    unblocked = 0
    let fetch!: (elements: Buffer[]) => void
    let isAsked!: () => void
    const asked = new Promise<void>((resolve) => (isAsked = resolve))
    const connection = connectionWith({
      connection: {
        current: redis,
        drop: () => expect.fail('the connection was given up'),
        close: () => Promise.resolve(),
      } as unknown as ReconnectingConnection,
      beside: () => redis,
      command: {
        wait: (_redis, [key = '']) => Promise.resolve([key, [Buffer.from('first')]]),
        more: () => {
          isAsked()
          return new Promise((resolve) => (fetch = resolve))
        },
        probe: () => Promise.resolve(),
      },
    })
    const take = (key: string, max: number) =>
      new Promise((resolve, reject) =>
        connection.add({ keys: [key], group: 0, max, resolve: (elements) => resolve(elements?.map(String)), reject }),
      )
    const many = take('queue', 2)
    await asked
    const other = take('other', 1)
    fetch([Buffer.from('second')])
    expect(await many).to.deep.equal(['first', 'second'])
    expect(await other).to.deep.equal(['first'])
    expect(unblocked, 'interruptions of a command that had ended').to.equal(0)
    await connection.close()
  })

  it('gives its connection up, with the reason, where the server refuses the waits and no key is to blame', async () => {
    const refusing = new EventEmitter() as unknown as Redis
    let current: Redis | undefined = refusing
    const reasons: unknown[] = []
    const connection = connectionWith({
      connection: {
        get current() {
          return current
        },
        drop: (_redis: Redis, why: unknown) => {
          reasons.push(why)
          current = undefined
        },
        get: () => Promise.resolve((current = new EventEmitter() as unknown as Redis)),
        close: () => Promise.resolve(),
      } as unknown as ReconnectingConnection,
      command: {
        wait: async (redis, [key = '']) => {
          if (redis === refusing) throw Object.assign(new Error('NOPERM no BLMPOP'), { name: 'ReplyError' })
          return [key, [Buffer.from('element')]]
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
    expect(await takeOf(connection)).to.deep.equal([Buffer.from('element')])
    expect(reasons.map(String)).to.deep.equal(['AuthError: NOPERM no BLMPOP'])
    await connection.close()
  })

  it('ends its waits where the client of the user has ended, though waits have worked', async () => {
    const connection = connectionWith({
      connection: {
        current: undefined,
        get: () => Promise.reject(new ClientEndedError(undefined)),
        close: () => Promise.resolve(),
      } as unknown as ReconnectingConnection,
      command: { wait: () => expect.fail('it has no connection'), more: async () => [], probe: async () => undefined },
      isConnected: () => false,
    })
    expect(await takeOf(connection).catch((error: unknown) => error)).to.be.instanceOf(ClientEndedError)
    await connection.close()
  })

  it('pauses between waits that end empty at once again and again', async () => {
    const until = performance.now() + 250
    let asked = 0
    const connection = connectionOf(async () => {
      asked++
      await nextTurn()
      return performance.now() < until ? null : Buffer.from('element')
    })
    expect(await takeOf(connection)).to.deep.equal([Buffer.from('element')])
    expect(asked).to.be.within(11, 20)
    await connection.close()
  })

  it('sends the next command before it resolves the takes that got elements, and none while no take waits', async () => {
    const log: string[] = []
    const redis = new EventEmitter() as unknown as Redis
    const connection = connectionWith({
      connection: { current: redis, close: () => Promise.resolve() } as unknown as ReconnectingConnection,
      command: {
        wait: (_redis, [key = ''], count) => {
          log.push(`ask ${count}`)
          return Promise.resolve([key, Array.from({ length: count }, () => Buffer.from('element'))])
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
    const take = (name: string, max: number): Promise<void> =>
      new Promise((resolve, reject) => {
        const settle = (elements: Buffer[] | null): void => {
          log.push(`${name} gets ${elements?.length}`)
          resolve()
        }
        connection.add({ keys: ['queue'], group: 0, max, resolve: settle, reject })
      })
    await Promise.all([take('a', 100), take('b', 100), take('c', 300), take('d', 1)])
    expect(log).to.deep.equal(['ask 200', 'ask 300', 'a gets 100', 'b gets 100', 'ask 1', 'c gets 300', 'd gets 1'])
    await connection.close()
  })

  it('takes one element after the other from a group that has more, and checks the other groups in between', async () => {
    const lists: Record<string, string[]> = {
      full: Array.from({ length: 30 }, (_, n) => `full ${n}`),
      one: [],
      other: [],
    }
    let unblock = (): number => 0
    let turns = 0
    const redis = Object.assign(new EventEmitter(), {
      call: (command: string, sub: string) =>
        Promise.resolve(command === 'INFO' ? 'redis_version:5.0.10' : sub === 'ID' ? 7 : unblock()),
    }) as unknown as Redis
    await learnClientId(redis)
    const connection = connectionWith({
      connection: {
        current: redis,
        drop: () => expect.fail('the connection was given up'),
        close: () => Promise.resolve(),
      } as unknown as ReconnectingConnection,
      beside: () => redis,
      command: {
        // an empty list blocks until it is interrupted, or its turn is over
        wait: (_redis, [key = '']) => {
          const element = lists[key]!.shift()
          if (element !== undefined) return Promise.resolve([key, [Buffer.from(element)]])
          return new Promise((resolve) => {
            const turn = setTimeout(() => {
              turns++
              unblock()
            }, 50)
            unblock = () => {
              clearTimeout(turn)
              unblock = () => 0
              resolve(null)
              return 1
            }
          })
        },
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
    const take = (key: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const settle = (elements: Buffer[] | null): void => resolve(String(elements?.[0]))
        connection.add({ keys: [key], group: key, max: 1, resolve: settle, reject })
      })
    const taken: string[] = []
    const others = [take('one'), take('other')]
    void others[1]!.then((element) => taken.push(element))
    while (taken.at(-1) !== 'full 29') {
      if (taken.length === 10) lists.other!.push('other 0')
      taken.push(await take('full'))
    }
    expect(taken.indexOf('other 0'), 'its turn comes meanwhile').to.be.within(10, 20)
    expect(taken.filter((element) => element.startsWith('full'))).to.have.length(30)
    expect(turns, 'waited to their end').to.be.lessThan(10)
    lists.one!.push('one 0')
    expect(await others[0]).to.equal('one 0')
    await connection.close()
  })

  it('is not blocked while it collects more elements, which a shutdown waits for', async () => {
    let answer: (more: Buffer[]) => void = () => undefined
    const connection = connectionWith({
      connection: { current: new EventEmitter(), close: () => Promise.resolve() } as unknown as ReconnectingConnection,
      command: {
        wait: (_redis, [key = '']) => {
          expect(connection.blocked).to.equal(true)
          return Promise.resolve([key, [Buffer.from('1')]])
        },
        more: () => new Promise((resolve) => (answer = resolve)),
        probe: () => Promise.resolve(),
      },
    })
    const taken = new Promise((resolve, reject) =>
      connection.add({
        keys: ['queue'],
        group: 0,
        max: 2,
        resolve: (elements) => resolve(elements?.map(String)),
        reject,
      }),
    )
    await nextTurn()
    await nextTurn()
    expect(connection.blocked).to.equal(false)
    answer([Buffer.from('2')])
    expect(await taken).to.deep.equal(['1', '2'])
    await connection.close()
  })

  it('asks again to be unblocked when the server refused it, for whatever reason', async () => {
    const redis = Object.assign(new EventEmitter(), {
      call: (_command: string, what: string) => Promise.resolve(what === 'ID' ? 7 : 0),
    }) as unknown as Redis
    await learnClientId(redis)
    let unblock: (popped: null) => void = () => undefined
    let begin: () => void = () => undefined
    const begun = new Promise<void>((resolve) => (begin = resolve))
    let asked = 0
    const refused = Object.assign(new Error('OOM not now'), { name: 'ReplyError' })
    const pipeline = {
      eval: () => pipeline,
      call: () => pipeline,
      exec: () => {
        if (++asked === 1) return Promise.resolve([[null, 0], [refused]])
        if (asked === 2)
          return Promise.resolve([
            [null, 0],
            [null, 'the reply to another command'],
          ])
        unblock(null)
        return Promise.resolve([
          [null, 0],
          [null, 1],
        ])
      },
    }
    const beside = { pipeline: () => pipeline } as unknown as Redis
    const connection = connectionWith({
      connection: {
        current: redis,
        close: () => Promise.resolve(),
        drop: () => undefined,
      } as unknown as ReconnectingConnection,
      beside: () => beside,
      command: {
        wait: () =>
          new Promise((resolve) => {
            unblock = resolve
            begin()
          }),
        more: () => Promise.resolve([]),
        probe: () => Promise.resolve(),
      },
    })
    const ended = new Promise((resolve, reject) => {
      const waiter: Waiter = { keys: ['queue'], group: 0, max: 1, resolve, reject }
      connection.add(waiter)
      void begun.then(nextTurn).then(() => {
        waiter.ended = null
        connection.cancel(waiter)
      })
    })
    expect(await ended).to.equal(null)
    expect(asked).to.equal(3)
    await connection.close()
  })
})
