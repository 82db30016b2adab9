// A port that a process has chosen stays its own until the process ends, also while a server of a test is down: another test process could otherwise
// choose the port before the server is started again.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const DIR = join(tmpdir(), 'redelayed-ports')
const own = new Set<string>()

/** Whether this process has the port now, because no living process has reserved it. */
export function reservePort(port: number): boolean {
  const path = join(DIR, `${port}`)
  for (;;) {
    try {
      mkdirSync(DIR, { recursive: true })
      writeFileSync(path, `${process.pid}`, { flag: 'wx' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return true // no process can reserve here
      if (isReserved(path)) return false
      rmSync(path, { force: true })
      continue
    }
    if (own.size === 0) process.once('exit', releaseAll)
    own.add(path)
    return true
  }
}

function isReserved(path: string): boolean {
  try {
    const pid = Number(readFileSync(path, 'utf8'))
    if (pid === 0) return true // it is being written
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // of another user
  }
}

function releaseAll(): void {
  for (const path of own) rmSync(path, { force: true })
}
