import type { RemoteClock } from '../../src/timing/remote-clock.js'
import type { Sweeper } from '../../src/scheduler/sweeper.js'
import type { DueScheduler } from '../../src/scheduler/due-scheduler.js'
import { load, type Fault } from './plant.js'

/** The simulated classes: the real ones, or those of a copy with a fault. */
export interface Code {
  readonly DueScheduler: typeof DueScheduler
  readonly RemoteClock: typeof RemoteClock
  readonly Sweeper: typeof Sweeper
}

export async function loadCode(fault?: Fault): Promise<Code> {
  const files = ['scheduler/due-scheduler.ts', 'timing/remote-clock.ts', 'scheduler/sweeper.ts']
  return (await load(files, fault)) as Code
}
