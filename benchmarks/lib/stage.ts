/** A server of its own for each measurement, so that nothing of the last one is left in it. */
import { Redis } from 'ioredis'
import { startProxy } from '../../test/support/tcp-proxy.js'
import { startServer } from '../../scripts/redis.js'
import type { Session, SessionOptions, Subject } from '../subjects/subject.js'
import type { Bench } from './scenario.js'

export interface Stage {
  readonly url: string
  readonly raw: Redis
  readonly server: Awaited<ReturnType<typeof startServer>>
  /** A session of a subject, through the slow network if there is one. */
  open(subject: Subject, options?: Partial<SessionOptions>): Promise<Session>
}

export interface StageOptions {
  readonly args?: readonly string[]
  /** How long a piece takes each way, in milliseconds; a round trip takes twice as long. */
  readonly latencyMs?: number
}

export const PAYLOAD_BYTES = 100

export async function onStage<R>(
  bench: Pick<Bench, 'serverBin'>,
  options: StageOptions,
  action: (stage: Stage) => Promise<R>,
): Promise<R> {
  const server = await startServer({
    bin: bench.serverBin,
    args: [
      '--save',
      '',
      '--appendonly',
      'no',
      '--slowlog-log-slower-than',
      '1000',
      '--slowlog-max-len',
      '1000',
      ...(options.args ?? []),
    ],
  })
  const raw = new Redis(server.url)
  const proxy = options.latencyMs === undefined ? undefined : await startProxy({ targetPort: server.port })
  proxy?.delay(options.latencyMs ?? 0)
  const url = proxy === undefined ? server.url : `redis://127.0.0.1:${proxy.port}`
  const sessions: Session[] = []
  try {
    return await action({
      url,
      raw,
      server,
      async open(subject, given = {}) {
        const session = await subject.open({ url, queue: 'bench', payloadBytes: PAYLOAD_BYTES, ...given })
        sessions.push(session)
        return session
      },
    })
  } finally {
    await Promise.all(sessions.map((session) => session.close()))
    raw.disconnect()
    await proxy?.stop()
    await server.stop()
  }
}
