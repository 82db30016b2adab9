import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Received, ReceivedMessage } from '../topics/topic.js'
import type { Context } from './context.js'

/** An answer takes no further message once they have this many bytes; 1 MiB, or one message, can come on top. */
const ANSWER_BYTES = 15 * 1_048_576

export interface Wanted {
  readonly topic: string
  readonly max: number
  readonly wait: number
  readonly visibilityTimeout?: number | undefined
}

/** Receives messages for the client of a request, or none when the wait is over. If the client has hung up, they are given back. */
export async function receive(
  { topics, settings, metrics, waits, answers }: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { topic: name, max, wait, visibilityTimeout }: Wanted,
): Promise<{ readonly messages: readonly ReceivedMessage[]; readonly isGone: () => boolean }> {
  answers.assertRoom()
  const topic = await topics.open(name, { create: true })
  const waiting = waits.begin()
  let received: Received | undefined
  let isGone = false
  const giveBack = async (): Promise<void> => {
    metrics.givenBack.inc(received?.messages.length ?? 0)
    await received
      ?.giveBack()
      .catch((thrown: unknown) => request.log.warn(thrown, 'messages come back when their visibility ends'))
  }
  const { socket } = request.raw
  const leave = (): void => {
    if (isGone || reply.raw.writableFinished) return
    isGone = true
    waiting.abort()
    void giveBack()
  }
  // listens on the socket, as a pipelined answer does not have it yet; the client can have hung up while the topic was opened
  socket.once('close', leave)
  reply.raw.once('finish', () => socket.off('close', leave))
  if (socket.destroyed) leave()
  metrics.waiting.inc()
  try {
    received = await topic.receive({
      ...{ max, maxBytes: ANSWER_BYTES },
      wait: Math.min(wait, settings.maxWait),
      visibilityTimeout,
      signal: waiting.signal,
    })
  } finally {
    metrics.waiting.dec()
    waits.end(waiting)
  }
  if (isGone) await giveBack()
  if (received.messages.length > 0) {
    metrics.received.inc(received.messages.length)
    metrics.lateness.observe(received.latenessMs / 1_000)
  }
  return { messages: received.messages, isGone: () => isGone }
}
