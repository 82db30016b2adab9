/** Servers that cannot be reached, in each topology: every public call that waits ends by what it was given, or says where it failed. */
import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { createServer, connect as connectTo, type AddressInfo, type Server, type Socket } from 'node:net'
import { createClient, RedelayedError, type ClientOptions, type RedelayedClient } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { LostTime } from '../support/lag.js'
import { freePort, requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { ENDING, OTHERS, WAITING, objectsOf, type Ends, type Objects } from './waiting-calls.js'

const SOON_MS = 400
/** Longer than any call here may take that has an end of its own. */
const LATE_MS = 20_000
const TUNING = { commandTimeout: 400, sweepInterval: 1_000, pingInterval: 500 }
/** A wait that tried for less than half a second to connect ends with nothing. */
const TIMEOUT_MS = 700
const ABORT_MS = 100
/** How late a call may end, without the time in which this process could not run. */
const MARGIN_MS = 1_000
/** A call that takes this long never ends. */
const NEVER_MS = 10_000
/** A shutdown looks for a server for a second; connections are given two to end. */
const SHUTDOWN_MS = 3_000

type Connect = (ports: readonly number[]) => { client: ClientOptions; end?: () => void }

const TOPOLOGIES: Readonly<Record<string, Connect>> = {
  'one server': ([port]) => ({ client: { host: '127.0.0.1', port } }),
  'one server, by TLS': ([port]) => ({ client: { host: '127.0.0.1', port, tls: true } }),
  Sentinel: (ports) => ({ client: { sentinels: at(ports), name: 'mymaster' } }),
  Cluster: (ports) => ({ client: { cluster: at(ports) } }),
  replicated: (ports) => ({ client: { replicated: at(ports) } }),
  'a client of the user': ([port]) => borrowed(new Redis({ host: '127.0.0.1', port: port ?? 0 })),
  'a Cluster of the user': (ports) => borrowed(new Cluster(at(ports))),
}

const WAYS: Readonly<Record<string, (ports: Ports) => readonly number[]>> = {
  'refuses connections': ({ refused }) => refused,
  'accepts connections and is silent': ({ silent }) => silent,
  'never answers the first packet': ({ full }) => full,
}

interface Ports {
  readonly refused: readonly number[]
  readonly silent: readonly number[]
  /** Their queue of connections is full: Linux drops what comes. */
  readonly full: readonly number[]
}

/** How a call has to end: in any way, with any error, or with this one. */
type How = 'any' | 'rejected' | 'ERR_CONNECTION' | 'ERR_TEST'

const lost = new LostTime()

describe('servers that cannot be reached', function () {
  this.timeout(60_000)

  it('every method of every public object is known to wait, or not to', async () => {
    const client = createClient({ host: '127.0.0.1', port: 1, ...TUNING })
    client.on('error', () => {})
    const { queue, deque, delayed, sharded, reliable, batch, shardedReliable, worker } = objectsOf(client, 'names')
    const known = new Set([...Object.keys(WAITING).map((name) => name.split(',')[0] ?? ''), ...ENDING])
    const unknown: string[] = []
    for (const object of [queue, deque, delayed, sharded, reliable, batch, shardedReliable, worker, client]) {
      for (const name of methodsOf(object)) {
        const own = [`${object.constructor.name}.${name}`, `BlockingQueue.${name}`]
        if (!own.some((each) => known.has(each)) && !OTHERS.has(name)) unknown.push(own[0] ?? '')
      }
    }
    await client.shutdown()
    expect(unknown, 'add them to WAITING, ENDING or OTHERS of waiting-calls.ts').to.deep.equal([])
  })

  describe('all calls at once', function () {
    const found = new Map<string, string[]>()
    const closing: (() => Promise<unknown>)[] = []
    let openBefore: number

    before(async function () {
      requireServerBin(this)
      await Promise.resolve() // by now mocha has armed its own timer
      openBefore = open()
      const ports = await openPorts(closing)
      const tried = Object.entries(TOPOLOGIES).flatMap(([topology, connect]) =>
        Object.entries(WAYS).map(async ([way, portsOf]) => {
          found.set(`${topology} ${way}`, await tryAll(connect, portsOf(ports)))
        }),
      )
      await Promise.all(tried)
    })
    after(async () => {
      for (const close of closing) await close()
      // for two seconds ioredis keeps a timer for each connection that it ended when it had ended already
      await eventually(() => expect(open()).to.be.at.most(openBefore), 5_000, 50)
    })

    for (const topology of Object.keys(TOPOLOGIES)) {
      for (const way of Object.keys(WAYS)) {
        it(`${topology} that ${way}`, () => {
          expect(found.get(`${topology} ${way}`)).to.deep.equal([])
        })
      }
    }
  })
})

/** The problems of calls. Calls without a time limit of their own fail soon, which must not end the others. */
async function tryAll(connect: Connect, ports: readonly number[]): Promise<string[]> {
  const [impatient, patient] = await Promise.all([
    withClient(connect, ports, SOON_MS, (objects) =>
      Object.entries(WAITING).map(([name, { call, steps = 1 }]) =>
        watch(name, steps * SOON_MS, ports, () => call(objects, {}), 'rejected'),
      ),
    ),
    withClient(connect, ports, LATE_MS, (objects) =>
      Object.entries(WAITING).flatMap(([name, { takes, call }]) => [
        ...(takes.includes('timeout') ? [timedOut(name, ports, (ends) => call(objects, ends))] : []),
        ...(takes.includes('signal') ? [aborted(name, ports, (ends) => call(objects, ends))] : []),
      ]),
    ),
  ])
  return [...impatient, ...patient]
}

async function withClient(
  connect: Connect,
  ports: readonly number[],
  connectTimeout: number,
  calls: (objects: Objects) => Promise<string[]>[],
): Promise<string[]> {
  const { client: options, end } = connect(ports)
  const client = createClient({ ...TUNING, connectTimeout, ...options })
  const objects = objectsOf(client, uniqueName('unreachable'))
  client.on('error', () => {})
  try {
    const problems = await Promise.all(calls(objects))
    return [...problems.flat(), ...(await ends(client, objects, ports))]
  } finally {
    end?.()
  }
}

/** A wait without a connection must not end as with an empty queue. */
function timedOut(name: string, ports: readonly number[], call: (ends: Ends) => Promise<unknown>): Promise<string[]> {
  return watch(`${name}, timeout`, TIMEOUT_MS, ports, () => call({ timeout: TIMEOUT_MS }), 'ERR_CONNECTION')
}

async function aborted(
  name: string,
  ports: readonly number[],
  call: (ends: Ends) => Promise<unknown>,
): Promise<string[]> {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(new RedelayedError('ERR_TEST', 'aborted')), ABORT_MS)
  try {
    return await watch(`${name}, signal`, ABORT_MS, ports, () => call({ signal: controller.signal }), 'ERR_TEST')
  } finally {
    clearTimeout(timer)
  }
}

/** The worker and the client end, also with calls under way. */
async function ends(
  client: RedelayedClient,
  { worker, delayed, sharded, queue, reliable, shardedReliable }: Objects,
  ports: readonly number[],
): Promise<string[]> {
  const waiting = [queue.take(), reliable.poll({ timeout: 60_000 }), shardedReliable.poll({ timeout: 60_000 })].map(
    (call) => call.catch((error: unknown) => error),
  )
  return [
    ...(await watch('Worker.close', SHUTDOWN_MS, ports, () => worker.close())),
    ...(await watch('ShardedDelayedQueue.destroy', SHUTDOWN_MS, ports, () => sharded.destroy())),
    ...(await watch('DelayedQueue.destroy', SHUTDOWN_MS, ports, () => delayed.destroy())),
    ...(await watch('RedelayedClient.shutdown', SHUTDOWN_MS, ports, () => client.shutdown())),
    ...(await watch('calls at a shutdown', 0, ports, () => Promise.all(waiting))),
  ]
}

/** Whether a call ends in time, and as `how` requires. */
async function watch(
  name: string,
  ms: number,
  ports: readonly number[],
  call: () => Promise<unknown>,
  how: How = 'any',
): Promise<string[]> {
  const startedAt = performance.now()
  const lostBefore = lost.ms
  let timer: NodeJS.Timeout | undefined
  const never = new Promise<string[]>((resolve) => {
    timer = setTimeout(() => resolve([`${name} has not ended after ${ms + NEVER_MS} ms`]), ms + NEVER_MS)
  })
  const ended = (async () => {
    try {
      const value = await call()
      return how === 'any' ? [] : [`${name} resolved with ${JSON.stringify(value)}`]
    } catch (error) {
      return problemsOf(error, ports, how).map((problem) => `${name} ${problem}`)
    }
  })()
  const problems = await Promise.race([ended, never])
  const tookMs = performance.now() - startedAt
  clearTimeout(timer)
  await lost.measured()
  const lateMs = Math.round(tookMs - ms - (lost.ms - lostBefore))
  return lateMs > MARGIN_MS ? [...problems, `${name} ended ${lateMs} ms too late`] : problems
}

function problemsOf(error: unknown, ports: readonly number[], how: How): string[] {
  if (!(error instanceof RedelayedError)) return [`rejected with ${String(error)}`]
  if (how.startsWith('ERR_') && error.code !== how) return [`rejected with ${error.code} instead of ${how}`]
  const isConnection = error.code === 'ERR_CONNECTION' && error.message.includes('within')
  if (!isConnection || ports.some((port) => error.message.includes(`127.0.0.1:${port}`))) return []
  return [`does not say where: ${error.message.replace(/^queue "[^"]*": /, '')}`]
}

function methodsOf(object: object): Set<string> {
  const names = new Set<string>()
  for (
    let proto = Object.getPrototypeOf(object) as object;
    proto !== Object.prototype;
    proto = Object.getPrototypeOf(proto) as object
  ) {
    for (const key of Reflect.ownKeys(proto)) {
      const value: unknown = Object.getOwnPropertyDescriptor(proto, key)?.value
      if (typeof value === 'function' && key !== 'constructor') names.add(String(key))
    }
  }
  return names
}

/** Timers and sockets that keep the process alive. */
function open(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'TCPSocketWrap').length
}

function at(ports: readonly number[]): { host: string; port: number }[] {
  return ports.map((port) => ({ host: '127.0.0.1', port }))
}

function borrowed(redis: Redis | Cluster): { client: ClientOptions; end: () => void } {
  redis.on('error', () => {}) // ioredis prints it otherwise
  return { client: { redis }, end: () => redis.disconnect() }
}

async function openPorts(closing: (() => Promise<unknown>)[]): Promise<Ports> {
  const refused = [await freePort(), await freePort()]
  const silent: number[] = []
  const full: number[] = []
  for (let i = 0; i < 2; i++) {
    const accepted = new Set<Socket>()
    const server = createServer((socket) => {
      accepted.add(socket)
      socket.on('error', () => {}).resume()
    })
    silent.push(await listen(server))
    closing.push(() => {
      for (const socket of accepted) socket.destroy()
      return new Promise((resolve) => server.close(resolve))
    })
    full.push(await fullServer(closing))
  }
  return { refused, silent, full }
}

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)))
}

/** A server that is stopped, with so many connections that its system takes no more. */
async function fullServer(closing: (() => Promise<unknown>)[]): Promise<number> {
  const server: RedisServer = await startRedis({ args: ['--tcp-backlog', '1'] })
  await server.kill('SIGSTOP')
  const sockets: Socket[] = []
  closing.push(async () => {
    for (const socket of sockets) socket.destroy()
    await server.stop()
  })
  for (let isFull = false; !isFull && sockets.length < 50;) {
    const socket = connectTo({ port: server.port, host: '127.0.0.1' })
    socket.on('error', () => {})
    sockets.push(socket)
    isFull = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(true), 100)
      socket.once('connect', () => {
        clearTimeout(timer)
        resolve(false)
      })
    })
  }
  return server.port
}
