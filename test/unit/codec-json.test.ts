import { expect } from 'chai'
import fc from 'fast-check'
import { MAX_DEPTH } from '../../src/codecs/codec.js'
import { codecs } from '../../src/codecs/index.js'
import { DecodeError, EncodeError } from '../../src/errors.js'
import { onlyDecodeErrors } from './fixtures/decoding.js'
import { cpuMsSince } from '../support/cpu.js'

const codec = codecs.json()
const roundTrip = (value: unknown) => codec.decode(codec.encode(value))

describe('json codec', () => {
  it('is frozen and has a name', () => {
    expect(codec.name).to.equal('json')
    expect(Object.isFrozen(codec)).to.equal(true)
  })

  it('gives back everything that JSON holds', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false, stringUnit: 'binary' }), (value) => {
        const bytes = codec.encode(value)
        expect(bytes.toString()).to.equal(JSON.stringify(value))
        expect(codec.decode(bytes)).to.deep.equal(JSON.parse(JSON.stringify(value)))
      }),
      { numRuns: 200 },
    )
  })

  it('writes plain JSON in UTF-8', () => {
    expect(codec.encode({ a: [1, 'é', null, true, 1.5], b: undefined }).toString()).to.equal(
      '{"a":[1,"é",null,true,1.5]}',
    )
    expect(codec.encode(new Date(0)).toString()).to.equal('"1970-01-01T00:00:00.000Z"')
    expect(codec.encode('\ud800').toString()).to.equal('"\\ud800"')
    expect(roundTrip('\ud800')).to.equal('\ud800')
  })

  it('reads JSON of others', () => {
    expect(codec.decode(Buffer.from(' { "a" : [ 1 , "\\u00e9" ] } '))).to.deep.equal({ a: [1, 'é'] })
  })

  const unencodable: [what: string, value: unknown, path: string, message: RegExp][] = [
    ['undefined', undefined, '$', /undefined/],
    ['NaN', { a: NaN }, '$.a', /NaN/],
    ['an infinity', [[-Infinity]], '$[0][0]', /-Infinity/],
    ['a bigint', { n: 1n }, '$.n', /1n/],
    ['a function', { a: [1, () => 1] }, '$.a[1]', /a function/],
    ['a symbol', Symbol('s'), '$', /a symbol/],
    ['a Map', { m: new Map() }, '$.m', /an object \(Map\)/],
    ['a Set', { s: new Set() }, '$.s', /an object \(Set\)/],
    ['bytes', { b: Buffer.of(1) }, '$.b', /an object \(Buffer\)/],
    ['a hole', [1, , 3], '$[1]', /undefined/], // eslint-disable-line no-sparse-arrays
    ['an invalid date', { at: new Date(NaN) }, '$.at', /an invalid Date/],
    ['a boxed number', { n: Object(5) as unknown }, '$.n', /an object \(Number\)/],
    ['an odd key', { 'a.b': { '': NaN } }, '$["a.b"][""]', /NaN/],
  ]
  for (const [what, value, path, message] of unencodable) {
    it(`refuses ${what} and names its path`, () => {
      expect(() => codec.encode(value))
        .to.throw(EncodeError, message)
        .that.includes({ path, code: 'ERR_ENCODE' })
    })
  }

  it('refuses cycles', () => {
    const cycle: unknown[] = []
    cycle.push({ cycle })
    expect(() => codec.encode(cycle)).to.throw(EncodeError, /contains itself/)
  })

  it('takes as many levels as it reads, and no more', () => {
    let deep: unknown = 1
    for (let i = 0; i < MAX_DEPTH; i++) deep = i % 2 ? [deep] : { a: deep }
    expect(roundTrip(deep)).to.deep.equal(deep)
    expect(() => codec.encode([deep])).to.throw(EncodeError, /nests deeper/)
    expect(() => codec.decode(Buffer.from(`[${JSON.stringify(deep)}]`))).to.throw(DecodeError, /nest deeper/)
  })

  it('refuses deep nesting at once', () => {
    const started = process.cpuUsage()
    for (const open of ['[', '{"a":', '[{"a":']) {
      expect(() => codec.decode(Buffer.from(open.repeat(1_000_000)))).to.throw(DecodeError, /nest deeper/)
    }
    expect(cpuMsSince(started)).to.be.below(5_000)
  })

  it('counts brackets in strings for nothing', () => {
    const texts = ['['.repeat(1000), '{"'.repeat(500), '\\"['.repeat(300), ']'.repeat(200), '\\', '\\\\"']
    expect(roundTrip(texts)).to.deep.equal(texts)
    expect(roundTrip(Array.from({ length: 1000 }, () => [[{}]]))).to.have.length(1000)
  })

  it('refuses every truncation', () => {
    const bytes = codec.encode({ text: 'hé"llo', list: [1, -1.5, null, true], nested: { a: [{}] } })
    for (let length = 0; length < bytes.length; length++) {
      expect(() => codec.decode(bytes.subarray(0, length)), `${length} bytes`).to.throw(DecodeError)
    }
  })

  it('refuses bytes that are not UTF-8', () => {
    for (const bytes of ['22ff22', '22c08022', '22eda08022', '22e28222']) {
      expect(() => codec.decode(Buffer.from(bytes, 'hex'))).to.throw(DecodeError, /not valid UTF-8/)
    }
  })

  it('never fails in another way than with a DecodeError', () => {
    onlyDecodeErrors(
      codec,
      fc.json().map((text) => Buffer.from(text)),
    )
  })

  it('sets no prototype', () => {
    const value = codec.decode(Buffer.from('{"__proto__":{"polluted":true},"a":1}')) as Record<string, unknown>
    expect(Object.getPrototypeOf(value)).to.equal(Object.prototype)
    expect(value.polluted).to.equal(undefined)
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined)
    expect(codec.encode(value).toString()).to.equal('{"__proto__":{"polluted":true},"a":1}')
  })
})
