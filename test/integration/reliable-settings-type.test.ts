/** The settings of a reliable queue while their key is of another type: no call goes on with defaults in their place. */
import { expect } from 'chai'
import { codecs, type ReliableMessage, type ReliableQueue } from '../../src/index.js'
import { deadLettersOf, reliableKeys, type ReliableKeys } from '../../src/keys.js'
import { rejection } from '../lua/support.js'
import { rawClient, uniqueName } from '../support/redis.js'
import { cleanUp, makeClient, onCleanup } from './fixtures.js'

describe('settings of another type', () => {
  afterEach(cleanUp)

  interface Given {
    readonly queue: ReliableQueue<string>
    readonly other: ReliableQueue<string>
    readonly held: ReliableMessage<string>
  }
  const calls: Readonly<Record<string, (given: Given) => Promise<unknown>>> = {
    add: ({ queue }) => queue.add('new'),
    'add with the policy postpone': ({ queue }) => queue.add('new', { id: 'later', existing: 'postpone' }),
    poll: ({ queue }) => queue.pollMany({ count: 9 }),
    acknowledge: ({ held }) => held.acknowledge(),
    negativeAcknowledge: ({ held }) => held.negativeAcknowledge(),
    'extend by the timeout of the queue': ({ queue, held }) => queue.extend([held]),
    progress: ({ held }) => held.progress('half'),
    remove: ({ queue }) => queue.remove('later'),
    cancel: ({ queue }) => queue.cancel('later'),
    reschedule: ({ queue }) => queue.reschedule('later', 5),
    updatePayload: ({ queue }) => queue.updatePayload('later', 'new'),
    move: ({ queue, other }) => queue.move({ to: other, count: 9 }),
    clear: ({ queue }) => queue.clear(),
    pauseGroup: ({ queue }) => queue.pauseGroup('g'),
    pauseTask: ({ queue }) => queue.pauseTask('t'),
    disableOperation: ({ queue }) => queue.disableOperation('poll'),
    setConfig: ({ queue }) => queue.setConfig({ delay: 5 }),
    upsertSchedule: ({ queue }) => queue.upsertSchedule('s', 'x', { every: 60_000 }),
    waitUntilFinished: ({ queue }) => queue.waitUntilFinished('later', { timeout: 5_000 }),
    counts: ({ queue }) => queue.counts(),
    totals: ({ queue }) => queue.totals(),
    changeStatus: ({ queue }) => queue.changeStatus(),
  }
  for (const [name, call] of Object.entries(calls)) {
    it(`${name} is refused, and changes nothing`, async () => {
      const { queue, other, keys } = await make()
      const redis = rawClient()
      await queue.add('later', { id: 'later', delay: 60_000 })
      await queue.add('a', { id: 'a' })
      const held = await queue.poll()
      await queue.add('b', { id: 'b' })
      await redis.rename(keys.config, `${keys.messages}:aside`)
      await redis.set(keys.config, 'in the way')
      const contents = () => Promise.all(allOf(keys).map((key) => redis.dumpBuffer(key)))
      const before = await contents()
      expect(await rejection(call({ queue, other, held: held! }))).to.include({ code: 'ERR_WRONG_TYPE' })
      expect(await contents()).to.deep.equal(before)
      await redis.rename(`${keys.messages}:aside`, keys.config)
      expect((await queue.counts()).total).to.equal(3)
    })
  }

  async function make() {
    const client = makeClient()
    const [name, second] = [uniqueName('settings'), uniqueName('settings')]
    const keys = reliableKeys(name)
    const names = [name, second].flatMap((each) => [each, deadLettersOf(each)])
    onCleanup(async () => {
      await rawClient().unlink(...names.flatMap((each) => allOf(reliableKeys(each))))
    })
    const queue = client.getReliableQueue<string>(name, { codec: codecs.string() })
    await queue.setConfig({ keepCompleted: 9, changes: { keep: 'recent', maxLength: 100 } })
    return { queue, keys, other: client.getReliableQueue<string>(second, { codec: codecs.string() }) }
  }
})

function allOf(keys: ReliableKeys): string[] {
  return Object.values(keys as unknown as Record<string, string | readonly string[]>).flat()
}
