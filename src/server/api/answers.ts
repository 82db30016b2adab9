import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Socket } from 'node:net'
import { BadRequest } from './problem.js'

/** The bytes reserved for an answer under construction, whose size is not known yet. */
const BEING_MADE = 8 * 1_048_576
/** Smaller answers are not counted. */
const SMALL = 65_536

interface UnderWay {
  bytes: number
  isOver: boolean
}

/**
 * Limits the bytes of the answers that are under construction or sent: a client that asks for much and reads nothing must not fill the
 * memory.
 */
export class Answers {
  readonly #most: number
  readonly #requests = new WeakMap<FastifyRequest, UnderWay>()
  /** The answers of a connection, which end with it. */
  readonly #ofSocket = new WeakMap<Socket, Set<UnderWay>>()
  #bytes = 0

  constructor(most: number) {
    this.#most = most
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Counts the answers that are sent. */
  watch(app: FastifyInstance): void {
    app.addHook('onSend', (request, reply, payload, done) => {
      const bytes = typeof payload === 'string' || payload instanceof Uint8Array ? Buffer.byteLength(payload) : 0
      const known = this.#requests.get(request)
      if (known !== undefined) this.#set(known, bytes)
      else if (bytes > SMALL) this.#set(this.#begin(request, reply), bytes)
      done()
    })
  }

  /** Reserves room for an answer that can become large, before anything is read for it. @throws BadRequest there is no room */
  reserve(request: FastifyRequest, reply: FastifyReply): void {
    this.assertRoom()
    this.#set(this.#begin(request, reply), BEING_MADE)
  }

  /** Checks for room without reserving it: before a wait for messages, and for an answer with one message. @throws BadRequest */
  assertRoom(): void {
    if (this.#bytes + BEING_MADE > this.#most)
      throw new BadRequest(
        'too-many-answers',
        'nothing was done; clients have not read the answers that they asked for',
      )
  }

  #begin(request: FastifyRequest, reply: FastifyReply): UnderWay {
    const own: UnderWay = { bytes: 0, isOver: false }
    this.#requests.set(request, own)
    const { socket } = request.raw
    const all = this.#ofSocket.get(socket) ?? new Set()
    if (!this.#ofSocket.has(socket)) {
      this.#ofSocket.set(socket, all)
      socket.once('close', () => {
        for (const each of all) this.#end(each, all)
      })
    }
    all.add(own)
    // a pipelined answer that waits for earlier ones does not notice the end of its connection
    reply.raw.once('close', () => this.#end(own, all))
    if (socket.destroyed) this.#end(own, all)
    return own
  }

  #end(own: UnderWay, all: Set<UnderWay>): void {
    this.#set(own, 0)
    own.isOver = true
    all.delete(own)
  }

  #set(own: UnderWay, bytes: number): void {
    if (own.isOver) return
    this.#bytes += bytes - own.bytes
    own.bytes = bytes
  }
}
