/** A server of its own for each measurement, so that nothing of the last one is left in it. */
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { freePort, startServer } from '../../scripts/redis.js'
import type { Session, SessionOptions, Subject } from '../subjects/subject.js'
import { makeCertificate } from './certificate.js'
import type { Bench } from './scenario.js'

export interface Stage {
  readonly url: string
  /** The authority's certificate, where `url` is of TLS. */
  readonly ca?: string
  readonly raw: Redis
  readonly server: Awaited<ReturnType<typeof startServer>>
  /** A session of a subject, through the slow network or TLS if there is one. */
  open(subject: Subject, options?: Partial<SessionOptions>): Promise<Session>
}

export interface StageOptions {
  readonly args?: readonly string[]
  /** How long a piece takes each way, in milliseconds; a round trip takes twice as long. */
  readonly latencyMs?: number
  /** Subjects connect by TLS; what looks at the server does not. */
  readonly tls?: boolean
  /** Another server than that of the run. */
  readonly bin?: string
  readonly payloadBytes?: number
}

export const PAYLOAD_BYTES = 100

const PROXY = fileURLToPath(new URL('proxy-process.ts', import.meta.url))
const PLAIN = ['--save', '', '--appendonly', 'no', '--slowlog-log-slower-than', '1000', '--slowlog-max-len', '1000']

/** How subjects reach the server. */
interface Way {
  readonly url: string
  readonly ca?: string
}

export async function onStage<R>(
  bench: Pick<Bench, 'serverBin'>,
  options: StageOptions,
  action: (stage: Stage) => Promise<R>,
): Promise<R> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-bench-'))
  const certificate = options.tls === true ? makeCertificate(dir) : undefined
  const tlsPort = certificate === undefined ? undefined : await freePort()
  const tlsArgs =
    certificate === undefined
      ? []
      : ['--tls-port', String(tlsPort), '--tls-auth-clients', 'no', '--tls-cert-file', certificate.certificateFile]
  const keyArgs =
    certificate === undefined
      ? []
      : ['--tls-key-file', certificate.keyFile, '--tls-ca-cert-file', certificate.certificateFile]
  const server = await startServer({
    bin: options.bin ?? bench.serverBin,
    args: [...PLAIN, ...tlsArgs, ...keyArgs, ...(options.args ?? [])],
  })
  const raw = new Redis(server.url)
  const proxy = options.latencyMs === undefined ? undefined : await startSlowNetwork(server.port, options.latencyMs)
  const way: Way =
    certificate !== undefined
      ? { url: `rediss://127.0.0.1:${tlsPort}`, ca: certificate.ca }
      : { url: proxy === undefined ? server.url : `redis://127.0.0.1:${proxy.port}` }
  const sessions: Session[] = []
  try {
    return await action({
      ...way,
      raw,
      server,
      async open(subject, given = {}) {
        const payloadBytes = options.payloadBytes ?? PAYLOAD_BYTES
        const session = await subject.open({ ...way, queue: 'bench', payloadBytes, ...given })
        sessions.push(session)
        return session
      },
    })
  } finally {
    await Promise.all(sessions.map((session) => session.close()))
    raw.disconnect()
    await proxy?.stop()
    await server.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function startSlowNetwork(targetPort: number, delayMs: number): Promise<{ port: number; stop(): Promise<void> }> {
  const child: ChildProcess = fork(PROXY, [String(targetPort), String(delayMs)])
  const [port] = (await once(child, 'message')) as [number]
  return {
    port,
    async stop() {
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
  }
}
