import { expect } from 'chai'
import { ConnectionError } from '../../src/errors.js'
import { deadLettersOf, reliableKeys } from '../../src/keys.js'
import { resolveSettings } from '../../src/options.js'
import { addPages, type NewMessage } from '../../src/store/new-message.js'
import { AS_SET, ReliableStore } from '../../src/store/reliable-store.js'
import { rejection } from '../integration/fixtures.js'

const NOW = 1_000_000
const NOTHING = Buffer.alloc(0)

/** A store whose server answers so, and what was sent: the arguments without the script's own. */
function storeOf(answer: (args: readonly unknown[]) => unknown) {
  const sent: (readonly unknown[])[] = []
  const call = async (_: string, args: readonly unknown[]): Promise<unknown> => {
    sent.push(args)
    return answer(args)
  }
  const sender = { call, pipeline: async () => [] }
  const identity = { keys: reliableKeys('jobs'), dead: reliableKeys(deadLettersOf('jobs')) }
  return { sent, store: new ReliableStore(sender, resolveSettings({}), identity, 'me') }
}

const messageOf = (bytes: number): NewMessage => ({
  ...{ id: 'a', priority: 0, visible: '', timeToLive: '', deliveryLimit: '', mark: '', markMs: '' },
  headers: NOTHING,
  group: NOTHING,
  payload: Buffer.alloc(bytes),
})

const claimsOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `${n}`, member: `0${n}`, delivery: '1 t' }))

/** The reply of the poll script for ids of priority 0. */
const pollReply = (...ids: Buffer[]): unknown => [
  ...[String(NOW), '', 1, 30_000, 0, 0, 0, 0, '', ids.length].map((part) =>
    typeof part === 'string' ? Buffer.from(part) : part,
  ),
  ...[0, Buffer.from('1 token'), ids.length],
  ...ids.flatMap((id) => [id, Buffer.from(String(NOW)), Buffer.of(0)]),
]

describe('ReliableStore', () => {
  it('refuses a reply to other messages than those that were added', async () => {
    const two = [messageOf(1), messageOf(2)]
    const how = { existing: 'keep', sentAgoMs: -1, batch: '' } as const
    for (const outcomes of [[], [1], [1, 1, 1]]) {
      const { store } = storeOf(() => [Buffer.from('5'), ...outcomes])
      expect(await rejection(store.add(two, how))).to.include({ code: 'ERR_INTERNAL' })
    }
    const { store } = storeOf(() => [Buffer.from('5'), 1, 0])
    expect(await store.add(two, how)).to.deep.equal({ now: 5, outcomes: [1, 0] })
  })

  it('names a message in flight by its priority and id: as a text, or as bytes where the id is none', async () => {
    const { store } = storeOf(() => pollReply(Buffer.from('ä'), Buffer.from('\xff', 'latin1')))
    const { messages } = await store.poll(2, { visibilityMs: AS_SET, beforehand: false }, false)
    const [text, bytes] = messages
    expect([text?.id, text?.member]).to.deep.equal(['ä', '0ä'])
    expect([bytes?.id, bytes?.member]).to.deep.equal(['\ufffd', Buffer.of(0x30, 0xff)])
    expect(text).to.include({ delivery: '1 token', polledAt: NOW, visibleUntil: NOW + 30_000 })
  })

  it('reads any number of repeats, few together, large ones alone, and none that is larger than any can be', async () => {
    const names = Array.from({ length: 200_000 }, (_, n) => Buffer.from(`${n}`))
    const sizes = new Map([
      ['5', 1_000_000],
      ['7', 2 ** 29],
    ])
    const commands: string[] = []
    let together = 0
    const call = async (command: string, [, ...fields]: readonly unknown[]): Promise<unknown> => {
      commands.push(command)
      if (command === 'HKEYS') return names
      if (command === 'HSTRLEN') return sizes.get(String(fields[0])) ?? 10
      if (command === 'HGET') return Buffer.from('large')
      together = Math.max(together, fields.length)
      return fields.map((field) => Buffer.from(`of ${String(field)}`))
    }
    const identity = { keys: reliableKeys('jobs'), dead: reliableKeys(deadLettersOf('jobs')) }
    const store = new ReliableStore({ call, pipeline: async () => [] }, resolveSettings({}), identity, 'me')
    const found: [string, string][] = []
    for await (const [name, value] of store.repeats.all()) found.push([String(name), String(value)])
    expect(found).to.have.length(names.length)
    expect(found.slice(4, 9)).to.deep.equal([
      ['4', 'of 4'],
      ['5', 'large'],
      ['6', 'of 6'],
      ['7', String(2 ** 29)],
      ['8', 'of 8'],
    ])
    expect(commands.filter((command) => command === 'HGET')).to.have.length(1)
    expect(together).to.be.at.most(1_000)
  })

  it('counts how long a message is held from when the poll was sent, not from when its reply came', async () => {
    let repliedAt = Infinity
    const { store } = storeOf(async () => {
      const sentAt = performance.now()
      while (performance.now() < sentAt + 20) await new Promise((resolve) => setImmediate(resolve))
      repliedAt = performance.now()
      return pollReply(Buffer.from('a'))
    })
    const { messages } = await store.poll(1, { visibilityMs: AS_SET, beforehand: false }, false)
    expect(messages[0]?.heldUntil).to.be.at.most(repliedAt - 20 + 30_000)
  })

  it('believes in no longer visibility than it asked for', async () => {
    const { store } = storeOf(() => pollReply(Buffer.from('a')))
    const sentAt = performance.now()
    const { messages } = await store.poll(1, { visibilityMs: 1_000, beforehand: false }, false)
    expect(messages[0]?.heldUntil).to.be.within(sentAt + 1_000, performance.now() + 1_000)
    expect(messages[0]?.visibleUntil).to.equal(NOW + 1_000)
  })

  it('acknowledges many in pages, and says that the outcome is unknown when a later page fails', async () => {
    const { sent, store } = storeOf((args) => {
      if (sent.length === 3) throw new ConnectionError('refused', 'not-applied')
      return args.slice(20).flatMap((_, at) => (at % 2 === 0 ? [1] : []))
    })
    expect(await store.acknowledge(claimsOf(1_001))).to.have.length(1_001)
    expect(sent.map(({ length }) => length - 20)).to.deep.equal([2_000, 2])
    expect(await rejection(store.acknowledge(claimsOf(1)))).to.include({ outcome: 'not-applied' })
    sent.length = 1
    expect(await rejection(store.acknowledge(claimsOf(2_000)))).to.include({ outcome: 'unknown' })
  })

  it('asks again for the claims that the script has not answered for, from the first of them on', async () => {
    const { sent, store } = storeOf((args) => args.slice(20).flatMap((_, at) => (at < 6 && at % 2 === 0 ? [1] : [])))
    expect(await store.acknowledge(claimsOf(7))).to.deep.equal(Array(7).fill(true))
    expect(sent.map((args) => args[20])).to.deep.equal(['00', '03', '06'])
    const { store: silent } = storeOf(() => [])
    expect(await rejection(silent.acknowledge(claimsOf(1)))).to.include({ code: 'ERR_INTERNAL' })
  })

  it('asks only once when the delay of what is given back is too long', async () => {
    const { sent, store } = storeOf(() => [-3])
    const givenBack = store.giveBack(claimsOf(2_000), { how: 'failed', delayMs: 2 ** 53 - 1, reason: '""' })
    expect(await rejection(givenBack)).to.include({ code: 'ERR_INVALID_ARGUMENT' })
    expect(sent).to.have.length(1)
  })

  for (const [what, call] of [
    [
      'moves',
      (store: ReliableStore, ids: readonly string[]) =>
        store.moves.moveTo(reliableKeys('others'), {
          ids: ids.map((id) => Buffer.from(id)),
          count: 1,
          priority: 0,
          isRedriven: false,
        }),
    ],
    [
      'removes',
      async (store: ReliableStore, ids: readonly string[]) => {
        for await (const page of store.remove(ids, { alsoHeld: true })) expect(page).to.have.length(500)
      },
    ],
  ] as const) {
    it(`${what} many in pages, and says that the outcome is unknown when a later page fails`, async () => {
      let fails = 0
      const { sent, store } = storeOf(() => {
        if (sent.length === fails) throw new ConnectionError('refused', 'not-applied')
        return what === 'moves' ? [500, 0, 0] : Array.from({ length: 500 }, () => 1)
      })
      const ids = Array.from({ length: 1_000 }, (_, n) => `${n}`)
      fails = 1
      expect(await rejection(call(store, ids))).to.include({ outcome: 'not-applied' })
      sent.length = 0
      fails = 2
      expect(await rejection(call(store, ids))).to.include({ outcome: 'unknown' })
      expect(sent).to.have.length(2)
    })
  }

  it('moves none of no ids, and the first ones where no ids are given', async () => {
    const { sent, store } = storeOf(() => [1, 0, 0])
    const target = reliableKeys('others')
    expect(await store.moves.moveTo(target, { ids: [], count: 5, priority: 0, isRedriven: false })).to.equal(0)
    expect(sent).to.have.length(0)
    expect(await store.moves.moveTo(target, { count: 5, priority: 0, isRedriven: false })).to.equal(1)
  })
})

describe('addPages', () => {
  const sizesOf = (...bytes: number[]): number[] => addPages(bytes.map(messageOf)).map(({ length }) => length)

  it('bounds what one script adds, by messages and by bytes', () => {
    expect(sizesOf()).to.deep.equal([])
    expect(sizesOf(...Array.from({ length: 501 }, () => 1))).to.deep.equal([250, 250, 1])
    expect(sizesOf(2 ** 20, 0, 1, 2 ** 20, 2 ** 21)).to.deep.equal([2, 1, 1, 1])
  })
})
