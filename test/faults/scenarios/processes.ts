import { SWEEP_MS, TAKES } from '../bench/bench.js'
import type { Scenario } from './scenario.js'

/** Consumers that only take, so that they depend on the processes that deliver. */
const ONLY_TRANSFERRERS = { client: { consumersDeliver: false } }
const HOUR_MS = 3_600_000

/** Processes that die, stand still, or have a wrong idea of the time. */
export const processes: readonly Scenario[] = [
  {
    name: 'SIGKILL of a producer',
    async fault(bench) {
      const producer = bench.one('producer')
      await bench.pause(0, 500)
      await producer.kill()
      await bench.pause(300)
      await bench.revive(producer)
    },
  },
  {
    name: 'SIGKILL of the processes that deliver, one after the other',
    bench: ONLY_TRANSFERRERS,
    async fault(bench) {
      for (const transferrer of bench.workers.transferrer) {
        await bench.pause(0, 500)
        await transferrer.kill()
      }
      await bench.pause(300)
      await Promise.all(bench.workers.transferrer.map((transferrer) => bench.revive(transferrer)))
    },
  },
  {
    name: 'SIGKILL of a consumer',
    allowed: { lost: TAKES },
    async fault(bench) {
      const consumer = bench.one('consumer')
      await bench.pause(0, 500)
      await consumer.kill()
      await bench.pause(300)
      await bench.revive(consumer)
    },
  },
  {
    name: 'SIGSTOP of the one process that delivers, for longer than the sweep',
    bench: { ...ONLY_TRANSFERRERS, fleet: { transferrer: 1 } },
    async fault(bench) {
      const transferrer = bench.one('transferrer')
      await bench.pause(0, 500)
      transferrer.signal('SIGSTOP')
      await bench.pause(2 * SWEEP_MS)
      transferrer.signal('SIGCONT')
    },
  },
  {
    name: 'SIGSTOP of a consumer and of a producer',
    async fault(bench) {
      const stopped = [bench.one('consumer'), bench.one('producer')]
      for (const worker of stopped) worker.signal('SIGSTOP')
      await bench.pause(2 * SWEEP_MS)
      for (const worker of stopped) worker.signal('SIGCONT')
    },
  },
  {
    name: 'event loops blocked for 3 s',
    async fault(bench) {
      await Promise.all(bench.all.map((worker) => worker.order({ kind: 'block', ms: 3_000 })))
    },
  },
  {
    name: "the processes' date jumps an hour back and an hour forth",
    async fault(bench) {
      for (const shiftMs of [-HOUR_MS, HOUR_MS, 0]) {
        await Promise.all(bench.all.map((worker) => worker.order({ kind: 'date', shiftMs })))
        await bench.pause(700)
      }
    },
  },
]
