import { expect } from 'chai'
import { InternalError } from '../../src/errors.js'
import * as replies from '../../src/store/replies.js'
import { commandArgs, script } from '../../src/store/script.js'
import { contains, find, transfer } from '../../src/store/scripts.js'

describe('decoders of replies', () => {
  const bytes = Buffer.from('12')
  const decoders: [decoder: (reply: unknown) => unknown, good: [reply: unknown, value: unknown][], bad: unknown[]][] = [
    [
      replies.asInteger,
      [
        [0, 0],
        [-1, -1],
        [2 ** 53 - 1, 2 ** 53 - 1],
        ['-12', -12], // of an ioredis client with `stringNumbers`
      ],
      [1.5, 2 ** 53, NaN, '1.5', '', 'x', bytes, null, undefined, [], 1n],
    ],
    [
      replies.asLargeInteger,
      [
        [5, 5],
        ['9007199254740991', 2 ** 53 - 1],
        [bytes, 12],
      ],
      [1.5, '1.5', 2 ** 53, '9007199254740992', '', 'x', 'inf', null, []],
    ],
    [
      replies.asLargeIntegerOrNull,
      [
        [null, null],
        [bytes, 12],
        [-2, -2],
      ],
      [undefined, 'x', 1.5],
    ],
    [replies.asBytes, [[bytes, bytes]], ['12', 12, null, undefined, [bytes], new Uint8Array(1)]],
    [
      replies.asBytesOrNull,
      [
        [bytes, bytes],
        [null, null],
      ],
      ['12', undefined],
    ],
    [
      replies.asText,
      [
        ['x', 'x'],
        ['', ''],
        [Buffer.from('é'), 'é'],
      ],
      [1, null, undefined, []],
    ],
    [
      replies.asNow,
      [
        ['1796000000000.25', 1796000000000.25],
        ['0', 0],
      ],
      ['inf', '1796000000000e250', '9796000000000000', '', 'x', 'nan', 5, null],
    ],
    [
      replies.asNumber,
      [
        ['1.5', 1.5],
        [bytes, 12],
        ['-3', -3],
        ['inf', Infinity],
        ['+inf', Infinity],
        ['-inf', -Infinity],
        ['1.5e+300', 1.5e300],
      ],
      ['', 'x', 'info', 'nan', null, 5, []],
    ],
    [
      replies.asStreamId,
      [
        ['0-0', '0-0'],
        ['9999999999999999999-5', '9999999999999999999-5'],
        [Buffer.from('18446744073709551615-18446744073709551615'), '18446744073709551615-18446744073709551615'],
      ],
      [
        '',
        '1',
        '1-',
        '-1',
        '1-x',
        'x-0',
        '1-1-1',
        ' 1-1',
        '1-1\n',
        '1'.repeat(21) + '-1',
        '18446744073709551616-0',
        '0-98446744073709551615',
        5,
        null,
      ],
    ],
    [
      replies.asArray,
      [
        [[], []],
        [
          [1, 'x'],
          [1, 'x'],
        ],
      ],
      [null, {}, 'x', 1],
    ],
    [
      replies.asBytesArray,
      [
        [[], []],
        [[bytes], [bytes]],
      ],
      [null, ['x'], [bytes, null]],
    ],
  ]
  for (const [decoder, good, bad] of decoders) {
    it(`${decoder.name} takes what it should`, () => {
      for (const [reply, value] of good) expect(decoder(reply)).to.deep.equal(value)
    })
    it(`${decoder.name} refuses everything else`, () => {
      for (const reply of bad) {
        expect(() => decoder(reply)).to.throw(
          InternalError,
          /^\[unexpected-reply\] expected an? ?\w+, the server replied |bytes/,
        )
      }
    })
  }

  it('do not show what the server replied', () => {
    const secret = 'card number '.repeat(10)
    expect(() => replies.asInteger(secret))
      .to.throw(InternalError)
      .with.property('message')
      .that.does.not.include('card')
    expect(() => replies.asBytes({ secret }))
      .to.throw(InternalError)
      .with.property('message')
      .that.does.not.include('card')
  })

  it('name the position at which a search continues', () => {
    expect(find.decode([0, 100])).to.deep.equal({ found: false, next: 100 })
    expect(find.decode([1, -1])).to.deep.equal({ found: true, next: null })
    expect(find.decode([0, -1])).to.deep.equal({ found: false, next: null })
    expect(contains.decode([-1, 100])).to.deep.equal({ index: null, next: 100 })
    expect(contains.decode([0, -1])).to.deep.equal({ index: 0, next: null })
    expect(() => find.decode('OK')).to.throw(InternalError)
    expect(() => contains.decode('OK')).to.throw(InternalError)
  })

  it('decode the reply of a transfer', () => {
    const reply: unknown[] = [
      3,
      Buffer.from('1700000000000'),
      Buffer.from('1700000000000.250'),
      Buffer.from('7'),
      1,
      2,
      20,
      Buffer.from(''),
      40,
      Buffer.from('other'),
      Buffer.from('1700000000025'),
      4,
      Buffer.from(''),
      5,
      Buffer.from('1700000000000'),
      Buffer.from('1700000000001'),
      6,
      Buffer.from(''),
    ]
    const value = {
      moved: 3,
      next: 1.7e12,
      now: 1700000000000.25,
      latenessMs: 7,
      malformed: 1,
      negative: 2,
      subscribers: 20,
      orderError: '',
      workedUs: 40,
      leader: 'other',
      leaseUntil: 1700000000025,
      orphans: 4,
      quarantineError: '',
      postponed: 5,
      largeHead: '1700000000000',
      largeFirst: '1700000000001',
      promoted: 6,
      wheelError: '',
    }
    expect(transfer.decode(reply)).to.deep.equal(value)
    expect(transfer.decode(reply.with(1, ''))).to.deep.equal({ ...value, next: null })
    for (const leader of ['self', 'none'])
      expect(transfer.decode(reply.with(9, leader))).to.deep.equal({ ...value, leader })
    expect(transfer.decode(reply.with(7, Buffer.from('WRONGTYPE')))).to.deep.equal({
      ...value,
      orderError: 'WRONGTYPE',
    })
    for (let at = 0; at < reply.length; at++)
      expect(() => transfer.decode(reply.with(at, null))).to.throw(InternalError)
    // what the client sends back with later transfers
    for (const at of [14, 15]) expect(() => transfer.decode(reply.with(at, Buffer.from('x')))).to.throw(InternalError)
  })
})

describe('arguments of scripts', () => {
  const source = {
    name: 'sample',
    sha1: '0',
    keys: ['second', 'first'],
    args: {
      flag: 'flag',
      text: 'text',
      integer: 'integer',
      number: 'number',
      bytes: 'bytes',
      texts: 'text*',
      many: 'bytes*',
    },
    source: '',
  } as const

  it('are in the order of the header, whatever the order of the object', () => {
    const args = {
      many: [new Uint8Array([1]), Buffer.from('x')],
      texts: ['a', 'b'],
      bytes: new Uint8Array([0, 255]),
      number: 1.5,
      integer: -1,
      text: 'te xt',
      flag: true,
    }
    expect(commandArgs(source, { first: 'k1', second: 'k2' }, args)).to.deep.equal([
      '2',
      'k2',
      'k1',
      '1',
      'te xt',
      '-1',
      '1.5',
      Buffer.of(0, 255),
      'a',
      'b',
      Buffer.of(1),
      Buffer.from('x'),
    ])
  })

  it('of flags are 1 and 0, and lists may be empty', () => {
    const args = { flag: false, text: '', integer: 2 ** 53 - 1, number: 0, bytes: Buffer.alloc(0), texts: [], many: [] }
    expect(commandArgs(source, { first: 'a', second: 'b' }, args)).to.deep.equal([
      '2',
      'b',
      'a',
      '0',
      '',
      '9007199254740991',
      '0',
      Buffer.alloc(0),
    ])
  })

  it('share the memory of byte arrays, and take parts of them', () => {
    const large = new Uint8Array([1, 2, 3, 4])
    const list = commandArgs(
      { name: 's', sha1: '', keys: [], args: { part: 'bytes' }, source: '' },
      {},
      { part: large.subarray(1, 3) },
    )
    expect(list).to.deep.equal(['0', Buffer.of(2, 3)])
    large[1] = 9
    expect(list[1]).to.deep.equal(Buffer.of(9, 3))
  })

  it('belong to a script that cannot be changed', () => {
    expect(Object.isFrozen(script(source, String))).to.equal(true)
  })
})
