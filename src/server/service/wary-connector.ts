import { SentinelConnector } from 'ioredis'

/** Refuses a master whose `INFO` is nil: ioredis would read the role of nil in a callback, where an error ends the process. */
export class WaryConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as ConstructorParameters<typeof SentinelConnector>[0])
  }

  override check(info: { role?: string } | null): boolean {
    return super.check(typeof info === 'object' && info !== null ? info : { role: 'unknown' })
  }
}
