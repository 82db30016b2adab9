import {
  atLeast,
  atMost,
  quotients,
  rounds,
  valuesOf,
  type Bench,
  type Figures,
  type Scenario,
} from '../lib/scenario.js'
import { onStage } from '../lib/stage.js'
import { clientOf, redelayed } from '../subjects/redelayed.js'
import { HOUR_MS } from '../subjects/subject.js'

const [compact, wheel] = [redelayed('compact'), redelayed('wheel')]
const VALUE = 'x'.repeat(98) // 100 bytes with its header
const BULK = 5_000
const CANCELS_IN_FLIGHT = 64

async function measure(bench: Bench, layout: 'compact' | 'wheel'): Promise<Figures> {
  const args = ['--slowlog-log-slower-than', '-1'] // what it keeps would count
  return onStage(bench, { args }, async ({ url, raw }) => {
    const count = bench.quick ? 20_000 : 500_000
    await using client = clientOf({ url, queue: 'layouts', payloadBytes: 100 })
    const delayed = client.getDelayedQueue(client.getQueue<string>('layouts'), { layout, deliver: false })
    const offer = (many: number): Promise<string[]> =>
      delayed.offerAll(
        Array.from({ length: many }, () => ({ value: VALUE, delay: HOUR_MS + Math.floor(Math.random() * HOUR_MS) })),
      )
    const used = async (): Promise<number> => Number(/^used_memory_dataset:(\d+)/m.exec(await raw.info('memory'))?.[1])
    await offer(BULK) // scripts and the like are there once
    const before = await used()
    const tickets: string[] = []
    const offering = performance.now()
    for (let made = 0; made < count; made += BULK) tickets.push(...(await offer(BULK)))
    const offered = performance.now() - offering
    const bytes = ((await used()) - before) / count
    const cancelling = performance.now()
    const cancelled = Math.min(tickets.length, bench.quick ? 5_000 : 50_000)
    let next = 0
    await Promise.all(
      Array.from({ length: CANCELS_IN_FLIGHT }, async () => {
        while (next < cancelled) await delayed.cancel(tickets[next++] ?? '')
      }),
    )
    return {
      'offers/s': (count / offered) * 1_000,
      'bytes per message': bytes,
      'cancels/s': (cancelled / (performance.now() - cancelling)) * 1_000,
    }
  })
}

export const layouts: Scenario = {
  name: 'layouts',
  promise: 'at most once',
  description: `Messages of 100 bytes that are due in one to two hours, in random order: offered ${BULK} a call, and cancelled ${CANCELS_IN_FLIGHT} at a time.`,
  async run(bench) {
    const rows = await rounds(bench, {
      [compact.name]: () => measure(bench, 'compact'),
      [wheel.name]: () => measure(bench, 'wheel'),
    })
    return {
      rows,
      goals: [
        atMost("layout 'wheel', bytes per message", valuesOf(rows, wheel.name, 'bytes per message'), 130, 'bytes'),
        atLeast("offers with 'wheel' over those with 'compact'", quotients(rows, 'offers/s', wheel, compact), 1.5, ''),
        atLeast(
          "cancels with 'wheel' over those with 'compact'",
          quotients(rows, 'cancels/s', wheel, compact),
          0.33,
          '',
        ),
      ],
    }
  },
}
