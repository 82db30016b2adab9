import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** The address of the Redis. */
export interface RedisAddress {
  readonly url: string
  readonly isCluster: boolean
}

const MOST_MS = 60_000
const MIB = 1_048_576
/** The most bytes of a printed document: this process parses it, so the one that readers can request often is small. */
const mostBytesOf = (command: string): number => (command === 'peek' ? 8 : 64) * MIB
/** The most characters of a command's usage error that the client gets. */
const MOST_MESSAGE = 500
const WRONG_USAGE = 2
/** The most processes at once, and the most commands that run or wait for one. */
const [LANES, MOST] = [2, 32]

/** A command failed or refused its arguments. The message is for the client of the API. */
export class CommandFailed extends Error {
  override name = 'CommandFailed'
  readonly isUsage: boolean

  constructor(message: string, isUsage = false) {
    super(message)
    this.isUsage = isUsage
  }
}

/**
 * Runs read-only commands of the library's command line, such as `doctor` and `peek`, and parses the document that they print. Each runs in
 * a process of its own, so that a large answer or a scan delays no request.
 */
export class LibraryCommand {
  readonly #redis: () => Promise<RedisAddress>
  readonly #stop = new AbortController()
  readonly #running = new Set<Promise<unknown>>()
  readonly #lanes: Promise<unknown>[] = []
  #count = 0

  readonly #program: string

  /**
   * @param redis is asked for each command, because a failover changes the address
   * @param program the command line of the library
   */
  constructor(redis: () => Promise<RedisAddress>, program = installedProgram()) {
    this.#redis = redis
    this.#program = program
  }

  /** @param words names of queues, which may begin with any character @throws CommandFailed */
  async run(command: string, options: readonly string[] = [], words: readonly string[] = []): Promise<unknown> {
    const own = [...options, ...(words.length === 0 ? [] : ['--', ...words])]
    if (own.some((arg) => arg.includes('\0'))) throw new CommandFailed('an argument cannot contain NUL', true)
    if (this.#running.size >= MOST) throw new CommandFailed('too many readers look at this Redis; try again later')
    const lane = this.#count++ % LANES
    const running = (this.#lanes[lane] ?? Promise.resolve()).then(() => this.#execute(command, own))
    const end = running.catch(() => undefined)
    this.#running.add(end)
    this.#lanes[lane] = end
    return running.finally(() => this.#running.delete(end))
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
  }

  async #execute(command: string, own: readonly string[]): Promise<unknown> {
    const { url, isCluster } = await this.#redis().catch(() => {
      throw new CommandFailed('no sentinel can be reached that knows the master of Redis')
    })
    const args = [this.#program, command, '--json', ...(isCluster ? ['--cluster'] : []), ...own]
    return new Promise((resolve, reject) => {
      // the URL goes into the environment: all users of the machine can see arguments
      const env = { ...process.env, REDIS_URL: url }
      const limits = { timeout: MOST_MS, maxBuffer: mostBytesOf(command), signal: this.#stop.signal }
      execFile(process.execPath, args, { env, ...limits }, (error, stdout, stderr) => {
        // a negative result, such as findings, has the exit code 1
        const document = error?.code === TOO_MUCH ? undefined : parsed(stdout)
        if (document === undefined) reject(failureOf(error, stderr))
        else resolve(document)
      })
    })
  }
}

function installedProgram(): string {
  return join(dirname(createRequire(import.meta.url).resolve('redelayed/package.json')), 'dist/cli/main.js')
}

/** `undefined` for an incomplete document: a killed process prints only its first part. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const TOO_MUCH = 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'

function failureOf(error: (Error & { code?: unknown; killed?: boolean }) | null, stderr: string): CommandFailed {
  if (error?.code === TOO_MUCH) return new CommandFailed('the result is too large; request less')
  if (error?.killed === true) return new CommandFailed('the command took too long')
  if (error?.code !== WRONG_USAGE) return new CommandFailed('the command could not examine this Redis')
  const [message] = /(?<="message":)"(?:[^"\\]|\\.)*"/.exec(stderr) ?? []
  const text = parsed(message ?? '')
  return new CommandFailed(typeof text === 'string' ? text.slice(0, MOST_MESSAGE) : 'the arguments are invalid', true)
}
