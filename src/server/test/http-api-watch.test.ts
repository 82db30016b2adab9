import { expect } from 'chai'
import type { ChangeBatch, ChangePosition } from 'redelayed'
import type { Topic } from '../topics/topic.js'
import { watchTopics, type WatchEvent } from '../topics/watch.js'

/** A topic of one shard whose stream has these positions. */
function topicWith(ids: readonly string[], opened: unknown[], stop: AbortController): Topic {
  const queue = {
    changeStatus: async () => ({ epoch: 'e', last: '1-0' }),
    async *changes({ from }: { from?: ChangePosition }): AsyncGenerator<Partial<ChangeBatch>> {
      opened.push(from?.id)
      for (const id of ids.slice(ids.indexOf(from?.id ?? '') + 1)) yield { position: { epoch: 'e', id }, changes: [] }
      stop.abort()
    },
  }
  return { name: 'orders', settings: { events: true }, shards: [queue] } as unknown as Topic
}

describe('reading the changes of topics', () => {
  const read = async (from: ChangePosition | undefined, sink: (event: WatchEvent) => Promise<void>) => {
    const [opened, stop]: [unknown[], AbortController] = [[], new AbortController()]
    await watchTopics([topicWith(['1-0', '2-0', '3-0'], opened, stop)], {
      ...{ from: () => from, sink, signal: stop.signal, onError: () => undefined },
    })
    return opened
  }

  it('begins with the position of each shard, so that a reader can resume there', async () => {
    const events: WatchEvent[] = []
    const [first] = await read(undefined, async (event) => void events.push(event))
    expect(first).to.equal('1-0')
    expect(events[0]).to.deep.equal({
      kind: 'position',
      topic: 'orders',
      shard: 0,
      position: { epoch: 'e', id: '1-0' },
    })
    expect(events.map(({ kind }) => kind)).to.deep.equal(['position', 'changes', 'changes'])
  })

  it('checks whether the stream still has the next entry when a reader took long', async () => {
    const opened = await read({ epoch: 'e', id: '1-0' }, async ({ kind }) => {
      // the reader takes long
      if (kind === 'changes') await new Promise((resolve) => setTimeout(resolve, 300))
    })
    expect(opened).to.deep.equal(['1-0', '2-0', '3-0'])
  })
})
