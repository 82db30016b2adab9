import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { writeCertificate } from '../../support/certificate.js'
import { eventually } from '../../support/events.js'
import { freePort, startRedis } from '../../support/redis-server.js'
import { startProxy } from '../../support/tcp-proxy.js'
import { SWEEP_MS, TAKES } from '../bench/bench.js'
import { DURABLE, standalone, type Stage, type StandaloneStage } from '../bench/stage.js'
import type { Scenario } from './scenario.js'

const IN_ALL_HANDS = 2 * TAKES
const WIRE_FORMAT = new URL('../../../docs/wire-format.md', import.meta.url)

/** A user who may do what the documentation names, on the keys it names, and nothing else. */
export async function withAcl(): Promise<StandaloneStage> {
  const stage = await standalone({ client: { username: 'app', password: 'secret' } })
  const documented = /For an ACL user: `([^`]+)`/.exec(readFileSync(WIRE_FORMAT, 'utf8'))?.[1] ?? ''
  const commands = documented.split(/\s+/).map((command) => `+${command.toLowerCase()}`)
  const keys = ['test:*', 'redisson_delay_queue*', 'redelayed:*'].map((pattern) => `~${pattern}`)
  const redis = await stage.raw('')
  await redis.call('ACL', 'SETUSER', 'app', 'on', '>secret', ...keys, '&redisson_delay_queue_channel:*', ...commands)
  return stage
}

export const acl: readonly Scenario<StandaloneStage>[] = [
  {
    name: 'a user with the documented commands only, also after a reconnect and SCRIPT FLUSH',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, { proxy }) {
      proxy.cut()
      await bench.pause(500)
      await (await bench.raw()).script('FLUSH')
    },
    also: (result) => void expect(result.errors).not.to.have.property('ERR_AUTH'),
  },
  {
    name: 'the user loses the right to publish, and gets it back',
    async fault(bench) {
      const redis = await bench.raw()
      await redis.call('ACL', 'SETUSER', 'app', '-publish')
      await bench.pause(2 * SWEEP_MS)
      await redis.call('ACL', 'SETUSER', 'app', '+publish')
    },
    also: (result) => void expect(result.errors).to.include.any.keys('ERR_AUTH', 'ERR_COMMAND'),
  },
]

export interface TlsStage extends StandaloneStage {
  /** Certificate and key by which the server shows itself. */
  show(which: 'right' | 'wrong'): Promise<void>
}

export async function withTls(): Promise<TlsStage> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-tls-'))
  const file = (name: string): string => join(dir, name)
  for (const which of ['right', 'wrong']) writeCertificate(dir, which)
  const tlsPort = await freePort()
  const named = (which: string): string[] => [
    '--tls-cert-file',
    file(`${which}.pem`),
    '--tls-key-file',
    file(`${which}.key`),
  ]
  const args = [
    ...DURABLE,
    '--tls-port',
    `${tlsPort}`,
    '--tls-auth-clients',
    'no',
    '--tls-ca-cert-file',
    file('right.pem'),
    ...named('right'),
  ]
  const stage = await standalone({ args })
  const proxy = await startProxy({ targetPort: tlsPort })
  return {
    ...stage,
    name: 'TLS',
    proxy,
    client: { host: '127.0.0.1', port: proxy.port, tls: { ca: readFileSync(file('right.pem'), 'utf8') } },
    async show(which) {
      const redis = await stage.raw('')
      await redis.call('CONFIG', 'SET', 'tls-cert-file', file(`${which}.pem`), 'tls-key-file', file(`${which}.key`))
    },
    async stop() {
      await proxy.stop()
      await stage.stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

export const tls: readonly Scenario<TlsStage>[] = [
  {
    name: 'the server shows a certificate of another host, and then its own again',
    allowed: { lost: IN_ALL_HANDS },
    async fault(bench, stage) {
      await stage.show('wrong')
      stage.proxy.cut()
      await bench.pause(2 * SWEEP_MS)
      await stage.show('right')
    },
    also: (result) => void expect(result.errors).to.have.property('reconnecting ERR_CONNECTION'),
  },
]

/** A host name of one of two servers; the second is the replica of the first. */
export interface NamedStage extends Stage {
  readonly host: string
  readonly addresses: readonly [string, string]
  /** Makes the second one the master, without losing anything, and the first its replica. */
  swap(): Promise<void>
}

export async function withName(): Promise<NamedStage> {
  const [first, second] = await Promise.all([standalone(), startRedis({ args: DURABLE })])
  const addresses = ['127.0.0.2', '127.0.0.3'] as const
  // one port on two addresses, as two machines have it
  const near = await startProxy({ targetPort: first.server.port, host: addresses[0] })
  const far = await startProxy({ targetPort: second.port, host: addresses[1], port: near.port })
  await (await first.to(second.port)).call('REPLICAOF', '127.0.0.1', first.server.port)
  let master = first.server.port
  return {
    name: 'a host name',
    host: 'redis.test',
    addresses,
    client: { host: 'redis.test', port: near.port },
    servers: [first.server, second],
    raw: () => first.to(master),
    to: (port) => first.to(port),
    async swap() {
      const [old, next] = [await first.to(first.server.port), await first.to(second.port)]
      await eventually(
        async () => expect(await next.info('replication')).to.include('master_link_status:up'),
        10_000,
        50,
      )
      await old.call('CLIENT', 'PAUSE', 10_000, 'WRITE')
      await eventually(async () => expect(await old.wait(1, 1_000)).to.equal(1), 5_000, 10)
      await next.call('REPLICAOF', 'NO', 'ONE')
      await old.call('REPLICAOF', '127.0.0.1', second.port)
      await old.call('CLIENT', 'UNPAUSE')
      master = second.port
    },
    healthy: async () => void (await (await first.to(master)).set('redelayed:healthy', '1', 'PX', 1)),
    async stop() {
      await Promise.all([near.stop(), far.stop()])
      await second.stop()
      await first.stop()
    },
  }
}

export const dns: readonly Scenario<NamedStage>[] = [
  {
    name: 'the name moves to another server, and the old one stays, read-only, with its connections',
    bench: { prepare: { kind: 'dns', host: 'redis.test', address: '127.0.0.2' } },
    async fault(bench, stage) {
      await stage.swap()
      await bench.pause(500)
      await Promise.all(
        bench.all.map((worker) => worker.order({ kind: 'dns', host: stage.host, address: stage.addresses[1] })),
      )
    },
    also: (result) => void expect(result.errors).to.have.property('ERR_READ_ONLY'),
  },
]
