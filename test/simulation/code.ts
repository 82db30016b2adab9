import type { RemoteClock } from '../../src/timing/remote-clock.js'
import type { Sweeper } from '../../src/scheduler/sweeper.js'
import type { TransferTask } from '../../src/scheduler/transfer-task.js'

/** What is simulated: the real classes, or broken copies of them. */
export interface Code {
  readonly TransferTask: typeof TransferTask
  readonly RemoteClock: typeof RemoteClock
  readonly Sweeper: typeof Sweeper
}

/** Loads the classes from a copy of `src`. */
export async function loadCode(src: URL): Promise<Code> {
  const [task, remote, sweeper] = (await Promise.all(
    ['scheduler/transfer-task.ts', 'timing/remote-clock.ts', 'scheduler/sweeper.ts'].map(
      (path) => import(new URL(path, src).href) as Promise<unknown>,
    ),
  )) as [Pick<Code, 'TransferTask'>, Pick<Code, 'RemoteClock'>, Pick<Code, 'Sweeper'>]
  return { ...task, ...remote, ...sweeper }
}
