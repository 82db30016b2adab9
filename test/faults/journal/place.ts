import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ClientOptions } from '../../../src/index.js'
import { eventually } from '../../support/events.js'
import { sentinel, standalone, type ReplicatedStage, type StandaloneStage } from '../bench/stage.js'
import { COMMAND_TIMEOUT_MS } from './protocol.js'

/** The connections of the bench's processes have names that begin with this. */
export const PREFIX = 'journal-faults'

const TUNING: ClientOptions = {
  sweepInterval: 1_000,
  pingInterval: 1_000,
  commandTimeout: COMMAND_TIMEOUT_MS,
  connectTimeout: 2_000,
}
const SHIM = fileURLToPath(new URL('../clock-shim.c', import.meta.url))
/** The file is written in each round of the event loop and synced each second; it is rewritten only when the bench says so. */
const APPENDING = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--auto-aof-rewrite-percentage', '0']

/** One Redis that writes its changes into a file. Its date can be another than that of the machine. */
export class SinglePlace {
  readonly client: ClientOptions
  readonly #stage: StandaloneStage
  readonly #clock: Clock | undefined
  #shiftMs: number

  private constructor(stage: StandaloneStage, clock: Clock | undefined, shiftMs: number) {
    this.#stage = stage
    this.#clock = clock
    this.#shiftMs = shiftMs
    this.client = { ...TUNING, host: '127.0.0.1', port: stage.server.port }
  }

  static async start(shiftMs: number): Promise<SinglePlace> {
    const clock = Clock.make()
    clock?.set(shiftMs)
    return new SinglePlace(await standalone({ args: APPENDING, env: clock?.env ?? {} }), clock, shiftMs)
  }

  /** Sets the date of Redis, later or a little earlier than it was. */
  moveDate(byMs: number): void {
    this.#shiftMs += byMs
    this.#clock?.set(this.#shiftMs)
  }

  healthy(): Promise<void> {
    return this.#stage.healthy()
  }

  async now(): Promise<number> {
    const [seconds, micros] = await (await this.#stage.raw('')).time()
    return Number(seconds) * 1_000 + Number(micros) / 1_000
  }

  async stop(): Promise<void> {
    await this.#stage.stop()
    this.#clock?.remove()
  }

  kill(): Promise<void> {
    return this.#stage.server.kill('SIGKILL')
  }

  /** From now on Redis answers only after it has written to the file: otherwise the write can come two seconds later during a sync. */
  async writeAtOnce(): Promise<void> {
    await (await this.#stage.raw('')).config('SET', 'appendfsync', 'always')
  }

  /** Restarts Redis with all of its writes. */
  async restart(): Promise<void> {
    await this.#stage.server.restart(APPENDING)
    await this.healthy()
  }

  async restartEmpty(): Promise<void> {
    this.#forget()
    await this.restart()
  }

  /** Keeps what Redis has now. */
  async takeSnapshot(): Promise<void> {
    const redis = await this.#stage.raw('')
    await redis.call('SAVE')
    const [, name = ''] = await redis.config('GET', 'dbfilename')
    copyFileSync(this.#path(name), this.#path('snapshot'))
  }

  async restartFromSnapshot(): Promise<void> {
    this.#forget()
    copyFileSync(this.#path('snapshot'), this.#path('old.rdb'))
    // with the append-only file on it would not read the snapshot
    await this.#stage.server.restart([
      '--appendonly',
      'no',
      '--dbfilename',
      'old.rdb',
      '--auto-aof-rewrite-percentage',
      '0',
    ])
    await this.healthy()
    await this.#append()
  }

  /** The size of the append-only file. */
  size(): number {
    return statSync(this.#increment).size
  }

  /**
   * Restarts Redis without the bytes after `size`, which were never synced, and has it rewrite the file, as docs/durability.md advises: otherwise it would carry out
   * the first half of a script that was cut in two when it restarts the next time.
   */
  async restartCut(size: number): Promise<void> {
    truncateSync(this.#increment, size)
    await this.restart()
    await (await this.#stage.raw('')).call('BGREWRITEAOF')
    await this.#isRewritten()
  }

  get #increment(): string {
    const dir = this.#path('appendonlydir')
    const number = (name: string): number => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? -1)
    const [last] = readdirSync(dir).sort((a, b) => number(b) - number(a))
    if (last === undefined || number(last) < 0) throw new Error('there is no append-only file')
    return join(dir, last)
  }

  async #append(): Promise<void> {
    await (await this.#stage.raw('')).config('SET', 'appendonly', 'yes')
    await this.#isRewritten()
  }

  async #isRewritten(): Promise<void> {
    const redis = await this.#stage.raw('')
    await eventually(async () => {
      const info = await redis.info('persistence')
      if (!/aof_enabled:1/.test(info) || /aof_rewrite_(in_progress|scheduled):1/.test(info)) throw new Error(info)
    }, 20_000)
  }

  #forget(): void {
    for (const name of ['appendonlydir', 'dump.rdb', 'old.rdb']) {
      if (existsSync(this.#path(name))) rmSync(this.#path(name), { recursive: true })
    }
  }

  #path(name: string): string {
    return join(this.#stage.server.dir, name)
  }
}

/** A master, two replicas and three sentinels. */
export class SentinelPlace {
  readonly client: ClientOptions
  readonly stage: ReplicatedStage

  private constructor(stage: ReplicatedStage) {
    this.stage = stage
    this.client = { ...TUNING, ...stage.client }
  }

  static async start(): Promise<SentinelPlace> {
    const stage = await sentinel()
    await stage.healthy()
    await Promise.all(stage.servers.map(({ port }) => stage.to(port)))
    return new SentinelPlace(stage)
  }

  /** The connections of the bench's processes to a server. */
  async connectionsAt(port: number): Promise<string[]> {
    const redis = await this.stage.to(port)
    return String(await redis.client('LIST'))
      .split('\n')
      .filter((line) => line.includes(` name=${PREFIX}`))
  }

  healthy(): Promise<void> {
    return this.stage.healthy()
  }

  /** Its servers have the date of the machine. */
  async now(): Promise<number> {
    return Date.now()
  }

  stop(): Promise<void> {
    return this.stage.stop()
  }
}

export type Place = SinglePlace | SentinelPlace

/** Shifts the date of a server that is started with its environment. */
class Clock {
  readonly env: NodeJS.ProcessEnv
  readonly #dir: string
  readonly #file: number

  private constructor(dir: string, shim: string) {
    const path = join(dir, 'shift')
    this.#dir = dir
    this.#file = openSync(path, 'w')
    this.env = { LD_PRELOAD: shim, REDELAYED_CLOCK: path }
  }

  /** `undefined` without a C compiler. */
  static make(): Clock | undefined {
    const dir = mkdtempSync(join(tmpdir(), 'redelayed-clock-'))
    const shim = join(dir, 'clock-shim.so')
    const { status } = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-o', shim, SHIM])
    if (status === 0) return new Clock(dir, shim)
    rmSync(dir, { recursive: true })
    return undefined
  }

  set(shiftMs: number): void {
    const bytes = Buffer.alloc(8)
    bytes.writeBigInt64LE(BigInt(Math.round(shiftMs)) * 1_000n)
    writeSync(this.#file, bytes, 0, 8, 0)
  }

  remove(): void {
    closeSync(this.#file)
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
