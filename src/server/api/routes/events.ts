import type { ServerResponse } from 'node:http'
import type { ChangePosition, MessageChange } from 'redelayed'
import { Type } from 'typebox'
import { assertKept, watchTopics, type WatchEvent } from '../../topics/watch.js'
import type { Sessions } from '../../console/sessions.js'
import { reasonFor } from '../../console/shown-message.js'
import { covers, isBlind, type ApiKeys } from '../api-keys.js'
import { assertCovers, keyOf } from '../authorize.js'
import type { App, Context } from '../context.js'
import { BadRequest } from '../problem.js'
import { TOPIC_NAME } from '../../topics/topic-name.js'

/** The most queues whose positions fit into the id of an event. */
const MOST_POSITIONS = 20
/** The most shards of a stream, as each is read by itself. */
const MOST_SHARDS = 256
const BEAT_MS = 15_000
/** How often the key is checked again. */
const LOOK_MS = 1_000

/** The changes of messages as server-sent events. */
export function eventRoutes(
  app: App,
  { topics, settings, metrics, waits }: Context,
  { keys, sessions }: { readonly keys: ApiKeys; readonly sessions: Sessions },
): void {
  let streams = 0

  app.get(
    '/v1/events',
    {
      // a HEAD would wait for the end of the stream, which never comes
      exposeHeadRoute: false,
      config: { scope: 'read' },
      schema: {
        tags: ['events'],
        operationId: 'watchEvents',
        summary: 'The changes of the messages of some topics, on all instances, as server-sent events',
        querystring: Type.Object({
          topic: Type.Array(Type.String({ pattern: TOPIC_NAME }), { minItems: 1, maxItems: 50 }),
        }),
        produces: ['text/event-stream'],
      },
    },
    async (request, reply) => {
      const names = [...new Set(request.query.topic)]
      for (const name of names) assertCovers(request.apiKey, name)
      const watched = await Promise.all(names.map((name) => topics.open(name)))
      assertKept(watched)
      const shards = watched.reduce((sum, topic) => sum + topic.shards.length, 0)
      if (shards > MOST_SHARDS)
        throw new BadRequest(
          'invalid-request',
          `these topics have ${shards} shards, and a stream takes at most ${MOST_SHARDS}`,
        )
      if (streams >= settings.maxEventStreams)
        throw new BadRequest('too-many-streams', `at most ${settings.maxEventStreams} are allowed`)
      const positions = readPositions(request.headers['last-event-id'])

      void reply.hijack()
      const { raw } = reply
      raw.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store',
        'X-Accel-Buffering': 'no',
      })
      raw.write(': the events begin here\n\n')
      const waiting = waits.begin()
      raw.once('close', () => waiting.abort())
      if (request.raw.socket.destroyed) waiting.abort() // the client hung up while the topics were opened
      const beat = setInterval(() => raw.write(':\n\n'), BEAT_MS)
      let key = request.apiKey
      let isLooking = false
      const look = setInterval(() => {
        if (isLooking) return
        isLooking = true
        keyOf(request, keys, sessions)
          .then((now) => {
            if (now?.scopes.has('read') && names.every((name) => covers(now, name))) {
              key = now // it may hide more than before
              return
            }
            // the key was removed, its session has ended, or it may do less than before
            waiting.abort()
            if (raw.writableNeedDrain) raw.destroy() // the client does not read
          })
          .catch(() => undefined) // Redis does not answer now
          .finally(() => (isLooking = false))
      }, LOOK_MS)
      streams++
      metrics.streams.inc()
      try {
        await watchTopics(watched, {
          from: (topic, shard) => positions.get(`${topic}/${shard}`),
          sink: (event) => send(raw, event, positions, isBlind(key)),
          signal: waiting.signal,
          onError: (error) => request.log.warn(error, 'the events of a topic cannot be read; retrying'),
        })
      } catch (thrown) {
        request.log.error(thrown, 'events ended')
      } finally {
        clearInterval(beat)
        clearInterval(look)
        waits.end(waiting)
        streams--
        metrics.streams.dec()
        raw.end()
      }
    },
  )
}

/** Resolves when the client has room for more. */
async function send(
  raw: ServerResponse,
  event: WatchEvent,
  positions: Map<string, ChangePosition>,
  hidesAnswers: boolean,
): Promise<void> {
  if (raw.destroyed || raw.writableEnded) return
  const text =
    event.kind === 'lost'
      ? lostText(event)
      : event.kind === 'position'
        ? positionText(event, positions)
        : changesText(event, positions, hidesAnswers)
  const hasRoom = raw.write(text)
  if (!hasRoom) {
    await new Promise<void>((resolve) => {
      const go = (): void => {
        raw.off('drain', go)
        raw.off('close', go)
        resolve()
      }
      raw.once('drain', go)
      raw.once('close', go)
    })
  }
}

function lostText({ topic, shard, reason }: WatchEvent & { kind: 'lost' }): string {
  return `event: lost\ndata: ${JSON.stringify({ topic, shard, reason })}\n\n`
}

/** The id with which a client resumes that has had no event yet. */
function positionText(
  { topic, shard, position }: WatchEvent & { kind: 'position' },
  positions: Map<string, ChangePosition>,
): string {
  positions.set(`${topic}/${shard}`, position)
  return positions.size > MOST_POSITIONS ? ':\n\n' : `id: ${positionsText(positions)}\n\n`
}

/** An event for each change; only the last one of a batch has an id, so that a client that resumes gets whole batches. */
function changesText(
  { topic, shard, batch }: WatchEvent & { kind: 'changes' },
  positions: Map<string, ChangePosition>,
  hidesAnswers: boolean,
): string {
  positions.set(`${topic}/${shard}`, batch.position)
  const id = positions.size > MOST_POSITIONS ? '' : `id: ${positionsText(positions)}\n`
  return batch.changes
    .map((change, at) => {
      const data = JSON.stringify({ topic, at: batch.at, ...shownChange(change, hidesAnswers) })
      return `event: ${change.change}\n${at === batch.changes.length - 1 ? id : ''}data: ${data}\n\n`
    })
    .join('')
}

/** A change without its payload, which a reader of events may not be allowed to see. */
function shownChange({ change, id, attempt, dueAt, priority, error }: MessageChange, hidesAnswers: boolean) {
  return { change, id, attempt, dueAt, priority, error: error && reasonFor(hidesAnswers, error) }
}

function positionsText(positions: ReadonlyMap<string, ChangePosition>): string {
  return Array.from(positions, ([key, { epoch, id }]) => `${key}=${epoch}:${id}`).join(',')
}

/** The positions of a `Last-Event-ID`. Invalid parts are skipped: those queues begin now. */
function readPositions(given: string | string[] | undefined): Map<string, ChangePosition> {
  const positions = new Map<string, ChangePosition>()
  for (const part of String(given ?? '')
    .split(',')
    .slice(0, MOST_POSITIONS)) {
    const [, key = '', epoch = '', id = ''] = /^([^=]+\/\d+)=(~?[\w-]{1,32}):(\d{1,16}-\d{1,16})$/.exec(part) ?? []
    if (key !== '') positions.set(key, { epoch, id })
  }
  return positions
}
