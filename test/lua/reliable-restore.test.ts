import { expect } from 'chai'
import { restore } from '../../src/store/reliable-scripts.js'
import { run } from '../../src/store/run.js'
import { expected, having, MAX, NOW, record, useReliable, type Message, type State } from './reliable-support.js'
import { ALL_BYTES, raw, rejection, type Bytes } from './support.js'

interface Given extends Message {
  readonly replaces?: number
}

/** The three arguments of a message, put together by hand. */
function item(message: Given): Buffer[] {
  const {
    id,
    priority = 0,
    at = NOW,
    attempts = 0,
    expires,
    limit,
    headers = '',
    failures = '',
    payload = '',
    replaces,
  } = message
  const sizes = `${raw(headers).length},${Buffer.byteLength(failures)}`
  const details = `${priority},${at},${attempts},${expires ?? ''},${limit ?? ''},${sizes},${replaces ?? ''}`
  return [raw(id), Buffer.from(details), Buffer.concat([Buffer.from(failures), raw(headers), raw(payload)])]
}

describe('reliable-restore.lua', () => {
  const rig = useReliable()
  const x = {
    id: 'x',
    at: NOW + 9,
    priority: 4,
    attempts: 2,
    failures: '1 5 "no"\n',
    payload: 'X',
    headers: '{"a":"b"}',
    expires: NOW + 99,
    limit: 3,
  }
  const other = { id: 'v', at: NOW + 3, attempts: 2, failures: 'v\n', payload: 'V', priority: 9 }

  const cases: {
    what: string
    before: State
    items: readonly Given[]
    reply: number[]
    after: State
    published: string[]
  }[] = [
    {
      what: 'restores nothing when nothing is given',
      before: having([other]),
      items: [],
      reply: [],
      after: having([other]),
      published: [],
    },
    {
      what: 'restores a message with all that it had',
      before: {},
      items: [x],
      reply: [1],
      after: having([x]),
      published: [String(NOW + 9)],
    },
    {
      what: 'restores a message that was never delivered, in bytes of any value',
      before: {},
      items: [{ id: ALL_BYTES, payload: ALL_BYTES, at: 0 }],
      reply: [1],
      after: having([{ id: ALL_BYTES, payload: ALL_BYTES, at: 0 }]),
      published: ['0'],
    },
    {
      what: 'restores a message that is due as late as can be',
      before: {},
      items: [{ id: 'x', at: MAX, expires: MAX, attempts: 1_000_000 }],
      reply: [1],
      after: having([{ id: 'x', at: MAX, expires: MAX, attempts: 1_000_000 }]),
      published: [String(MAX)],
    },
    {
      what: 'publishes nothing that is later than what was announced',
      before: having([other]),
      items: [x],
      reply: [1],
      after: having([other, x]),
      published: [],
    },
    {
      what: 'leaves a message that is there, and restores the others',
      before: having([{ id: 'x', payload: 'old' }]),
      items: [x, other],
      reply: [0, 1],
      after: having([{ id: 'x', payload: 'old' }, other]),
      published: [],
    },
    {
      what: 'restores a message whose record is in no schedule, with nothing of what is left of it',
      before: {
        messages: [
          ['x', record('X')],
          ['v', record('V')],
        ],
        deliveries: [['v', '9']],
        failures: [['v', 'old\n']],
      },
      items: [x, { id: 'v', at: NOW + 3, payload: 'V' }],
      reply: [1, 1],
      after: having([x, { id: 'v', at: NOW + 3, payload: 'V' }]),
      published: [String(NOW + 3)],
    },
    {
      what: 'restores a message without the delivery of an earlier one of the same id',
      before: { deliveries: [['x', '9 t']], inFlight: [['3x', NOW + 100]] },
      items: [x],
      reply: [1],
      after: having([x]),
      published: [String(NOW + 9)],
    },
    {
      what: 'restores attempts in the place of the delivery of an earlier message of the same id',
      before: { deliveries: [['v', '9 t']], inFlight: [['3v', NOW + 100]] },
      items: [{ id: 'v', at: NOW + 3, payload: 'V', attempts: 2 }],
      reply: [1],
      after: having([{ id: 'v', at: NOW + 3, payload: 'V', attempts: 2 }]),
      published: [String(NOW + 3)],
    },
    {
      what: 'restores the first of two messages of one id',
      before: {},
      items: [x, { ...x, payload: 'again' }],
      reply: [1, 0],
      after: having([x]),
      published: [String(NOW + 9)],
    },
    {
      what: 'replaces a message that has the due time that the caller names',
      before: having([{ id: 'x', at: NOW + 1, payload: 'old', priority: 2, attempts: 1, failures: 'old\n' }, other]),
      items: [{ ...x, replaces: NOW + 1 }],
      reply: [2],
      after: having([x, other]),
      published: [],
    },
    {
      what: 'forgets attempts and failures that the message in its place does not have',
      before: having([{ id: 'x', at: NOW + 1, attempts: 1, failures: 'old\n' }]),
      items: [{ id: 'x', at: NOW + 2, replaces: NOW + 1 }],
      reply: [2],
      after: having([{ id: 'x', at: NOW + 2 }]),
      published: [],
    },
    {
      what: 'leaves a message that has another due time than the caller names',
      before: having([{ id: 'x', at: NOW + 1 }]),
      items: [{ ...x, replaces: NOW + 2 }],
      reply: [0],
      after: having([{ id: 'x', at: NOW + 1 }]),
      published: [],
    },
    {
      what: 'replaces a message that a consumer has until the time that the caller names, of the same priority',
      before: having([{ id: 'x', until: NOW + 1, priority: 4, attempts: 1, failures: 'old\n' }, other]),
      items: [{ ...x, replaces: NOW + 1 }],
      reply: [2],
      after: having([x, other]),
      published: [],
    },
    {
      what: 'replaces a message that was taken beforehand, of another priority',
      before: having([{ id: 'x', until: NOW + 0.75, priority: 2 }]),
      items: [{ id: 'x', at: NOW + 9, replaces: NOW + 1 }],
      reply: [2],
      after: having([{ id: 'x', at: NOW + 9 }]),
      published: [],
    },
    {
      what: 'puts nothing back in the place of a message that is there no more',
      before: having([other]),
      items: [{ ...x, replaces: NOW + 1 }],
      reply: [3],
      after: having([other]),
      published: [],
    },
    {
      what: 'leaves a message that a consumer has until another time',
      before: having([{ id: 'x', until: NOW + 2 }]),
      items: [{ ...x, replaces: NOW + 1 }],
      reply: [0],
      after: having([{ id: 'x', until: NOW + 2 }]),
      published: [],
    },
  ]
  for (const { what, before, items, reply, after, published } of cases) {
    it(what, async () => {
      const queue = await rig.queue(before)
      const done = await run(rig.sender, restore, queue.keys, {
        channel: queue.channel,
        client: 'me',
        known: false,
        items: items.flatMap(item),
      })
      expect(done).to.deep.equal(reply)
      expect(await queue.read()).to.deep.equal(expected(after))
      expect(await queue.published()).to.deep.equal(published)
    })
  }

  it('puts a dead letter with a group among those without one, and its group into its record', async () => {
    const queue = await rig.queue(having([{ id: 'there', at: NOW + 1, priority: 2 }]))
    const args = { channel: queue.channel, client: 'me', known: false }
    const body = Buffer.from(`1 5 "no"\ntenant{"a":"b"}X`)
    const items = [raw('x'), Buffer.from(`0d6,${NOW + 9},2,,,9,9,`), body]
    const replacing = [raw('there'), Buffer.from(`0d6,${NOW + 9},0,,,0,0,${NOW + 1}`), Buffer.from('tenantY')]
    const done = await run(rig.sender, restore, queue.keys, { ...args, items: [...items, ...replacing] })
    expect(done).to.deep.equal([1, 2])
    const meta = (text: string): Buffer => Buffer.concat([Buffer.of(text.length), Buffer.from(text)])
    expect(await queue.read()).to.deep.equal(
      expected(
        having([
          {
            id: 'x',
            at: NOW + 9,
            attempts: 2,
            failures: '1 5 "no"\n',
            record: Buffer.concat([meta(',,9,6'), Buffer.from('tenant{"a":"b"}X')]),
          },
          { id: 'there', at: NOW + 9, record: Buffer.concat([meta(',,0,6'), Buffer.from('tenantY')]) },
        ]),
      ),
    )
  })

  it('applies neither a bound nor a pause: the messages were accepted before', async () => {
    const config: [Bytes, Bytes][] = [
      ['maxSize', '1'],
      ['addPaused', '1'],
      ['maxMessageBytes', '1'],
    ]
    const queue = await rig.queue(having([other], { config }))
    const long = { id: 'x', payload: 'long' }
    const done = await run(rig.sender, restore, queue.keys, {
      channel: queue.channel,
      client: 'me',
      known: false,
      items: item(long),
    })
    expect(done).to.deep.equal([1])
    expect(await queue.read()).to.deep.equal(expected(having([other, long], { config })))
  })

  it('writes all data of a message into the change stream, or only its id if the readers know it', async () => {
    const queue = await rig.queue(having([{ id: 'there' }], { config: [['changes', 'g,10,,1,e']] }))
    const args = { channel: queue.channel, client: 'me' }
    const two = [item({ id: 'a', payload: 'A' }), item({ id: 'there' }), item({ id: 'b' })].flat()
    await run(rig.sender, restore, queue.keys, { ...args, known: true, items: two })
    await run(rig.sender, restore, queue.keys, { ...args, known: false, items: item({ id: 'c', payload: 'C' }) })
    expect(await queue.changes()).to.deep.equal(['e me\ns,,,,1,2,0\nab', `e me\na,0,${NOW},0,1,1,2\n\0Cc`])
  })

  it('changes nothing when it may not publish', async () => {
    const queue = await rig.queue()
    const args = { channel: queue.channel, client: 'me', known: false, items: item(x) }
    const error = await rejection(rig.muted([], (sender) => run(sender, restore, queue.keys, args)))
    expect(error).to.be.an('error')
    expect(await queue.read()).to.deep.equal(expected({}))
  })
})
