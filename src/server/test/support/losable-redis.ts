import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startRedis, type RedisServer } from '../../../../test/support/redis-server.js'

/** A server that only one test uses, which can be killed and lose its data, or get earlier data back. */
export class LosableRedis {
  readonly #server: RedisServer
  readonly #saved = new Map<string, string>()

  static async start(args: string[] = []): Promise<LosableRedis> {
    return new LosableRedis(await startRedis({ args }))
  }

  private constructor(server: RedisServer) {
    this.#server = server
  }

  get url(): string {
    return this.#server.url
  }

  kill(): Promise<void> {
    return this.#server.kill('SIGKILL')
  }

  /** Starts the server that was killed, with the data that it has written. */
  startAgain(): Promise<void> {
    return this.#server.restart()
  }

  /** Starts the server that was killed, without its data. */
  async startEmpty(): Promise<void> {
    this.#clear()
    await this.#server.restart()
  }

  /** Saves the current files; the caller has made the server write them. */
  keepFiles(name: string): void {
    const to = join(this.#server.dir, '..', `${name}-${process.pid}-${this.#server.port}`)
    cpSync(this.#server.dir, to, { recursive: true })
    this.#saved.set(name, to)
  }

  /** Starts the killed server with the saved files. */
  async startWith(name: string): Promise<void> {
    this.#clear()
    cpSync(this.#saved.get(name) ?? '', this.#server.dir, { recursive: true })
    await this.#server.restart()
  }

  async stop(): Promise<void> {
    await this.#server.stop()
    for (const path of this.#saved.values()) rmSync(path, { recursive: true, force: true })
  }

  #clear(): void {
    for (const name of readdirSync(this.#server.dir)) rmSync(join(this.#server.dir, name), { recursive: true })
  }
}
