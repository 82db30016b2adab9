import { pause } from '../pause.js'
import { isPassing, type Requests } from './requests.js'

/** A change of a message, or `lost`: events before the next one are missing. */
export interface ServiceEvent {
  /** The change, such as `added`, `polled` or `acknowledged`; `lost`. */
  readonly event: string
  /** The last id seen, from which a later stream can resume. */
  readonly lastId: string
  readonly data: Readonly<Record<string, unknown>> & { readonly topic: string }
}

export interface WatchOptions {
  /** Ends the iteration. */
  readonly signal?: AbortSignal
  /** Resume after the event with this `lastId`; otherwise the events begin now. */
  readonly lastId?: string
}

const AGAIN_MS = 1_000

/** Yields the events of server-sent streams, one stream after the other. */
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
      if (!(isPassing(error) || error instanceof TypeError)) throw error // a broken stream throws a TypeError
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
