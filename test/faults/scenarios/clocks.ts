import { expect } from 'chai'
import { eventually } from '../../support/events.js'
import type { ShiftedStage } from '../bench/clock.js'
import type { Scenario } from './scenario.js'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The share of one core for a client that only sweeps once a second for months. */
const IDLE_CPU = 0.2

/** These faults set the date of Redis, because it is the one that counts. */
export const redisJumps: Scenario<ShiftedStage> = {
  name: "Redis's date jumps an hour back, and then two hours forth",
  async fault(bench, stage) {
    for (const shiftMs of [-HOUR_MS, 0, HOUR_MS]) {
      stage.setDate(bench, shiftMs)
      await bench.pause(1_000)
    }
  },
}

export const longDelays: Scenario<ShiftedStage> = {
  name: 'messages due in 30 and in 60 days: no client spins, and each comes when its day does',
  async fault(bench, stage) {
    const [producer] = bench.workers.producer
    await bench.produce(false)
    for (const days of [30, 60]) await producer?.order({ kind: 'burst', count: 100, delay: days * DAY_MS })
    const taken = (): number => bench.books().check(Date.now(), bench.clock).delivered
    await eventually(
      async () =>
        expect(await (await bench.raw()).zcount(bench.keys.timeouts, '-inf', Date.now() + 60_000)).to.equal(0),
      5_000,
      50,
    )

    const cpu = async (): Promise<number> => {
      const reports = await Promise.all(bench.workers.transferrer.map((worker) => worker.report()))
      return reports.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
    }
    const [cpuBefore, since] = [await cpu(), performance.now()]
    await bench.pause(2_000)
    const share = ((await cpu()) - cpuBefore) / (performance.now() - since) / bench.workers.transferrer.length
    expect(share, 'share of a core that a waiting client takes').to.be.below(IDLE_CPU)

    const before = taken()
    stage.setDate(bench, 30 * DAY_MS - HOUR_MS / 2)
    await bench.pause(1_500)
    expect(taken() - before, 'half an hour before the 30 days are over').to.be.below(100) // those due in an hour are due now
    stage.setDate(bench, 30 * DAY_MS)
    await eventually(() => expect(taken() - before).to.be.at.least(100), 5_000, 50)
    stage.setDate(bench, 60 * DAY_MS)
    await bench.produce(true)
  },
}
