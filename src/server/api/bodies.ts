import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import { Transform, type Readable } from 'node:stream'
import { BadRequest } from './problem.js'

/** A request from the start of its body until it was answered and its response or connection is closed. */
interface UnderWay {
  bytes: number
  isAnswered: boolean
  isClosed: boolean
  /** The stream that counts the bytes of the body. */
  counted?: Readable
}

/** A longer body is counted as it arrives, so that announcing it takes no room; a shorter one needs no stream to count it. */
const MOST_AT_ONCE = 65_536
/** The methods whose bodies are not read. */
const UNREAD: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** Limits the bytes of the bodies of all requests under way, so that they cannot fill the memory. */
export class Bodies {
  readonly #most: number
  readonly #requests = new WeakMap<FastifyRequest, UnderWay>()
  /** The requests of a connection, which end with it. One listener serves all: a pipeline can have many requests. */
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
        void reply.header('Connection', 'close') // the rest of the body is not read
        done(thrown as Error)
      }
    })
    app.addHook('onSend', (request, _reply, _payload, done) => {
      const own = this.#requests.get(request)
      if (own !== undefined) {
        own.isAnswered = true
        own.counted?.resume() // an unread body would block the next request of its connection
        this.#end(own)
      }
      done()
    })
  }

  /** @throws BadRequest there is no room for the body */
  #begin(request: FastifyRequest, reply: FastifyReply, payload: Readable): Readable {
    const { headers, method, routeOptions } = request
    if (UNREAD.has(method)) return payload
    const isChunked = headers['transfer-encoding'] !== undefined
    const length = isChunked ? 0 : Number(headers['content-length'] ?? 0)
    // Fastify refuses a body that is too large without reading it
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

  /** Frees the bytes once the request is answered and closed: a handler may still use the body after the client has gone. */
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
    // a pipelined answer that waits for earlier ones has no connection yet and does not notice its end
    reply.raw.once('close', () => this.#close(own, all))
    if (socket.destroyed) this.#close(own, all)
  }

  #close(own: UnderWay, all: Set<UnderWay>): void {
    all.delete(own)
    own.isClosed = true
    this.#end(own)
  }

  /** Counts a body that is long, or whose length is not announced. */
  #counted(own: UnderWay, payload: Readable, reply: FastifyReply): Readable {
    const counted = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        try {
          // bytes after the answer, for example of a body that is too large, are not kept
          if (!own.isAnswered) this.#take(own, chunk.length)
          done(null, chunk)
        } catch (thrown) {
          payload.unpipe(counted)
          // at once: otherwise requests that come meanwhile would be refused too, and all would retry together
          this.#bytes -= own.bytes
          own.bytes = 0
          own.isAnswered = true
          if (!reply.sent) void reply.header('Connection', 'close')
          done(thrown as Error)
        }
      },
    })
    own.counted = counted
    counted.on('error', () => undefined) // after the answer, nothing else listens for errors
    payload.once('error', (error) => counted.destroy(error))
    payload.once('close', () => {
      if (!payload.readableEnded) counted.destroy(new Error('the request was cut'))
    })
    return payload.pipe(counted)
  }
}
