import { expect } from 'chai'
import { inspect } from 'node:util'
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net'
import { ConnectionError, codecs, type ReconnectingEvent, type RedelayedClient } from '../../src/index.js'
import { ReplyScanner } from '../../src/redis/replies/reply-scanner.js'
import { eventually } from '../support/events.js'
import { redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup } from './fixtures.js'

const LIMITS = { connectTimeout: 1_500, commandTimeout: 1_500, sweepInterval: 1_000, pingInterval: 1_000 }

/** A push of an unknown kind; many of them bring more bytes a second than a stuck line. */
const STRAY = `>2\r\n$5\r\nstray\r\n$40\r\n${'x'.repeat(40)}\r\n`

type Role = 'commands' | 'blocking' | 'subscriber'

/** The changed form of a reply; the proxy changes as many replies as are listed. */
type Change = (reply: Buffer) => Buffer | string

interface ReplyProxy {
  readonly port: number
  readonly changed: number
  /** Whether a frame is still to be changed. */
  readonly isArmed: boolean
  /** Changes the next frame to a connection of that role. */
  change(role: Role, change: Change): void
  /** The connections that are open bring no reply any more, and pushes of a kind that Redis does not have instead. */
  stray(): void
}

/** In front of the Redis of the tests; passes whole frames on. */
async function startReplyProxy(): Promise<ReplyProxy> {
  const { hostname, port } = new URL(redisUrl())
  const sockets = new Set<Socket>()
  let armed: { role: Role; change: Change } | undefined
  let changed = 0
  const open = new Set<Socket>()
  const straying = new Map<Socket, NodeJS.Timeout>()
  const server: Server = createServer((client) => {
    open.add(client)
    client.on('close', () => {
      open.delete(client)
      clearInterval(straying.get(client))
    })
    const upstream = connect({ port: Number(port || 6379), host: hostname })
    let role: Role = 'commands'
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
    }
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
    client.on('data', (bytes) => {
      const text = bytes.toString('latin1')
      if (/\r\nsubscribe\r\n/i.test(text)) role = 'subscriber'
      if (/\r\nBL?POP|\r\nBLM|\r\nBRPOP/i.test(text)) role = 'blocking'
      upstream.write(bytes)
    })
    let rest = Buffer.alloc(0)
    upstream.on('data', (bytes) => {
      if (straying.has(client)) return
      rest = Buffer.concat([rest, bytes])
      const scanner = new ReplyScanner()
      let at = 0
      for (let end; (end = scanner.next(rest, at)) !== -1; at = end) {
        const frame = rest.subarray(at, end)
        // not the answers that show the order: they come when it suits the client
        if (armed?.role !== role || frame.includes('redelayed-order-')) client.write(frame)
        else {
          const { change } = armed
          armed = undefined
          changed++
          client.write(change(frame))
        }
      }
      rest = rest.subarray(at)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onCleanup(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    port: (server.address() as AddressInfo).port,
    get changed() {
      return changed
    },
    get isArmed() {
      return armed !== undefined
    },
    stray() {
      for (const client of open)
        straying.set(
          client,
          setInterval(() => client.write(STRAY), 50),
        )
    },
    change(role, change) {
      armed = { role, change }
    },
  }
}

const MINUTE_MS = 60_000

/** A frame that begins with the server's time, with another time. */
function withTime(frame: string, now: string, time: string): string {
  return frame.replace(`$${now.length}\r\n${now}\r\n`, () => `$${time.length}\r\n${time}\r\n`)
}

const CHANGES: Readonly<Record<string, Change>> = {
  'a length with a wrong byte': () => '$*\r\nabc\r\n',
  'a push of nil': () => '>1\r\n_\r\n',
  'a subscription that was not asked for': () => '>3\r\n$9\r\nsubscribe\r\n_\r\n:1\r\n',
  'an end of it': () => '>3\r\n$11\r\nunsubscribe\r\n_\r\n:0\r\n',
  'a message of one part': () => '>1\r\n$7\r\nmessage\r\n',
  'ten thousand levels': () => '*1\r\n'.repeat(10_000),
  zeros: () => Buffer.alloc(64),
  'nil, and the reply': (reply) => Buffer.concat([Buffer.from('$-1\r\n'), reply]),
  'the reply twice': (reply) => Buffer.concat([reply, reply]),
}

describe('Replies that are wrong on the wire', () => {
  afterEach(cleanUp)

  async function setUp() {
    const proxy = await startReplyProxy()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, ...LIMITS })
    const reconnecting: ReconnectingEvent[] = []
    client.on('error', () => {})
    client.on('reconnecting', (event) => reconnecting.push(event))
    const name = uniqueName()
    const queue = client.getBlockingQueue<string>(name, { codec: codecs.string() })
    const delayed = client.getDelayedQueue(queue)
    return { proxy, client, reconnecting, name, queue, delayed }
  }

  for (const role of ['commands', 'blocking', 'subscriber'] as const) {
    for (const [what, change] of Object.entries(CHANGES)) {
      it(`${what} on a connection for ${role}: the process lives, calls end, and a new connection serves`, async () => {
        const { proxy, queue, delayed } = await setUp()
        const taken: string[] = []
        const end = new AbortController()
        const taking = (async () => {
          while (!end.signal.aborted) {
            await queue.take({ signal: end.signal }).then(
              (value) => taken.push(value),
              () => undefined,
            )
          }
        })()
        await delayed.offer('first', 1)
        await eventually(() => expect(taken).to.include('first'))
        proxy.change(role, change)
        await eventually(async () => {
          await Promise.allSettled([queue.size(), delayed.offer('meanwhile', 1), delayed.offer('meanwhile', 600_000)])
          expect(proxy.changed).to.equal(1)
        }, 5_000)
        await eventually(() => delayed.offer('afterwards', 1), 5_000)
        await eventually(() => expect(taken).to.include('afterwards'), 8_000)
        end.abort()
        await taking
      })
    }
  }

  for (const [what, change] of Object.entries({
    'is lost': () => '',
    'comes twice': (reply: Buffer) => Buffer.concat([reply, reply]),
  })) {
    it(`one reply ${what} while there is always another call: the connection is given up within a second`, async () => {
      const { proxy, client, reconnecting, name } = await setUp()
      const lists = await fillLists(client, name)
      let until = Infinity
      let wrong = 0
      const callers = lists.map(async ({ list, size }) => {
        while (performance.now() < until) {
          const found = await list.size().catch((error: unknown) => error)
          if (found !== size) wrong++
        }
      })
      proxy.change('commands', change)
      await eventually(
        () => expect(reconnecting.map(({ error }) => error?.message)).to.match(/protocol error: /),
        3_000,
      )
      await eventually(() => lists[0]?.list.size(), 3_000)
      wrong = 0
      until = performance.now() + 200
      await Promise.all(callers)
      expect(wrong).to.equal(0)
    })
  }

  for (const [error, isRepeated] of [
    ['ERR upstream failure', false],
    ['WRONGTYPE Operation against a key holding the wrong kind of value', true],
    ['ERR The user executing the script may not', true],
  ] as const) {
    it(`"${error}" in place of the reply to a script of several offers: none is added twice`, async () => {
      const proxy = await startReplyProxy()
      const client = makeClient({ host: '127.0.0.1', port: proxy.port })
      const queue = client.getQueue<string>(uniqueName(), { codec: codecs.string() })
      const delayed = client.getDelayedQueue(queue, { deliver: false }) // no other command comes between
      const values = ['a', 'b', 'c']
      await Promise.all(values.map(() => delayed.offer('first', 600_000)))
      proxy.change('commands', () => `-${error}\r\n`)
      const ended = await Promise.allSettled(values.map((value) => delayed.offer(value, 600_000)))
      expect(proxy.changed).to.equal(1)
      expect(ended.map(({ status }) => status)).to.deep.equal(values.map(() => (isRepeated ? 'fulfilled' : 'rejected')))
      expect(await delayed.readAll()).to.deep.equal(['first', 'first', 'first', ...values])
      await delayed.clear()
    })
  }

  for (const [what, changed] of [
    ['its first digit', (now: string) => `9${now.slice(1)}`],
    ['its point', (now: string) => now.replace(/^(\d+).*$/, '$1e250')],
    ['a digit more', (now: string) => `${now.slice(0, 13)}0`],
  ] as const) {
    for (const options of [{ every: 100 }, { cron: '* * * * * *' }]) {
      it(`${what} changed in the time of a poll's reply: a schedule goes on (${Object.keys(options).join()})`, async function () {
        this.timeout(20_000)
        const proxy = await startReplyProxy()
        const client = makeClient({ host: '127.0.0.1', port: proxy.port })
        client.on('error', () => {})
        const quarantined: unknown[] = []
        client.on('quarantined', (event) => quarantined.push(event))
        const name = uniqueName('clock')
        forgetReliable(name)
        const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
        await queue.upsertSchedule('tick', 'x', options)
        const change = (reply: Buffer): Buffer => {
          const text = reply.toString('latin1')
          const now = text.includes('"missed"') ? /^\*\d+\r\n\$\d+\r\n(\d{13}[.\d]*)\r\n/.exec(text)?.[1] : undefined
          if (now === undefined) proxy.change('commands', change)
          return now === undefined ? reply : Buffer.from(withTime(text, now, changed(now)), 'latin1')
        }
        proxy.change('commands', change)
        let ticks = 0
        const isChanged = () => proxy.changed > 0 && !proxy.isArmed
        await eventually(async () => {
          const message = await queue.poll({ timeout: 1_000 }).catch(() => null)
          await message?.acknowledge()
          if (message !== null && isChanged()) ticks++
          expect(ticks).to.be.at.least(2)
        }, 15_000)
        expect(quarantined).to.deep.equal([])
        const [schedule] = await queue.listSchedules()
        expect(schedule?.lastPrepared.getTime()).to.be.lessThan(Date.now() + MINUTE_MS)
      })
    }
  }

  it('the first digit changed in the time with which a schedule is begun: its first tick is the next one', async () => {
    const proxy = await startReplyProxy()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port })
    const name = uniqueName('clock')
    forgetReliable(name)
    const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
    await queue.size() // the connection is open
    const change = (reply: Buffer): Buffer => {
      const text = reply.toString('latin1')
      const now = /^\*1\r\n\$\d+\r\n(\d{13}[.\d]*)\r\n$/.exec(text)?.[1]
      if (now === undefined) proxy.change('commands', change)
      return now === undefined ? reply : Buffer.from(withTime(text, now, `9${now.slice(1)}`), 'latin1')
    }
    proxy.change('commands', change)
    expect(await queue.upsertSchedule('tick', 'x', { every: 1_000 })).to.equal(true)
    expect(proxy.isArmed).to.equal(false)
    const [schedule] = await queue.listSchedules()
    expect(schedule?.lastPrepared.getTime()).to.be.lessThan(Date.now() + MINUTE_MS)
  })

  it('pushes of an unknown kind are no sign of life: where all replies are lost calls and waits end, and new connections serve', async function () {
    this.timeout(30_000)
    const proxy = await startReplyProxy()
    const client = makeClient({ host: '127.0.0.1', port: proxy.port, ...LIMITS })
    client.on('error', () => {})
    const queue = client.getBlockingQueue<string>(uniqueName(), { codec: codecs.string() })
    await queue.add('before')
    expect(await queue.take()).to.equal('before')
    const replaced = new Set<string>()
    client.on('reconnecting', ({ connection }: ReconnectingEvent) => replaced.add(connection))
    const taken = queue.take() // its command waits on a connection that will be lost
    proxy.stray()
    const startedAt = performance.now()
    const ending = new AbortController()
    const ended = queue.take({ signal: ending.signal }).catch((error: unknown) => error)
    await new Promise(setImmediate) // by now it shares the command, which is interrupted
    ending.abort(new Error('enough'))
    expect(await queue.add('lost').catch((error: unknown) => error)).to.be.instanceOf(ConnectionError)
    expect(await ended).to.have.property('message', 'enough')
    await eventually(() => expect([...replaced]).to.include.members(['commands', 'blocking']), 10_000)
    expect(performance.now() - startedAt).to.be.below(8_000)
    await queue.add('after')
    expect(await taken).to.be.oneOf(['lost', 'after'])
  })

  it('quotes no payload of a reply that answers nothing', async () => {
    const { proxy, client, reconnecting, name } = await setUp()
    const list = client.getQueue<string>(name, { codec: codecs.string() })
    await list.add('TOPSECRET'.repeat(100))
    const errors: unknown[] = []
    client.on('error', (error) => errors.push(error))
    proxy.change('commands', (reply) => (reply.includes('TOPSECRET') ? Buffer.concat([reply, reply]) : reply))
    expect(await list.peek()).to.match(/^TOPSECRET/)
    await eventually(() => expect(reconnecting).to.have.lengthOf(1))
    expect(reconnecting[0]?.error).to.be.instanceOf(ConnectionError)
    expect(inspect([reconnecting, errors], { depth: 6 })).not.to.contain('TOPSECRET')
  })
})

/** Four lists of different lengths, so that each reply shows whose it is. */
async function fillLists(client: RedelayedClient, name: string) {
  return Promise.all(
    [1, 2, 3, 4].map(async (size) => {
      const list = client.getQueue<string>(`${name}:${size}`, { codec: codecs.string() })
      await list.addAll(Array.from({ length: size }, (_, at) => `${at}`))
      return { list, size }
    }),
  )
}
