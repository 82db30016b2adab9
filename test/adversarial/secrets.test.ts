import { createClientFromRedissonYaml, javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { Cluster, Redis } from 'ioredis'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { codecs, createClient, RedelayedError, type ClientOptions, type Codec } from '../../src/index.js'
import { CONNECT_OPTIONS } from '../../src/redis/options.js'
import { logEvents } from '../../src/observability/log-events.js'
import { prometheusMetrics } from '../../src/observability/prometheus.js'
import { inProcess } from '../support/cli.js'
import { freePort, requireServerBin, startRedis, type RedisServer } from '../support/redis-server.js'
import { cleanUp, onCleanup } from '../integration/fixtures.js'

const SECRETS = {
  password: 'pl4nted-password',
  username: 'pl4nted-user',
  sentinelPassword: 'pl4nted-sentinel',
  sentinelUsername: 'pl4nted-watchman',
  passphrase: 'pl4nted-passphrase',
  key: 'pl4nted-key',
  payload: 'pl4nted-payload',
  option: 'pl4nted-option',
}
const PLANTED = 'pl4nted'
const { option: S } = SECRETS

describe('secrets in errors, events, logs and reports', function () {
  this.timeout(60_000)
  let real: RedisServer
  let clusterNode: RedisServer
  let sentinel: RedisServer
  let dir: string
  let echo: Server
  let closedPort: number
  const sockets = new Set<Socket>()

  before(async function () {
    requireServerBin(this)
    const protect = ['--requirepass', 'right']
    real = await startRedis({ args: protect })
    clusterNode = await startRedis({ args: [...protect, '--cluster-enabled', 'yes'], port: await freePort() })
    dir = mkdtempSync(join(tmpdir(), 'redelayed-secrets-'))
    const config = join(dir, 'sentinel.conf')
    writeFileSync(config, `dir ${dir}\nrequirepass right\nsentinel monitor main 127.0.0.1 ${real.port} 1\n`)
    sentinel = await startRedis({ args: [config, '--sentinel'] })
    closedPort = await freePort()
    echo = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {})
      // as Redis 5 says no to HELLO, but to everything
      socket.on('data', (bytes) => {
        for (const command of bytes.toString().split(/(?=\*\d+\r\n\$)/)) {
          const words = command.split('\r\n').filter((word) => !/^[*$]\d*$/.test(word) && word !== '')
          socket.write(
            `-ERR unknown command '${words[0] ?? ''}', with args beginning with: ${words.map((word) => `'${word}'`).join(' ')}\r\n`,
          )
        }
      })
    })
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
  })
  after(async () => {
    for (const socket of sockets) socket.destroy()
    echo?.close()
    await Promise.all([real?.stop(), clusterNode?.stop(), sentinel?.stop()])
    if (dir !== undefined) rmSync(dir, { recursive: true, force: true })
  })
  afterEach(cleanUp)

  const { password, username, sentinelPassword, sentinelUsername, passphrase, key } = SECRETS
  const login = { username, password }
  const fast = { connectTimeout: 400, commandTimeout: 400 }
  const ports = {
    'a wrong password': () => ({ single: real.port, cluster: clusterNode.port, sentinel: sentinel.port }),
    // ioredis leaves timers of two seconds behind for sentinels and nodes of a cluster that refuse, so those answer
    'a refused connection': () => ({ single: closedPort, cluster: clusterNode.port, sentinel: sentinel.port }),
    'a server that repeats what it got': () => {
      const { port } = echo.address() as AddressInfo
      return { single: port, cluster: port, sentinel: port }
    },
  }
  const host = '127.0.0.1'
  type Ports = ReturnType<(typeof ports)['a wrong password']>
  const topologies: Record<string, (at: Ports) => ClientOptions> = {
    'a url': ({ single }) => ({ url: `redis://${username}:${password}@${host}:${single}` }),
    'one server': ({ single }) => ({ host, port: single, ...login }),
    'a server with RESP 2': ({ single }) => ({ host, port: single, ...login, ioredis: { protocol: 2 } }),
    'TLS with a key that is none': ({ single }) => ({
      host,
      port: single,
      ...login,
      tls: { key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----`, cert: key, passphrase },
    }),
    'TLS to a server without': ({ single }) => ({ host, port: single, ...login, tls: { passphrase } }),
    'TLS with options that are none': ({ single }) => ({
      host,
      port: single,
      ...login,
      tls: { minVersion: S as 'TLSv1.3', ciphers: S, key: S },
    }),
    Sentinel: (at) => ({
      sentinels: [{ host, port: at.sentinel }],
      name: 'main',
      ...login,
      sentinelUsername,
      sentinelPassword,
    }),
    'Sentinel that lets us in': (at) => ({
      sentinels: [{ host, port: at.sentinel }],
      name: 'main',
      ...login,
      sentinelPassword: 'right',
    }),
    'a cluster': ({ cluster }) => ({ cluster: [{ host, port: cluster }], ...login }),
    'a cluster by a url': ({ cluster }) => ({ cluster: [`redis://${username}:${password}@${host}:${cluster}`] }),
    'replicated nodes': ({ single }) => ({ replicated: [{ host, port: single }], ...login }),
    'a borrowed client': ({ single }) => {
      const redis = new Redis({ host, port: single, ...login, lazyConnect: true, retryStrategy: () => null })
      redis.on('error', () => {})
      onCleanup(() => (redis.status === 'end' ? undefined : redis.disconnect())) // an ended one would leave a timer behind
      return { redis }
    },
    'a borrowed cluster': ({ cluster }) => {
      const redis = new Cluster([{ host, port: cluster }], {
        redisOptions: login,
        lazyConnect: true,
        clusterRetryStrategy: () => null,
      })
      redis.on('error', () => {})
      onCleanup(() => (redis.status === 'end' ? undefined : redis.disconnect())) // an ended one would leave a timer behind
      return { redis }
    },
  }

  for (const [failure, portsOf] of Object.entries(ports)) {
    for (const [topology, optionsOf] of Object.entries(topologies)) {
      it(`${failure}: ${topology}`, async () => {
        const seen: unknown[] = []
        const note = (...given: unknown[]): void => void seen.push(...given)
        const client = createClient({ ...fast, ...optionsOf(portsOf()) })
        onCleanup(() => client.shutdown())
        client.on('error', note).on('reconnecting', note).on('quarantined', note)
        const stop = logEvents(client, { debug: note, info: note, warn: note, error: note })
        const metrics = prometheusMetrics(client)
        const queue = client.getBlockingQueue<string>('secrets')
        const delayed = client.getDelayedQueue(queue)
        const calls = [
          queue.size(),
          queue.poll(100),
          delayed.offer(SECRETS.payload, 5),
          delayed.offerAll([{ value: SECRETS.payload, delay: 5 }]),
          client.getReliableQueue<string>('secrets').add(SECRETS.payload),
          delayed.offer(SECRETS.payload, 5, { durability: { replicas: 1, timeoutMs: 100 } } as never),
        ]
        const results = await Promise.allSettled(calls)
        const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
        expect(refused.length, 'some calls fail').to.be.above(0)
        for (const error of refused) expect(error).to.be.instanceOf(RedelayedError)
        expectNothingPlanted([...refused, ...seen, await metrics.register.metrics()])
        stop()
        metrics.stop()
      })
    }
  }

  const urls = [
    `${S}://h`,
    S,
    `redis://u:${S}/x@h:1`,
    `redis://u:1/${S}@h:1`,
    `redis://u:1?${S}@h`,
    `redis://u:1#${S}@h`,
    `redis://:%zz${S}@h`,
    `redis://h:${S}`,
    `redis://h/${S}`,
    `redis://h?password=${S}`,
    `redis://h#${S}`,
    `//:${S}@h`,
    `http://u:${S}@h`,
    ` redis://u:${S}@ h`,
    `redis://u:${S}"'@h:x`,
  ]
  for (const url of urls) {
    it(`a URL that is refused: ${url.replace(S, '…')}`, async () => {
      for (const options of [{ url }, { cluster: [url] }, { replicated: [url] }, { cluster: url }, { sentinels: url }])
        expectNothingPlanted([await refusal(() => createClient(options as unknown as ClientOptions))])
      const modes = { singleServerConfig: { address: url }, clusterServersConfig: { nodeAddresses: [url] } }
      for (const [mode, settings] of Object.entries(modes)) {
        const yaml = JSON.stringify({ [mode]: settings })
        // Redisson takes a percent sign as it is
        expectNothingPlanted([await refusal(() => createClientFromRedissonYaml(yaml), url.includes('%'))])
      }
      for (const args of [['stats', 'q'], ['doctor', '--json'], ['doctor']]) {
        const { code, out, err } = await inProcess([...args, '--url', url])
        expect(code).to.not.equal(0)
        expectNothingPlanted([out, err])
      }
    })
  }

  it('options that are refused, of every name', async () => {
    const tuning = ['clock', 'sweepInterval', 'pingInterval', 'connectTimeout', 'commandTimeout', 'blockingConnections']
    const more = ['entryFormat', 'consumersDeliver', 'maxPayloadBytes', 'codec', 'nameMapper', 'instrumentation']
    const seen: unknown[] = []
    for (const name of [...CONNECT_OPTIONS, ...tuning, ...more]) {
      for (const value of [S, [S], { x: S }, [{ host: S, port: S }], { keyPrefix: S }, () => S])
        seen.push(await refusal(() => createClient({ [name]: value }), true))
      seen.push(await refusal(() => createClient({ url: 'redis://h', [name]: S }), true))
    }
    expect(seen.filter((error) => error instanceof Error)).to.have.length.above(50)
    expectNothingPlanted(seen)
  })

  it('files of Redisson that are refused', async () => {
    const yamls = [
      `singleServerConfig: { address: "redis://h:1", password: [${S}] }`,
      `singleServerConfig: { address: "redis://h:1", password: !<${S}> x }`,
      `singleServerConfig: { address: "redis://h:1", database: ${S} }`,
      `singleServerConfig:\n  address: redis://h:1\n  password: "${S}\n  x: : :`,
      `singleServerConfig: { address: "redis://h:1" }\nsslKeystore: "${S}"\nnettyThreads: [${S}`,
      `singleServerConfig: { address: "rediss://h:1", sslProtocols: [${S}], sslVerificationMode: ${S} }`,
      `clusterServersConfig: { nodeAddresses: ["redis://u:${S}@a:1", "redis://u:x@b:1"] }`,
      `singleServerConfig: { address: "redis://h:1", password: "\${MISSING}", username: "${S}" }`,
      `singleServerConfig: { address: "redis://\${SECRET}" }`,
      `password: ${S}`,
      `password:${S}`,
    ]
    const seen = []
    for (const yaml of yamls)
      seen.push(
        await refusal(() =>
          createClientFromRedissonYaml(yaml, { variables: { SECRET: `u:${S}/@h` }, onWarning: () => {} }),
        ),
      )
    expectNothingPlanted(seen)
  })

  it('the command line, with a password that is wrong', async () => {
    for (const more of [[], ['--json'], ['--cluster']]) {
      for (const command of [['stats', 'q'], ['peek', 'q'], ['doctor'], ['offer', 'q', `"${SECRETS.payload}"`, '5s']]) {
        const port = more.includes('--cluster') ? clusterNode.port : real.port
        const url = `redis://${username}:${password}@${host}:${port}`
        const { code, out, err } = await inProcess([...command, ...more, '--url', url])
        expect(code, err).to.equal(1)
        expectNothingPlanted([out, err])
      }
    }
    const { err } = await inProcess(['offer', 'q', SECRETS.payload, '5s', `redis://:${password}@${host}`])
    expectNothingPlanted([err])
  })

  it('payloads that no codec can read', () => {
    const text = SECRETS.payload
    const mine: Codec = {
      name: 'mine',
      encode: () => Buffer.alloc(0),
      decode: parsed,
    }
    const all = [...Object.values({ ...codecs, ...javaCodecs }).flatMap((make) => made(make as () => Codec)), mine]
    expect(all).to.have.length.above(8)
    const payloads = [
      text,
      `"${text}`,
      `{"a":"${text}"`,
      `{"a":${text}}`,
      `["${text}"]x`,
      `["@class","${text}"]`,
      `[1,"${text}"`,
    ]
    const bytes = [
      ...payloads.map((each) => Buffer.from(each)),
      Buffer.concat([Buffer.from([0xa0 + text.length]), Buffer.from(text), Buffer.from(text)]),
      Buffer.concat([Buffer.from([0x92, 0xa0 + text.length]), Buffer.from(text)]),
      Buffer.concat([Buffer.from([0x81, 0xa0 + text.length]), Buffer.from(text)]),
    ]
    const client = createClient({ host, port: closedPort })
    onCleanup(() => client.shutdown())
    let refused = 0
    for (const codec of all) {
      const { handle } = client.getQueue('secrets', { codec }).list
      for (const each of bytes) {
        try {
          handle.decode(each)
        } catch (error) {
          refused++
          expect(error).to.be.instanceOf(RedelayedError)
          expectNothingPlanted([error])
        }
      }
    }
    expect(refused).to.be.above(50)
  })
})

function parsed(bytes: Buffer): unknown {
  return JSON.parse(bytes.toString())
}

function made(make: () => Codec): Codec[] {
  try {
    const codec = make()
    return typeof codec?.decode === 'function' ? [codec] : []
  } catch {
    return [] // it needs another codec or declarations
  }
}

/** The error; `undefined` where nothing was refused, if that may be. */
async function refusal(action: () => { shutdown(): Promise<void> }, mayPass = false): Promise<unknown> {
  let client
  try {
    client = action()
  } catch (error) {
    expect(error).to.be.instanceOf(RedelayedError)
    return error
  }
  await client.shutdown()
  if (!mayPass) throw new Error('it was not refused')
  return undefined
}

function expectNothingPlanted(values: readonly unknown[]): void {
  for (const value of values) {
    const shown = [...textsIn(value), inspect(value, { depth: 10, showHidden: true }), String(value), jsonOf(value)]
    for (const text of shown)
      if (text.includes(PLANTED)) throw new Error(`a planted secret is in ${JSON.stringify(text)}`)
  }
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return '' // a cycle
  }
}

/** Every text that can be reached: own and inherited properties, symbols, getters, and what is not enumerable. */
function textsIn(value: unknown, seen = new Set<unknown>()): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value === 'function' || typeof value !== 'object' || value === null || seen.has(value)) return []
  seen.add(value)
  if (value instanceof Uint8Array) return [Buffer.from(value).toString('latin1')]
  const texts = value instanceof Map || value instanceof Set ? [...value].flatMap((each) => textsIn(each, seen)) : []
  for (let level: object | null = value; level !== null && level !== Object.prototype;) {
    for (const key of Reflect.ownKeys(level)) {
      texts.push(String(key))
      try {
        texts.push(...textsIn((value as Record<PropertyKey, unknown>)[key], seen))
      } catch {
        // a getter that throws
      }
    }
    level = Object.getPrototypeOf(level) as object | null
  }
  return texts
}
