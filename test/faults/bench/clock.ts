import { spawnSync } from 'node:child_process'
import { mkdtempSync, openSync, rmSync, writeSync, closeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Bench } from './bench.js'
import { standalone, type StandaloneStage } from './stage.js'

const SOURCE = fileURLToPath(new URL('../clock-shim.c', import.meta.url))

export interface ShiftedStage extends StandaloneStage {
  /** Sets the server's date, as seen by scripts too, this far from the real one; the books learn of it. */
  setDate(bench: Bench, shiftMs: number): void
}

/** A server whose date can be set; needs a C compiler. */
export async function withDate(): Promise<ShiftedStage> {
  const dir = mkdtempSync(join(tmpdir(), 'redelayed-clock-'))
  const shim = join(dir, 'clock-shim.so')
  const built = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', shim, SOURCE], { encoding: 'utf8' })
  if (built.status !== 0)
    throw new Error(`the faults of Redis's date need a C compiler: ${built.stderr ?? String(built.error)}`)
  const file = join(dir, 'shift')
  const descriptor = openSync(file, 'w')
  const write = (shiftMs: number): void => {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(shiftMs) * 1_000n)
    writeSync(descriptor, bytes, 0, 8, 0)
  }
  write(0)
  const stage = await standalone({ env: { LD_PRELOAD: shim, REDELAYED_CLOCK: file } })
  return {
    ...stage,
    name: 'a server whose date is set',
    setDate(bench, shiftMs) {
      bench.clock.push({ at: Date.now(), shiftMs })
      write(shiftMs)
    },
    async stop() {
      await stage.stop()
      closeSync(descriptor)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
