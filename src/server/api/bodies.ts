import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import { Transform, type Readable } from 'node:stream'
import { BadRequest } from './problem.js'

/** A request is under way from when its body is read until its answer was sent, or nothing waits for it any more. */
interface UnderWay {
  bytes: number
  isAnswered: boolean
  isClosed: boolean
  /** What reads it for us. */
  counted?: Readable
}

/** A body that says it is longer is counted as it arrives: who only announces it has no room, and the others no stream of their own. */
const MOST_AT_ONCE = 65_536
/** Methods whose bodies are not read. */
const UNREAD: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** How many bytes the bodies of all requests under way have, which a bound keeps from filling the memory. */
export class Bodies {
  readonly #most: number
  readonly #requests = new WeakMap<FastifyRequest, UnderWay>()
  /** Those of a connection: where it ends, so do they. A listener for each request would be one for each of a pipeline. */
  readonly #ofSocket = new WeakMap<Socket, Set<UnderWay>>()
  #bytes = 0

  constructor(most: number) {
    this.#most = most
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Counts the bodies of all requests of an app. */
  watch(app: FastifyInstance): void {
    app.addHook('preParsing', (request, reply, payload, done) => {
      try {
        done(null, this.#begin(request, reply, payload as Readable))
      } catch (thrown) {
        void reply.header('Connection', 'close') // what the client still sends is not read
        done(thrown as Error)
      }
    })
    app.addHook('onSend', (request, _reply, _payload, done) => {
      const own = this.#requests.get(request)
      if (own !== undefined) {
        own.isAnswered = true
        own.counted?.resume() // what no parser has read keeps the next request of its connection from being read
        this.#end(own)
      }
      done()
    })
  }

  /** @throws BadRequest there is no room for it */
  #begin(request: FastifyRequest, reply: FastifyReply, payload: Readable): Readable {
    const { headers, method, routeOptions } = request
    if (UNREAD.has(method)) return payload
    const isChunked = headers['transfer-encoding'] !== undefined
    const length = isChunked ? 0 : Number(headers['content-length'] ?? 0)
    // what is too large is refused by itself, and not read
    if (!isChunked && (!(length > 0) || length > (routeOptions.bodyLimit ?? Infinity))) return payload
    const own: UnderWay = { bytes: 0, isAnswered: false, isClosed: false }
    const isCounted = isChunked || length > MOST_AT_ONCE
    if (isCounted) this.#assertRoom(length)
    else this.#take(own, length)
    this.#requests.set(request, own)
    this.#untilClosed(own, request.raw.socket, reply)
    return isCounted ? this.#counted(own, payload, reply) : payload
  }

  /** @throws BadRequest */
  #assertRoom(bytes: number): void {
    if (this.#bytes + bytes > this.#most)
      throw new BadRequest('too-many-bodies', 'nothing was done; the service reads no more bodies at once')
  }

  #take(own: UnderWay, bytes: number): void {
    this.#assertRoom(bytes)
    this.#bytes += bytes
    own.bytes += bytes
  }

  /** What is still at work for a client that has gone needs its body until then. */
  #end(own: UnderWay): void {
    if (!own.isAnswered || !own.isClosed) return
    this.#bytes -= own.bytes
    own.bytes = 0
  }

  #untilClosed(own: UnderWay, socket: Socket, reply: FastifyReply): void {
    let others = this.#ofSocket.get(socket)
    if (others === undefined) {
      const all = new Set<UnderWay>()
      others = all
      this.#ofSocket.set(socket, all)
      socket.once('close', () => {
        for (const each of all) this.#close(each, all)
      })
    }
    others.add(own)
    const all = others
    // an answer that waits for those before it in a pipeline has no connection yet, and does not hear of its end
    reply.raw.once('close', () => this.#close(own, all))
    if (socket.destroyed) this.#close(own, all)
  }

  #close(own: UnderWay, all: Set<UnderWay>): void {
    all.delete(own)
    own.isClosed = true
    this.#end(own)
  }

  /** A body that is long, or does not say how long it is. */
  #counted(own: UnderWay, payload: Readable, reply: FastifyReply): Readable {
    const counted = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        try {
          // what comes after the answer, as to one that is too large, is kept by nothing
          if (!own.isAnswered) this.#take(own, chunk.length)
          done(null, chunk)
        } catch (thrown) {
          payload.unpipe(counted)
          // at once: else those that come meanwhile are refused, too, and all of them try again together
          this.#bytes -= own.bytes
          own.bytes = 0
          own.isAnswered = true
          if (!reply.sent) void reply.header('Connection', 'close')
          done(thrown as Error)
        }
      },
    })
    own.counted = counted
    counted.on('error', () => undefined) // when there is an answer already, nothing else listens
    payload.once('error', (error) => counted.destroy(error))
    payload.once('close', () => {
      if (!payload.readableEnded) counted.destroy(new Error('the request was cut'))
    })
    return payload.pipe(counted)
  }
}
