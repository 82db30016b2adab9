import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CHUNK = Buffer.alloc(64 * 1024)

/** A file system in memory of a fixed size, so that it can be full. Only root can have one. */
export class Quota {
  readonly path: string
  readonly #unmount = (): void => void spawnSync('umount', ['-l', this.path])

  private constructor(path: string) {
    this.path = path
    process.once('exit', this.#unmount)
  }

  /** `undefined` where this process may not mount it. */
  static make(name: string, mebibytes: number): Quota | undefined {
    if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
    const path = mkdtempSync(join(tmpdir(), `journal-${name}-`))
    const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0777`, 'tmpfs', path])
    if (status === 0) return new Quota(path)
    rmSync(path, { recursive: true })
    return undefined
  }

  /** Takes all room there is, until `relieve`. */
  fill(): void {
    const file = openSync(this.#ballast, 'a')
    try {
      for (let size = CHUNK.length; size >= 1;) {
        try {
          writeSync(file, CHUNK, 0, size)
        } catch {
          size = size === 1 ? 0 : Math.ceil(size / 16)
        }
      }
    } finally {
      closeSync(file)
    }
  }

  relieve(): void {
    rmSync(this.#ballast, { force: true })
  }

  remove(): void {
    process.removeListener('exit', this.#unmount)
    this.#unmount()
    rmSync(this.path, { recursive: true, force: true })
  }

  get #ballast(): string {
    return join(this.path, 'ballast')
  }
}
