import dns from 'node:dns'
import type { Answer, AnyJob, Order, WorkerReport } from './job.js'

/** The work of a worker process from an order to start until an order to stop. */
export interface Program {
  /** The number of errors of each code. */
  readonly errors: Readonly<Record<string, number>>
  /** Resolves when the program is ready for its work. */
  ready?(): Promise<void>
  /** Resolves, when it is turned off, once all that was begun has ended. */
  produce(on: boolean): Promise<unknown>
  burst(count: number, delay: number): Promise<void>
  queues?(count: number, prefix: string, delay: number): Promise<void>
  operate?(left: readonly string[], dead: readonly string[]): Promise<void>
  redrive?(ids: readonly string[]): Promise<void>
  turnTo(path: string): void
  stop(): Promise<void>
}

/** Before anybody changes it. */
export const realNow = Date.now.bind(Date)

/** Carries out the bench's orders, with the program that `start` makes of a job, until the bench is gone. */
export function serve(start: (job: never) => Program): void {
  let program: Program | undefined
  let lastErrors: Readonly<Record<string, number>> = {}
  const hosts = redirectHosts()

  async function carryOut(order: Order<AnyJob>): Promise<WorkerReport | undefined> {
    switch (order.kind) {
      case 'start':
        program = start(order.job as never) // of the kind that its bench sends
        await program.ready?.()
        return undefined
      case 'produce':
        await program?.produce(order.on)
        return undefined
      case 'burst':
        await program?.burst(order.count, order.delay)
        return undefined
      case 'queues':
        await program?.queues?.(order.count, order.prefix, order.delay)
        return undefined
      case 'operate':
        await program?.operate?.(order.left, order.dead)
        return undefined
      case 'redrive':
        await program?.redrive?.(order.ids)
        return undefined
      case 'stop':
        lastErrors = program?.errors ?? {}
        await program?.stop()
        program = undefined
        return undefined
      case 'ledger':
        program?.turnTo(order.path)
        return undefined
      case 'block':
        for (const until = performance.now() + order.ms; performance.now() < until;);
        return undefined
      case 'date':
        // the date of this process alone: what the library may not rely on
        Date.now = () => realNow() + order.shiftMs
        return undefined
      case 'dns':
        hosts.set(order.host, order.address)
        return undefined
      case 'report': {
        globalThis.gc?.()
        const { user, system } = process.cpuUsage()
        return {
          errors: program?.errors ?? lastErrors,
          heapBytes: process.memoryUsage().heapUsed,
          cpuMs: Math.round((user + system) / 1_000),
          resources: process.getActiveResourcesInfo().filter((kind) => kind !== 'PipeWrap').length,
        }
      }
    }
  }

  process.on('message', ({ id, order }: { id: number; order: Order<AnyJob> }) => {
    const reply = (answer: Omit<Answer, 'id'>): void => void process.send?.({ id, ...answer })
    carryOut(order).then(
      (report) => reply(report === undefined ? {} : { report }),
      (error: unknown) => reply({ error: String(error instanceof Error ? error.stack : error) }),
    )
  })
  process.on('disconnect', () => process.exit(0)) // the bench is gone
}

/** Names that lead where the bench says; the others lead where they do. */
function redirectHosts(): Map<string, string> {
  const hosts = new Map<string, string>()
  const lookup = dns.lookup
  dns.lookup = ((host: string, options: unknown, callback: (error: Error | null, ...rest: unknown[]) => void) => {
    const address = hosts.get(host)
    if (address === undefined) return lookup(host, options as dns.LookupOptions, callback as never)
    const all = (options as dns.LookupOptions).all === true
    process.nextTick(() => (all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)))
  }) as typeof dns.lookup
  return hosts
}
