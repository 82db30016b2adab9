/** What a queue costs the process that uses it. */
import { readFileSync } from 'node:fs'
import { PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { roundsOf, type Bench, type Figures, type Scenario } from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { asynq } from '../subjects/asynq.js'
import { beeQueue } from '../subjects/bee-queue.js'
import { bullmq } from '../subjects/bullmq.js'
import { plainRedis } from '../subjects/plain-redis.js'
import { redelayed } from '../subjects/redelayed.js'
import { redisson } from '../subjects/redisson.js'
import { reliable } from '../subjects/reliable.js'
import type { Session, Subject } from '../subjects/subject.js'
import { consumersOf } from './burst.js'

const SUBJECTS = [redelayed('compact'), redisson, plainRedis, reliable, bullmq, beeQueue, asynq]
const SAMPLE_MS = 10
/** The kernel counts a process's time in these, on every Linux of today. */
const TICK_MS = 10

/** Collects the garbage of what ran before, so that the subject does not pay for it. */
const collectGarbage: () => void = (() => {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
})()

const heapBytes = (): number => getHeapStatistics().used_heap_size

/** Of a process of its own only its CPU time is known, and only on Linux. */
function cpuOfProcess(pid: number): number {
  try {
    const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ') // the name before may hold anything
    const fields = rest.split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  } catch {
    return NaN
  }
}

/** What an action costs, by 1,000 messages. */
async function spent(what: string, session: Session, count: number, action: () => Promise<unknown>): Promise<Figures> {
  const by = count / 1_000
  const { pid } = session
  if (pid !== undefined) {
    const before = cpuOfProcess(pid)
    await action()
    return { [`${what}: CPU ms`]: (cpuOfProcess(pid) - before) / by }
  }
  collectGarbage()
  const pauses: number[] = []
  const observer = new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => pauses.push(duration)))
  const heap = heapBytes()
  let peak = heap
  const sampling = setInterval(() => (peak = Math.max(peak, heapBytes())), SAMPLE_MS)
  observer.observe({ entryTypes: ['gc'] })
  const cpu = process.cpuUsage()
  await action()
  const { user, system } = process.cpuUsage(cpu)
  clearInterval(sampling)
  await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS)) // the observer hears of the last pauses in a later turn
  observer.disconnect()
  return {
    [`${what}: CPU ms`]: (user + system) / 1_000 / by,
    [`${what}: GC pauses ms`]: pauses.reduce((a, b) => a + b, 0) / by,
    [`${what}: longest GC pause ms`]: Math.max(0, ...pauses),
    [`${what}: heap at most MB more`]: (Math.max(peak, heapBytes()) - heap) / 2 ** 20,
  }
}

async function measure(bench: Bench, subject: Subject): Promise<Figures> {
  return onStage(bench, {}, async (stage) => {
    const count = bench.quick ? 10_000 : 50_000
    const session = await stage.open(subject)
    await session.ready()
    const adding = await spent('added', session, count, () => session.add(count, 'bulk'))
    await session.load(count)
    const taking = await spent('taken', session, count, () => session.take(count, consumersOf(subject)))
    return { ...adding, ...taking }
  })
}

export const clientCosts: Scenario = {
  name: 'client-costs',
  description:
    'What 1,000 messages cost the process that adds them in bulk, and the one that takes them, of 50,000: CPU, pauses of the garbage collector, and by how much its heap grew at most. With what the benchmark itself needs to make and note each message. Of subjects in another language only the CPU is known, with what their virtual machine spends on compiling.',
  run: async (bench) => ({
    rows: await roundsOf(bench, SUBJECTS, (subject) => measure(bench, subject)),
    plot: { bars: 'taken: CPU ms', unit: 'CPU ms of the client for 1,000 messages that are taken' },
  }),
}
