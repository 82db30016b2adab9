import { codecs, type NegativeOptions, type ReliableMessage, type ReliableQueue } from '../../../src/index.js'
import type { Entry, Payload, Said } from './job.js'

type Message = ReliableMessage<Payload>

/**
 * The same queue, which from now on notes every delivery that it hands out, every extension, and every answer: a worker calls the
 * same methods as the bench does.
 */
export function watch(queue: ReliableQueue<Payload>, note: (entry: Entry) => void): ReliableQueue<Payload> {
  const answer = async (messages: readonly Message[], said: Said, send: () => Promise<boolean[]>) => {
    for (const message of messages) note(['answering', ...nameOf(message), said, Date.now()])
    const done = await send()
    messages.forEach((message, at) => note(['answer', ...nameOf(message), done[at] === true, Date.now()]))
    return done
  }

  const extension = async (messages: readonly Message[], send: () => Promise<boolean[]>) => {
    for (const message of messages) note(['extending', ...nameOf(message)])
    const extended = await send()
    messages.forEach((message, at) => {
      note(['extended', ...nameOf(message), extended[at] === true ? message.visibleUntil : null])
    })
    return extended
  }

  const noted = async (polled: Promise<Message[]>): Promise<Message[]> => {
    const messages = await polled
    for (const message of messages) {
      const { visibleAt, polledAt, visibleUntil } = message
      const { last, revision } = payloadOf(message)
      if (last !== undefined) note(['last', message.id, last])
      note(['got', ...nameOf(message), visibleAt, polledAt, visibleUntil, queue.name, revision])
      const acknowledge = message.acknowledge.bind(message)
      message.acknowledge = (how) => one(answer([message], 'done', async () => [await acknowledge(how)]))
      const giveBack = message.negativeAcknowledge.bind(message)
      message.negativeAcknowledge = (how) => one(answer([message], saidBy(how), async () => [await giveBack(how)]))
      const extend = message.extend.bind(message)
      message.extend = (visibility) => one(extension([message], async () => [await extend(visibility)]))
    }
    return messages
  }
  const pollMany = queue.pollMany.bind(queue)
  queue.pollMany = (options) => noted(pollMany(options))
  // a worker polls so
  const pollFor = queue.pollFor.bind(queue)
  queue.pollFor = (options, beforehand) => noted(pollFor(options, beforehand))

  // a worker acknowledges this way what its handlers completed
  const acknowledge = queue.acknowledge.bind(queue)
  queue.acknowledge = (...messages) => answer(messages as readonly Message[], 'done', () => acknowledge(...messages))

  const complete = queue.complete.bind(queue)
  queue.complete = (messages, results) => answer(messages, 'done', () => complete(messages, results))

  // and gives back so what no handler waits for any more
  const giveBack = queue.negativeAcknowledge.bind(queue)
  queue.negativeAcknowledge = (messages, how) =>
    answer(messages as readonly Message[], saidBy(how), () => giveBack(messages, how))

  // `extend` does so, too
  const extendSome = queue.extendSome.bind(queue)
  queue.extendSome = (messages, unbegun, visibility) =>
    extension(messages as readonly Message[], () => extendSome(messages, unbegun, visibility))
  return queue
}

/** That of a suspect, which may have killed its process, is still bytes until its handler begins. */
function payloadOf({ payload }: Message): Payload {
  return Buffer.isBuffer(payload) ? codecs.json<Payload>().decode(payload) : payload
}

export function nameOf({ id, delivery }: ReliableMessage): readonly [id: string, delivery: string] {
  return [id, delivery]
}

function saidBy(how: NegativeOptions | undefined): Said {
  return how?.countAttempt === false ? 'released' : 'failed'
}

async function one(answers: Promise<boolean[]>): Promise<boolean> {
  const [done = false] = await answers
  return done
}
