// What builds of the service leave in src/server when they are killed: `dist.PID` and `dist.PID.old`.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Removes those of processes that are gone. */
export function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const [, pid] = /^dist\.(\d+)(\.old)?$/.exec(name) ?? []
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(folder, name), { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // a process of another user
  }
}
