import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AuthError, ConnectionError, type ClientOptions, type RedelayedClient } from '../../src/index.js'
import { createTestKit } from '../../src/testing/index.js'
import { writeCertificate } from '../support/certificate.js'
import { freePort, startRedis, requireServerBin, type RedisServer } from '../support/redis-server.js'
import { uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, rejection } from './fixtures.js'

const SECRET = 'geheim-7f3a'

/** The errors for a wrong address, a wrong password and a wrong scheme. */
describe('Errors of a connection that cannot be opened', () => {
  let server: RedisServer
  let tlsPort: number
  let dir: string

  before(async function () {
    requireServerBin(this)
    dir = mkdtempSync(join(tmpdir(), 'redelayed-advice-'))
    tlsPort = await freePort()
    writeCertificate(dir, 'redis')
    const files = { cert: 'redis.pem', key: 'redis.key', 'ca-cert': 'redis.pem' }
    const tls = Object.entries(files).flatMap(([kind, file]) => [`--tls-${kind}-file`, join(dir, file)])
    server = await startRedis({
      args: ['--requirepass', SECRET, '--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no', ...tls],
    })
  })
  after(async () => {
    await server?.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  afterEach(cleanUp)

  interface Case {
    readonly options: () => ClientOptions
    readonly type: typeof AuthError | typeof ConnectionError
    readonly says: RegExp
  }
  const at = (port: number) => `redis://127.0.0.1:${port}`
  let closedPort: number
  before(async () => (closedPort = await freePort()))

  const cases: Record<string, Case> = {
    'no server': {
      options: () => ({ url: at(closedPort) }),
      type: ConnectionError,
      says: /127\.0\.0\.1:\d+: .*no server listens there: does Redis run, and are host and port right \(url\)/,
    },
    'no such host': {
      options: () => ({ url: 'redis://no-such-host.invalid:6379' }),
      type: ConnectionError,
      says: /no-such-host\.invalid:6379: .*look at the url, or at host/,
    },
    'no password': {
      options: () => ({ url: at(server.port) }),
      type: AuthError,
      says: /127\.0\.0\.1:\d+: the server asks for a password and got none.*username and password/,
    },
    'a wrong password': {
      options: () => ({ url: `redis://:${SECRET}x@127.0.0.1:${server.port}` }),
      type: AuthError,
      says: /127\.0\.0\.1:\d+: the server knows no such user with this password.*username and password/,
    },
    'plain text to a port of TLS': {
      options: () => ({ url: at(tlsPort) }),
      type: ConnectionError,
      says: /127\.0\.0\.1:\d+: .*if this port speaks TLS, use rediss:\/\/ in the url, or tls/,
    },
    'TLS to a port without it': {
      options: () => ({ url: `rediss://127.0.0.1:${server.port}`, password: SECRET }),
      type: ConnectionError,
      says: /127\.0\.0\.1:\d+: .*does this port speak TLS\?/,
    },
    'a certificate of an unknown authority': {
      options: () => ({ url: `rediss://127.0.0.1:${tlsPort}` }),
      type: ConnectionError,
      says: /127\.0\.0\.1:\d+: self-signed certificate \(give your authority's certificate as tls\.ca, or its file to Node as NODE_EXTRA_CA_CERTS\)/,
    },
    'a cluster without a node': {
      options: () => ({ cluster: [at(closedPort)] }),
      type: ConnectionError,
      says: /127\.0\.0\.1:\d+: .*no server listens there: does Redis run/,
    },
    'sentinels that want a password': {
      options: () => ({ sentinels: [{ host: '127.0.0.1', port: server.port }], name: 'mymaster' }),
      type: ConnectionError,
      says: /the sentinels 127\.0\.0\.1:\d+: .*NOAUTH.*sentinelUsername and sentinelPassword/,
    },
  }

  for (const [what, { options, type, says }] of Object.entries(cases)) {
    it(`${what}: each call names the address, the cause and the option, and no secret; its stack has the caller`, async () => {
      const client = makeClient({ ...options(), connectTimeout: 600, warnings: false })
      client.on('error', () => {})
      const errors = await Promise.all(Object.values(calls(client)).map((call) => rejection(call())))
      for (const error of errors) {
        expect(error).to.be.instanceOf(type)
        expect(error.message).to.match(says)
        expect(error.message).to.not.include(SECRET)
        expect(error.stack).to.match(/at async .*callerOf.*error-advice\.test\.ts/)
      }
    })
  }

  it('createTestKit reports it too', async () => {
    const none = await rejection(createTestKit({ url: at(closedPort) }))
    expect(none.message).to.match(
      /found no Redis at 127\.0\.0\.1:\d+: start one, or give its url or REDIS_URL: .*REFUSED/,
    )
    const locked = await rejection(createTestKit({ url: at(server.port) }))
    expect(locked)
      .to.be.instanceOf(AuthError)
      .with.property('message')
      .that.matches(/127\.0\.0\.1:\d+: .*password/)
    expect((await rejection(createTestKit({ url: at(tlsPort) }))).message).to.match(/speaks TLS/)
  })
})

/** Calls of each kind of queue, by functions of the name `caller...`. */
function calls(client: RedelayedClient): Record<string, () => Promise<unknown>> {
  const name = uniqueName()
  const queue = client.getBlockingQueue<string>(name)
  const delayed = client.getDelayedQueue(queue, { deliver: false })
  const reliable = client.getReliableQueue<string>(name)
  const sharded = client.getShardedReliableQueue<string>(name, { shards: 2 })
  const LONGER = 5_000
  return {
    async callerOfOffer() {
      await delayed.offer('x', '5s')
    },
    async callerOfSize() {
      await delayed.size()
    },
    async callerOfPoll() {
      await queue.poll(LONGER)
    },
    async callerOfAdd() {
      await reliable.add('x')
    },
    async callerOfReliablePoll() {
      await reliable.poll({ timeout: LONGER })
    },
    async callerOfCounts() {
      await reliable.counts()
    },
    async callerOfSharded() {
      await sharded.get('x')
    },
    async callerOfPing() {
      await client.ping({ timeout: LONGER })
    },
  }
}
