/**
 * A subject in another language: a program that reads one JSON request per line and answers each with one JSON line.
 *   {"id":1,"do":"open","url":...,"queue":...,"payloadBytes":...,"clients":...,"ca":...}
 *   {"id":2,"do":"schedule","dues":[...]}          {"id":3,"do":"load","count":...,"inFlight":...}
 *   {"id":4,"do":"add","count":...,"inFlight":...}  answered with {"id":4,"seconds":...}
 *   {"id":5,"do":"take","count":...,"consumers":...,"batch":...,"handler":...}  answered with {"id":5,"indexes":[...],"at":[...]}
 *   {"id":8,"do":"produce","dues":[...]}           one message at each of these moments
 *   {"id":6,"do":"ready"}                          {"id":7,"do":"fill","count":...}  unless that is done in another way
 * "inFlight" is how many single calls are under way at a time, "at" is in microseconds of the epoch.
 * An answer with "error" is a failure. The program ends when its input does.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { IN_FLIGHT, type AddMode, type Session, type SessionOptions, type TakeOptions, type Taken } from './subject.js'

type Answer = Record<string, unknown>

interface Pending {
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}

export class ExternalSession implements Session {
  readonly #child: ChildProcess
  readonly #pending = new Map<number, Pending>()
  readonly #bulk: number
  readonly #fillWith: ((count: number) => Promise<void>) | undefined
  #id = 0

  private constructor(child: ChildProcess, bulk: number, fillWith: ((count: number) => Promise<void>) | undefined) {
    this.#child = child
    this.#bulk = bulk
    this.#fillWith = fillWith
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => this.#onLine(line))
    child.once('exit', (code) => {
      for (const { reject } of this.#pending.values()) reject(new Error(`the program ended with ${String(code)}`))
    })
  }

  /**
   * `bulk` is how many calls are under way where many are added; `fillWith` brings far-away messages into its queue by a faster way than
   * its own.
   */
  static async open(
    command: readonly [string, ...string[]],
    options: SessionOptions,
    bulk: number,
    fillWith?: (count: number) => Promise<void>,
  ): Promise<ExternalSession> {
    const [program, ...args] = command
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
    const session = new ExternalSession(child, options.bulk?.inFlight ?? bulk, fillWith)
    await session.#ask('open', { ...options })
    return session
  }

  async schedule(dues: readonly number[]): Promise<readonly number[]> {
    await this.#ask('schedule', { dues, inFlight: this.#bulk })
    return dues
  }

  async fill(count: number): Promise<void> {
    if (this.#fillWith === undefined) await this.#ask('fill', { count, inFlight: this.#bulk })
    else await this.#fillWith(count)
  }

  async load(count: number, singles = this.#bulk): Promise<void> {
    await this.#ask('load', { count, inFlight: singles })
  }

  async produce(at: readonly number[]): Promise<void> {
    await this.#ask('produce', { dues: at })
  }

  async add(count: number, mode: AddMode): Promise<number> {
    const inFlight = mode === 'bulk' ? this.#bulk : IN_FLIGHT[mode]
    return (await this.#ask('add', { count, inFlight })).seconds as number
  }

  async ready(): Promise<void> {
    await this.#ask('ready', {})
  }

  async take(count: number, options: TakeOptions): Promise<Taken> {
    const { indexes, at } = await this.#ask('take', { count, ...options })
    return { indexes: indexes as number[], at: (at as number[]).map((micros) => micros / 1_000) }
  }

  get pid(): number {
    return this.#child.pid ?? NaN
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exited = new Promise((resolve) => this.#child.once('exit', resolve))
    const lastResort = setTimeout(() => this.#child.kill('SIGKILL'), 5_000)
    this.#child.stdin?.end()
    await exited
    clearTimeout(lastResort)
  }

  #ask(what: string, request: Record<string, unknown>): Promise<Answer> {
    const id = ++this.#id
    const answered = new Promise<Answer>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#child.stdin?.write(`${JSON.stringify({ id, do: what, ...request })}\n`)
    })
    answered.catch(() => undefined) // a take that is not waited for any more ends with the program
    return answered
  }

  #onLine(line: string): void {
    const answer = JSON.parse(line) as Answer
    const pending = this.#pending.get(answer.id as number)
    this.#pending.delete(answer.id as number)
    if (typeof answer.error === 'string') pending?.reject(new Error(answer.error))
    else pending?.resolve(answer)
  }
}
