import { build } from 'hdr-histogram-js'
import { atMost, medianOf, rounds, type Bench, type Scenario } from '../lib/scenario.js'
import { longestScript } from '../lib/server-work.js'
import { onStage } from '../lib/stage.js'
import { redelayed } from '../subjects/redelayed.js'

const PER_SECOND = 1_000

async function measure(bench: Bench): Promise<Record<string, number>> {
  return onStage(bench, {}, async (stage) => {
    const pending = bench.quick ? 200_000 : 10_000_000
    const seconds = bench.quick ? 3 : 30
    const session = await stage.open(redelayed('compact'))
    const filling = performance.now()
    const portion = pending / 20
    for (let done = 0; done < pending; done += portion) {
      bench.progress(`${(done / 1e6).toFixed(1)} million pending`)
      await session.fill(portion)
    }
    const filled = (performance.now() - filling) / 1000
    await session.ready()
    globalThis.gc?.()
    const heap = process.memoryUsage().heapUsed
    const count = PER_SECOND * seconds
    const taking = session.take(count, { consumers: 50, batch: 1 })
    const start = Date.now() + 3_000
    const dues = await session.schedule(
      Array.from({ length: count }, () => start + Math.floor(Math.random() * seconds * 1_000)),
    )
    await stage.raw.slowlog('RESET')
    const taken = await taking
    const histogram = build({ lowestDiscernibleValue: 1, highestTrackableValue: 3_600_000 })
    taken.indexes.forEach((index, place) => {
      histogram.recordValue(Math.max(0, (taken.at[place] ?? NaN) - (dues[index] ?? NaN)))
    })
    globalThis.gc?.()
    const memory = Number(/^used_memory:(\d+)/m.exec(await stage.raw.info('memory'))?.[1])
    return {
      'p50 ms': histogram.getValueAtPercentile(50),
      'p99 ms': histogram.getValueAtPercentile(99),
      'max ms': histogram.maxValue,
      'added/s': pending / filled,
      'server GB': memory / 1e9,
      'client heap MB more': (process.memoryUsage().heapUsed - heap) / 2 ** 20,
      'longest script ms': await longestScript(stage.raw),
    }
  })
}

export const tenMillion: Scenario = {
  name: 'ten-million',
  promise: 'at most once',
  description: "1,000 messages a second with `layout: 'compact'` while 10,000,000 others are due in one to two hours.",
  async run(bench) {
    const rows = await rounds(bench, { [redelayed('compact').name]: () => measure(bench) })
    return { rows, goals: [atMost('p99', medianOf(rows, redelayed('compact').name, 'p99 ms'), 10, 'ms')] }
  },
}
