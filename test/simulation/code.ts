import type { RemoteClock } from '../../src/timing/remote-clock.js'
import type { Sweeper } from '../../src/scheduler/sweeper.js'
import type { DueScheduler } from '../../src/scheduler/due-scheduler.js'

/** What is simulated: the real classes, or broken copies of them. */
export interface Code {
  readonly DueScheduler: typeof DueScheduler
  readonly RemoteClock: typeof RemoteClock
  readonly Sweeper: typeof Sweeper
}

/** Loads the classes from a copy of `src`. */
export async function loadCode(src: URL): Promise<Code> {
  const [scheduler, remote, sweeper] = (await Promise.all(
    ['scheduler/due-scheduler.ts', 'timing/remote-clock.ts', 'scheduler/sweeper.ts'].map(
      (path) => import(new URL(path, src).href) as Promise<unknown>,
    ),
  )) as [Pick<Code, 'DueScheduler'>, Pick<Code, 'RemoteClock'>, Pick<Code, 'Sweeper'>]
  return { ...scheduler, ...remote, ...sweeper }
}
