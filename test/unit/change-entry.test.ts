import { expect } from 'chai'
import fc from 'fast-check'
import { DecodeError } from '../../src/errors.js'
import { readEntry } from '../../src/reliable/change-stream/change-entry.js'

const entry = (text: string): Buffer => Buffer.from(text, 'latin1')

describe('an entry of the change stream', () => {
  it('has parts with ids of one length', async () => {
    expect(await readEntry(entry('e-1 me\na,,1000,9,2,2,0\na1a2p,3,2000,9,1,1,0\nbk,,,,2,1,0\na1'))).to.deep.equal({
      epoch: 'e-1',
      client: 'me',
      changes: [
        { change: 'added', id: 'a1', dueAt: 1000, priority: 9 },
        { change: 'added', id: 'a2', dueAt: 1000, priority: 9 },
        { change: 'polled', id: 'b', attempt: 3, dueAt: 2000, priority: 9 },
        { change: 'acknowledged', id: 'a1' },
      ],
    })
  })

  it('has reasons, names, times and records', async () => {
    const { changes } = await readEntry(
      entry(
        'e me\nf,1,5,,1,1,5\n"why"ad,2,,,1,1,2\n""bm,,,,1,1,3\n"q"cr,,7,1,1,1,2\n99du,,,,1,1,12\n\x056,3,2{}datae' +
          'c,,,,0,1,0\ns,,,,1,1,0\nf',
      ),
    )
    expect(
      changes.map(({ payload, headers: _, ...rest }) => ({ ...rest, payload: payload?.toString() })),
    ).to.deep.equal([
      { change: 'failed', id: 'a', attempt: 1, dueAt: 5, error: 'why', payload: undefined },
      { change: 'dead', id: 'b', attempt: 2, payload: undefined },
      { change: 'moved', id: 'c', to: 'q', payload: undefined },
      { change: 'rescheduled', id: 'd', dueAt: 7, priority: 1, expiresAt: 99, payload: undefined },
      { change: 'updated', id: 'e', expiresAt: 6, deliveryLimit: 3, payload: 'data' },
      { change: 'cleared', id: '', payload: undefined },
      { change: 'restored', id: 'f', payload: undefined },
    ])
  })

  it('has the bytes of a progress', async () => {
    const { changes } = await readEntry(entry('e me\ng,2,,,1,1,3\n\xff\n\0a'))
    expect(changes).to.deep.equal([{ change: 'progress', id: 'a', attempt: 2, progress: entry('\xff\n\0') }])
  })

  it('leaves out the data of another program in a schedule or a record', async () => {
    const { changes } = await readEntry(entry('e me\nf,1e999,-inf,,1,1,0\naa,,x,0,1,1,3\n\x09zzb'))
    expect(changes).to.deep.equal([
      { change: 'failed', id: 'a' },
      { change: 'added', id: 'b', priority: 0 },
    ])
  })

  it('reads no JSON but that of a text as JSON, and no reason that is longer than any', async () => {
    const bomb = '[' + '[],'.repeat(100_000) + '[]]'
    const long = `"${'x'.repeat(100_000)}"`
    const parse = JSON.parse
    const parsed: number[] = []
    JSON.parse = (text: string) => {
      parsed.push(text.length)
      return parse(text) as unknown
    }
    try {
      for (const [kind, extra] of [
        ['f', bomb],
        ['d', bomb],
        ['m', bomb],
        ['f', long],
        ['m', long],
      ]) {
        const { changes } = await readEntry(entry(`e me\n${kind},1,,,1,1,${extra?.length}\n${extra}x`))
        expect(changes[0]?.error?.length ?? 0).to.be.lessThan(10_000)
      }
    } finally {
      JSON.parse = parse
    }
    expect(parsed).to.deep.equal([65_536, 65_536])
  })

  const unreadable: [what: string, text: string][] = [
    ['nothing', ''],
    ['no line', 'x'],
    ['no client', 'epoch\n'],
    ['an epoch that is too long', `${'e'.repeat(33)} me\n`],
    ['a line without an end', `e me\n${'a'.repeat(10_000)}`],
    ['an unknown kind', 'e me\nz,,,,1,1,0\na'],
    ['too few numbers', 'e me\na,,,,1,1\na'],
    ['fewer ids than it says', 'e me\na,,,,2,2,0\nabc'],
    ['a shorter extra than it says', 'e me\na,,,,1,1,5\nabc'],
    ['none', 'e me\nk,,,,1,0,0\n'],
    ['a bomb of empty ids', 'e me\nk,,,,0,999999999,0\n'],
    ['more ids without bytes than there are schedules', 'e me\nk,,,,0,17,0\n'],
    ['more than any script changes', `e me\nk,,,,1,10001,0\n${'a'.repeat(10_001)}`],
    ['numbers beyond all', `e me\nk,,,,999999999,999999999,999999999\na`],
  ]
  for (const [what, text] of unreadable) {
    it(`refuses ${what}`, async () => {
      const error: unknown = await readEntry(entry(text)).catch((thrown: unknown) => thrown)
      expect(error).to.be.instanceOf(DecodeError)
    })
  }

  it('yields to other work while the headers of many records are read, and continues with its result', async () => {
    const headers = `{${Array.from({ length: 6_000 }, (_, n) => `"${n}":""`).join(',')}}`
    const record = `${String.fromCharCode(2 + String(headers.length).length)},,${headers.length}${headers}`
    const records = 100
    const part = `a,,,0,1,1,${record.length}\n${record}x`
    let turns = 0
    let isRead = false
    const count = (): void => {
      turns++
      if (!isRead) setImmediate(count)
    }
    setImmediate(count)
    const startedAt = process.cpuUsage()
    const { changes } = await readEntry(entry(`e me\n${part.repeat(records)}`))
    const { user } = process.cpuUsage(startedAt)
    isRead = true
    expect(changes).to.have.length(records)
    expect(turns, `${user / 1_000} ms`).to.be.at.least(2)
  })

  it('refuses or reads any bytes, and makes no more of them than they are', async () => {
    const piece = fc.constantFrom(
      'e me\n',
      'a',
      'k',
      ',',
      '\n',
      '0',
      '1',
      '9',
      '{}',
      'k,,,,1,1,0\na',
      'a,,,,1,1,4\n\x01,',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async (pieces) => {
        const bytes = entry(`e me\n${pieces.join('')}`)
        try {
          expect((await readEntry(bytes)).changes.length).to.be.at.most(10_000)
        } catch (error) {
          expect(error).to.be.instanceOf(DecodeError)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})
