import { createHash } from 'node:crypto'
import { compile } from './lua-compiler.js'
import { LIBRARY, LuaError, LuaTable, toText, type LuaValue } from './lua-runtime.js'
import { OK, RedisError, Status, Store, endOf, manyPop, type Observer, type Reply } from './store.js'

/** The environment of the server. */
export interface ServerWorld {
  /** Epoch milliseconds, with fractions. */
  now(): number
  /** Runs something later; what is returned calls it off. */
  after(ms: number, run: () => void): () => void
  /** Whether this published message reaches that subscriber. */
  passes?(session: Session): boolean
  onCommand?(session: Session | undefined, command: string, args: readonly string[]): void
}

/** The server's end of a connection. */
export interface Peer {
  send(bytes: string): void
  /** The server closes it. */
  close(): void
}

interface Blocked {
  readonly keys: readonly string[]
  /** Takes elements of a key; `undefined` if there are none. */
  readonly serve: (key: string) => Reply | undefined
  readonly nothing: Reply
  readonly forget: () => void
}

const SCRIPTS = new Map<string, ReturnType<typeof compile>>()
const UNBLOCKED = 'UNBLOCKED client unblocked via CLIENT UNBLOCK'

/** A Redis of one process and one thread: what our clients send it, with the scripts they send. */
export class Server {
  readonly store: Store
  readonly world: ServerWorld
  readonly sessions = new Map<number, Session>()
  /** In the order in which they began to wait. */
  readonly blocked = new Map<Session, Blocked>()
  /** Hashes of the scripts that are known since the last start. */
  #known = new Set<string>()
  #ids = 0
  #starts = 0
  /** Commands it does not know: the simulation has to learn them. */
  readonly unknown = new Set<string>()

  constructor(world: ServerWorld, observer: Observer = {}) {
    this.world = world
    this.store = new Store(() => world.now(), observer)
  }

  accept(peer: Peer): Session {
    const session = new Session(this, ++this.#ids, peer)
    this.sessions.set(session.id, session)
    return session
  }

  /** All connections end, scripts are forgotten, the data stays. */
  restart(): void {
    for (const session of this.sessions.values()) session.end()
    this.#starts++
    this.#ids = 0
    this.#known = new Set()
  }

  /** Runs a command and then serves those who wait for what it left. */
  run(session: Session, command: string, args: readonly string[]): Reply {
    this.world.onCommand?.(session, command, args)
    const reply = this.execute(command, args)
    this.#serve()
    return reply
  }

  execute(command: string, args: readonly string[]): Reply {
    try {
      switch (command) {
        case 'TIME':
          return this.#time()
        case 'PUBLISH':
          return this.#publish(args[0] ?? '', args[1] ?? '')
        case 'PUBSUB':
          return args.slice(1).flatMap((channel) => [channel, this.#subscribers(channel).length])
        case 'EVAL':
          return this.#eval(args[0] ?? '', args.slice(1))
        case 'EVALSHA':
          return this.#evalSha((args[0] ?? '').toLowerCase(), args.slice(1))
        case 'SCRIPT':
          return this.#script(args)
        case 'INFO':
          return `# Server\r\nredis_version:7.2.4\r\nrun_id:${String(this.#starts).padStart(40, '0')}\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n`
        case 'WAIT':
          return Number(args[0])
        default:
          if (!Store.knows(command)) this.unknown.add(command)
          return this.store.run(command, args)
      }
    } catch (error) {
      if (error instanceof RedisError) return error
      throw error
    }
  }

  #time(): Reply {
    const micros = Math.floor(this.world.now() * 1000)
    return [String(Math.floor(micros / 1e6)), String(micros % 1e6)]
  }

  #subscribers(channel: string): Session[] {
    return [...this.sessions.values()].filter((session) => session.channels.has(channel))
  }

  #publish(channel: string, message: string): Reply {
    const reached = this.#subscribers(channel)
    for (const session of reached) {
      if (this.world.passes?.(session) !== false) session.push(['message', channel, message])
    }
    return reached.length
  }

  #script([what = '', ...rest]: readonly string[]): Reply {
    switch (what.toUpperCase()) {
      case 'LOAD':
        return this.#load(rest[0] ?? '')
      case 'EXISTS':
        return rest.map((sha) => (this.#known.has(sha) ? 1 : 0))
      default:
        this.#known = new Set()
        return OK
    }
  }

  #load(source: string): string {
    const sha = createHash('sha1').update(source, 'latin1').digest('hex')
    if (!SCRIPTS.has(sha)) SCRIPTS.set(sha, compile(source))
    this.#known.add(sha)
    return sha
  }

  #eval(source: string, args: readonly string[]): Reply {
    return this.#evalSha(this.#load(source), args)
  }

  #evalSha(sha: string, args: readonly string[]): Reply {
    const script = this.#known.has(sha) ? SCRIPTS.get(sha) : undefined
    if (script === undefined) throw new RedisError('NOSCRIPT No matching script. Please use EVAL.')
    const keys = Number(args[0])
    const redis = new LuaTable()
    redis.set('call', (...list) => [this.#call(list)])
    redis.set('pcall', (...list) => {
      try {
        return [this.#call(list)]
      } catch (error) {
        if (error instanceof LuaError) return [new LuaTable().with('err', error.message)]
        throw error
      }
    })
    const globals = Object.assign(Object.create(LIBRARY) as Record<string, LuaValue>, {
      redis,
      KEYS: new LuaTable(args.slice(1, keys + 1)),
      ARGV: new LuaTable(args.slice(keys + 1)),
    })
    try {
      return fromLua(script(globals)[0])
    } catch (error) {
      if (!(error instanceof LuaError)) throw error
      const message = /^[A-Z]+ /.test(error.message) ? error.message : `ERR ${error.message}`
      throw new RedisError(`${message} script: ${sha}`)
    }
  }

  #call(list: readonly LuaValue[]): LuaValue {
    const [command = '', ...args] = list.map((value) => {
      if (typeof value === 'string') return value
      if (typeof value === 'number') return Number.isInteger(value) ? String(value) : toText(value)
      throw new LuaError('Lua redis lib command arguments must be strings or integers')
    })
    this.world.onCommand?.(undefined, command, args)
    const reply = this.execute(command.toUpperCase(), args)
    if (reply instanceof RedisError) throw new LuaError(reply.message)
    return toLua(reply)
  }

  /** Elements go to those who wait longest for their list, once the command that brought them is done. */
  #serve(): void {
    for (const key of this.store.pushed) {
      for (const [session, { keys, serve }] of [...this.blocked]) {
        if (!keys.includes(key)) continue
        const reply = serve(key)
        if (reply !== undefined) session.unblock(reply)
      }
      this.store.pushed.delete(key)
    }
  }
}

/** One connection as the server sees it. */
export class Session {
  readonly server: Server
  readonly id: number
  readonly channels = new Set<string>()
  readonly #peer: Peer
  #input = ''
  #resp3 = false
  #ended = false

  constructor(server: Server, id: number, peer: Peer) {
    this.server = server
    this.id = id
    this.#peer = peer
  }

  get isBlocked(): boolean {
    return this.server.blocked.has(this)
  }

  receive(bytes: string): void {
    this.#input += bytes
    this.#work()
  }

  /** The connection is gone, from either end. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    this.server.blocked.get(this)?.forget()
    this.server.blocked.delete(this)
    this.server.sessions.delete(this.id)
    this.#peer.close()
  }

  push(parts: readonly Reply[]): void {
    this.#peer.send(`${this.#resp3 ? '>' : '*'}${parts.length}\r\n${parts.map((part) => this.#encode(part)).join('')}`)
  }

  unblock(reply: Reply): void {
    this.server.blocked.get(this)?.forget()
    this.server.blocked.delete(this)
    this.#send(reply)
    this.#work()
  }

  #work(): void {
    while (!this.#ended && !this.isBlocked) {
      const command = this.#next()
      if (command === undefined) return
      const [name = '', ...args] = command
      const reply = this.#run(name.toUpperCase(), args)
      if (reply !== undefined) this.#send(reply)
      if (name.toUpperCase() === 'QUIT') this.end()
    }
  }

  #next(): string[] | undefined {
    const end = this.#input.indexOf('\r\n')
    if (end < 0) return undefined
    const parts: string[] = []
    let at = end + 2
    for (let left = Number(this.#input.slice(1, end)); left > 0; left--) {
      const headEnd = this.#input.indexOf('\r\n', at)
      if (headEnd < 0) return undefined
      const size = Number(this.#input.slice(at + 1, headEnd))
      if (this.#input.length < headEnd + 2 + size + 2) return undefined
      parts.push(this.#input.slice(headEnd + 2, headEnd + 2 + size))
      at = headEnd + 2 + size + 2
    }
    this.#input = this.#input.slice(at)
    return parts
  }

  /** `undefined`: nothing is answered, or later. */
  #run(command: string, args: readonly string[]): Reply | undefined {
    const { server } = this
    switch (command) {
      case 'HELLO':
        this.#resp3 = args[0] === '3'
        this.#peer.send(this.#hello())
        return undefined
      case 'PING':
        return args[0] ?? new Status('PONG')
      case 'QUIT':
      case 'SELECT':
      case 'READONLY':
        return OK
      case 'CLIENT':
        return this.#client(args)
      case 'SUBSCRIBE':
      case 'UNSUBSCRIBE':
        for (const channel of args) {
          if (command === 'SUBSCRIBE') this.channels.add(channel)
          else this.channels.delete(channel)
          this.push([command.toLowerCase(), channel, this.channels.size])
        }
        return undefined
      case 'BLPOP':
      case 'BRPOP': {
        const end = command === 'BLPOP' ? 'left' : 'right'
        return this.#block(args.slice(0, -1), Number(args.at(-1)), (key) => {
          const [element] = server.store.pop(key, 1, end)
          return element === undefined ? undefined : [key, element]
        })
      }
      case 'BLMPOP': {
        const { keys, end, count } = manyPop(args.slice(1))
        return this.#block(keys, Number(args[0]), (key) => {
          const taken = server.store.pop(key, count, end)
          return taken.length === 0 ? undefined : [key, taken]
        })
      }
      case 'BLMOVE': {
        const [from = '', to = '', out = '', into = '', timeout] = args
        return this.#block([from], Number(timeout), (key) => {
          const [element] = server.store.pop(key, 1, endOf(out))
          if (element === undefined) return undefined
          server.store.push(to, [element], endOf(into))
          return element
        })
      }
      default:
        return server.run(this, command, args)
    }
  }

  #client([what = '', ...args]: readonly string[]): Reply {
    const { server } = this
    switch (what.toUpperCase()) {
      case 'ID':
        return this.id
      case 'UNBLOCK': {
        const session = server.sessions.get(Number(args[0]))
        const blocked = session && server.blocked.get(session)
        if (session === undefined || blocked === undefined) return 0
        session.unblock(args[1]?.toUpperCase() === 'ERROR' ? new RedisError(UNBLOCKED) : blocked.nothing)
        return 1
      }
      case 'KILL': {
        const at = args.findIndex((arg) => arg.toUpperCase() === 'ID')
        const session = at < 0 ? undefined : server.sessions.get(Number(args[at + 1]))
        session?.end()
        return session === undefined ? 0 : 1
      }
      default:
        return OK // SETINFO, SETNAME
    }
  }

  #block(keys: readonly string[], seconds: number, serve: (key: string) => Reply | undefined): Reply | undefined {
    const { server } = this
    server.world.onCommand?.(this, 'BLOCK', keys)
    try {
      for (const key of keys) {
        const reply = serve(key)
        if (reply !== undefined) return reply
      }
    } catch (error) {
      if (error instanceof RedisError) return error
      throw error
    }
    const forget = seconds > 0 ? server.world.after(seconds * 1000, () => this.unblock(null)) : () => undefined
    server.blocked.set(this, { keys, serve, nothing: null, forget })
    return undefined
  }

  #hello(): string {
    const facts: Reply[] = ['server', 'redis', 'version', '7.2.4', 'proto', this.#resp3 ? 3 : 2, 'id', this.id]
    facts.push('mode', 'standalone', 'role', 'master', 'modules', [])
    const body = facts.map((fact) => this.#encode(fact)).join('')
    return this.#resp3 ? `%${facts.length / 2}\r\n${body}` : `*${facts.length}\r\n${body}`
  }

  #send(reply: Reply): void {
    this.#peer.send(this.#encode(reply))
  }

  #encode(reply: Reply): string {
    if (reply === null) return this.#resp3 ? '_\r\n' : '$-1\r\n'
    if (typeof reply === 'number') return `:${reply}\r\n`
    if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`
    if (reply instanceof Status) return `+${reply.text}\r\n`
    if (reply instanceof RedisError) return `-${reply.message.replace(/[\r\n]/g, ' ')}\r\n`
    return `*${reply.length}\r\n${reply.map((part) => this.#encode(part)).join('')}`
  }
}

function toLua(reply: Reply): LuaValue {
  if (reply === null) return false
  if (reply instanceof Status) return new LuaTable().with('ok', reply.text)
  if (reply instanceof RedisError) return new LuaTable().with('err', reply.message)
  if (typeof reply === 'object') return new LuaTable(reply.map(toLua))
  return reply
}

function fromLua(value: LuaValue): Reply {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return Math.trunc(value)
  if (value === true) return 1
  if (!(value instanceof LuaTable)) return null
  const [error, ok] = [value.get('err'), value.get('ok')]
  if (error !== undefined) return new RedisError(toText(error))
  if (ok !== undefined) return new Status(toText(ok))
  const end = value.list.indexOf(undefined)
  return (end < 0 ? value.list : value.list.slice(0, end)).map(fromLua)
}
