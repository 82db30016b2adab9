import { expect } from 'chai'
import { ChangesLostError, CommandError, ConnectionError, InternalError } from '../../src/errors.js'
import { ChangeReader, type ReaderParams } from '../../src/reliable/change-stream/change-reader.js'
import type { Start } from '../../src/reliable/change-stream/open-stream.js'
import type { ReliableChangeStore, StreamEntry } from '../../src/store/reliable-change-store.js'
import type { OpenReply } from '../../src/store/reliable-change-scripts.js'

const ENTRY: StreamEntry = { id: '5-0', value: Buffer.from('e me\na,,5,0,1,1,0\nx'), isGone: false }
const OK: OpenReply = { outcome: 'ok', after: '0-0', epoch: 'me' }

function readerWith(
  store: Partial<ReliableChangeStore>,
  start: Start,
  reader: ReaderParams['reader'],
  errors: unknown[],
): ChangeReader {
  return new ChangeReader({
    store: store as ReliableChangeStore,
    handle: {
      name: 'q',
      context: { hub: { emit: (_name: string, error: unknown) => errors.push(error) } } as never,
      withQueueName: (error) => error,
    },
    start,
    reader,
    claimAfterMs: 60_000,
    signal: new AbortController().signal,
  })
}

/** A reader of a group that is removed before the first read; `opened` is what the store replies about opening, in turn. */
async function readerOf(start: Start, opened: (OpenReply | Error)[]) {
  const froms: string[] = []
  const errors: unknown[] = []
  let reads = 0
  const store: Partial<ReliableChangeStore> = {
    open: async (_group, from) => {
      froms.push(from)
      const reply = opened.shift()
      if (reply === undefined || reply instanceof Error) throw reply ?? new Error('opened too often')
      return reply
    },
    readOwn: async () => [],
    readNew: async () => {
      if (reads++ === 0) throw new CommandError('NOGROUP', 'NOGROUP No such key')
      return [ENTRY]
    },
  }
  const reader = readerWith(store, start, { group: 'g', consumer: 'c' }, errors)
  await reader.open()
  return { froms, errors, next: () => reader.read().next() }
}

describe('a reader whose group is removed', () => {
  it('makes it again, at the start of the stream, as often as that fails', async () => {
    const down = new ConnectionError('down', 'unknown')
    const { froms, errors, next } = await readerOf('end', [OK, down, down, OK])
    expect(await next()).to.have.nested.property('value.position.id', '5-0')
    expect(froms).to.deep.equal(['end', 'start', 'start', 'start'])
    expect(errors).to.deep.equal([down, down])
  })

  it('ends when the stream does not have the position any more where it began', async () => {
    const { errors, next } = await readerOf({ epoch: 'e', id: '1-0' }, [OK, { outcome: 'trimmed' }])
    const error = await next().catch((thrown: unknown) => thrown)
    expect(error).to.be.instanceOf(ChangesLostError)
    expect(errors).to.deep.equal([])
  })
})

describe('a reader that does not understand a reply', () => {
  const wrong = () => new InternalError('unexpected-reply', 'expected an id')
  const readerOfItself = async (readAfter: ReliableChangeStore['readAfter']) => {
    const errors: unknown[] = []
    const reader = readerWith({ open: async () => OK, readAfter }, 'start', undefined, errors)
    await reader.open()
    return { errors, next: () => reader.read().next() }
  }

  it('reads again from its place', async () => {
    const places: string[] = []
    const { errors, next } = await readerOfItself(async (after) => {
      places.push(after)
      if (places.length < 5) throw wrong()
      return [ENTRY]
    })
    expect(await next()).to.have.nested.property('value.position.id', '5-0')
    expect(places).to.deep.equal(Array(5).fill('0-0'))
    expect(errors).to.have.length(4)
  })

  it('does not count those before another failure', async () => {
    let reads = 0
    const { errors, next } = await readerOfItself(async () => {
      if (++reads === 4) throw new ConnectionError('down', 'unknown')
      if (reads < 6) throw wrong()
      return [ENTRY]
    })
    expect(await next()).to.have.nested.property('value.position.id', '5-0')
    expect(errors).to.have.length(5)
  })

  it('ends when it does not understand five in a row', async () => {
    const { errors, next } = await readerOfItself(async () => {
      throw wrong()
    })
    expect(await next().catch((thrown: unknown) => thrown)).to.be.instanceOf(InternalError)
    expect(errors).to.have.length(4)
  })
})

describe('a reader that got an id far ahead of the clock', () => {
  const idsOf = async (pages: string[][], opened: OpenReply[]) => {
    const places: string[] = []
    const errors: unknown[] = []
    const store: Partial<ReliableChangeStore> = {
      open: async () => opened.shift() ?? OK,
      readAfter: async (after) => {
        places.push(after)
        return (pages.shift() ?? []).map((id) => ({ ...ENTRY, id }))
      },
    }
    const reader = readerWith(store, 'start', undefined, errors)
    await reader.open()
    const got: string[] = []
    for await (const { position } of reader.read()) {
      got.push(position.id)
      if (position.id === '7-0') break
    }
    return { got, places, errors }
  }
  const AHEAD = '97960000000000-0'
  const end = (after: string, epoch = 'me'): OpenReply => ({ outcome: 'ok', after, epoch })

  it('goes on after the last id that was not, if the epoch is the same', async () => {
    const { got, places } = await idsOf([['3-0'], ['5-0', AHEAD], [], ['6-0', '7-0']], [OK, end('6-0'), end('6-0')])
    expect(places).to.deep.equal(['0-0', '3-0', AHEAD, '5-0'])
    expect(got).to.deep.equal(['3-0', '5-0', '6-0', '7-0'])
  })

  it('asks again where to begin', async () => {
    const { places } = await idsOf([['7-0']], [end(AHEAD), end('5-0')])
    expect(places).to.deep.equal(['5-0'])
  })

  it('begins anew if the epoch is another one', async () => {
    const { places } = await idsOf([['3-0'], [AHEAD], [], ['7-0']], [OK, end('6-0', 'new'), end('6-0', 'new')])
    expect(places).to.deep.equal(['0-0', '3-0', AHEAD, '0-0'])
  })

  it('stays at its place if only one reply says that the stream ends before it', async () => {
    const { places } = await idsOf([[AHEAD], [], ['99960000000000-0'], [], ['7-0']], [OK, end('1-0'), end(AHEAD)])
    expect(places.slice(0, 3)).to.deep.equal(['0-0', AHEAD, AHEAD])
  })

  it('refuses a page whose last id is not after its place', async () => {
    const { got, places, errors } = await idsOf([['3-0'], ['5-0', '1-0'], ['5-0', '7-0']], [OK])
    expect(places).to.deep.equal(['0-0', '3-0', '3-0'])
    expect(got).to.deep.equal(['3-0', '5-0', '7-0'])
    expect(errors).to.have.length(1)
  })
})

describe('a reader at a server that is silent', () => {
  const silent = new Promise<never>(() => {})
  const places: Record<string, Partial<ReliableChangeStore>> = {
    'when it begins': { open: () => silent },
    'when it reads': { open: async () => OK, readAfter: () => silent },
  }
  for (const [when, store] of Object.entries(places)) {
    it(`ends by its signal ${when}`, async () => {
      const ending = new AbortController()
      const reader = new ChangeReader({
        store: store as ReliableChangeStore,
        handle: { name: 'q', context: {} as never, withQueueName: (error) => error },
        start: 'end',
        reader: undefined,
        claimAfterMs: 60_000,
        signal: ending.signal,
      })
      const ended = reader
        .open()
        .then(() => reader.read().next())
        .catch((thrown: unknown) => thrown)
      setImmediate(() => ending.abort(new Error('enough')))
      expect(await ended).to.have.property('message', 'enough')
    })
  }
})
