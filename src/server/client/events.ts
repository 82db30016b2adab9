import { pause } from '../pause.js'
import { isPassing, type Requests } from './requests.js'

/** What happened to a message, or `lost`: events are missing before the next one. */
export interface ServiceEvent {
  /** The change, such as `added`, `polled` or `acknowledged`; `lost`. */
  readonly event: string
  /** Where a later stream can go on; the last one that was seen. */
  readonly lastId: string
  readonly data: Readonly<Record<string, unknown>> & { readonly topic: string }
}

export interface WatchOptions {
  /** Ends the iteration. */
  readonly signal?: AbortSignal
  /** Go on after the event that had this `lastId`; else the events begin now. */
  readonly lastId?: string
}

const AGAIN_MS = 1_000

/** The events of server-sent streams, one stream after the other. */
export async function* watch(
  requests: Requests,
  topics: readonly string[],
  { signal, lastId = '' }: WatchOptions,
): AsyncGenerator<ServiceEvent, void> {
  const hasEnded = (): boolean => signal?.aborted === true
  for (let last = lastId; !hasEnded();) {
    try {
      const response = await requests.open('GET', '/v1/events', {
        query: { topic: topics },
        headers: last === '' ? {} : { 'last-event-id': last },
        signal,
      })
      for await (const { event, id, data } of blocksOf(response)) {
        last = id ?? last
        if (data !== undefined) yield { event, lastId: last, data: JSON.parse(data) as ServiceEvent['data'] }
      }
    } catch (error) {
      if (hasEnded()) return
      if (!(isPassing(error) || error instanceof TypeError)) throw error // a stream that breaks off is a TypeError
    }
    await pause(AGAIN_MS, signal)
  }
}

interface Block {
  readonly event: string
  readonly id: string | undefined
  readonly data: string | undefined
}

async function* blocksOf({ body }: Response): AsyncGenerator<Block, void> {
  let text = ''
  for await (const part of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += part
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const fields = new Map(block.split('\n').map((line) => [line.split(': ', 1)[0], line.replace(/^[^:]*: ?/, '')]))
      yield { event: fields.get('event') ?? 'message', id: fields.get('id'), data: fields.get('data') }
    }
  }
}
