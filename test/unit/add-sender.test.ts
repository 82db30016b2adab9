import { expect } from 'chai'
import { CommandError, ConnectionError, QueueFullError, type RedelayedError } from '../../src/errors.js'
import type { QueueHandle } from '../../src/queues/queue-handle.js'
import type { PendingMessage } from '../../src/reliable/add-options.js'
import { AddSender } from '../../src/reliable/add-sender.js'
import { FIRST_ADD, type ReliableStore } from '../../src/store/reliable-store.js'

const NOTHING = Buffer.alloc(0)
const [ADDED, FULL, PAUSED, LATE, BEHIND, CLOSED] = [1, -2, -4, -3, -6, -7]
const HOW = { existing: 'keep', wait: undefined, batch: '' } as const

const messageOf = (id: string): PendingMessage => ({
  ...{ id, isDrawn: false, priority: 0, visible: '@5', timeToLive: '', deliveryLimit: '', mark: '', markMs: '' },
  ...{ headers: NOTHING, group: NOTHING, payload: NOTHING },
})

/** The results of messages for a reply of the server: an error, or an outcome for each message. */
async function sent(ids: string[], ...answers: (Error | number[])[]) {
  const resent: boolean[] = []
  const store = {
    keys: { messages: 'messages' },
    add: async (page: readonly unknown[], how: { readonly sentAgoMs: number }) => {
      resent.push(how.sentAgoMs !== FIRST_ADD)
      expect(how.sentAgoMs).to.be.within(FIRST_ADD, 5_000)
      const answer = answers.shift() ?? page.map(() => ADDED)
      if (answer instanceof Error) throw answer
      return { now: 5, outcomes: answer }
    },
  }
  const commands = {
    trackOperation: async (action: () => Promise<unknown>) => action(),
    isInTime: () => true,
    maySendAgain: async () => true,
  }
  const handle = { name: 'jobs', context: { commands, durable: {}, ids: {}, hub: { hasListener: () => false } } }
  const sender = new AddSender(handle as unknown as QueueHandle<unknown>, store as unknown as ReliableStore)
  const results = await sender.send(ids.map(messageOf), HOW)
  return { results, resent }
}

const lost = (outcome: 'unknown' | 'not-applied'): ConnectionError => new ConnectionError('it broke', outcome)

describe('AddSender', () => {
  it('passes on the reason why the first attempt was refused', async () => {
    for (const [outcome, code] of [
      [FULL, 'ERR_QUEUE_FULL'],
      [PAUSED, 'ERR_OPERATION_DISABLED'],
      [BEHIND, 'ERR_CHANGES_BEHIND'],
      [CLOSED, 'ERR_BATCH_CLOSED'],
    ] as const) {
      const { results, resent } = await sent(['a'], [outcome])
      expect(results[0]).to.include({ code })
      expect(resent).to.deep.equal([false])
    }
  })

  it('says that the outcome is unknown where a later attempt is refused: an earlier one may have added the message, and a consumer handled it', async () => {
    for (const outcome of [FULL, PAUSED, BEHIND, CLOSED]) {
      const { results, resent } = await sent(['a'], lost('unknown'), [outcome])
      expect(results[0], `${outcome}`).to.include({ code: 'ERR_CONNECTION', outcome: 'unknown' })
      expect(resent).to.deep.equal([false, true])
    }
    const { results } = await sent(['a'], lost('unknown'), [FULL])
    expect((results[0] as RedelayedError).cause).to.be.instanceOf(QueueFullError)
  })

  it('passes on the reason why any attempt would have been refused', async () => {
    const { results } = await sent(['a'], lost('unknown'), [LATE])
    expect(results[0]).to.include({ code: 'ERR_INVALID_ARGUMENT' })
  })

  it('says that the outcome is unknown of a message that was sent again alone, and never arrived: the script for all may have added it', async () => {
    const failed = new CommandError('ERR', 'Error running script')
    const { results, resent } = await sent(['a', 'b'], failed, lost('not-applied'))
    expect(results).to.have.length(2)
    expect(results[0]).to.include({ code: 'ERR_CONNECTION', outcome: 'unknown' })
    expect(results[1]).to.deep.equal({ id: 'b', outcome: 'added' })
    expect(resent).to.deep.equal([false, true, true])
    expect((await sent(['a'], lost('not-applied'))).results[0]).to.include({ outcome: 'not-applied' })
  })
})
