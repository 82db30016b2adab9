import { expect } from 'chai'
import { readJson } from '../api/strict-json.js'
import type { BadRequest } from '../api/problem.js'

const read = (text: string): unknown => {
  try {
    return readJson(Buffer.from(text))
  } catch (thrown) {
    return (thrown as BadRequest).code
  }
}

describe('JSON that is read strictly', () => {
  it('ends a text at its own quote, whatever is escaped before it', () => {
    for (const text of ['', '\\', '"', '\\"', 'a\\\\"b', '\\"\\', ' \u2028é"€\\', '"'.repeat(50), '\\'.repeat(51)]) {
      const value = { [text]: [text, text, { a: text }], b: text }
      expect(read(JSON.stringify(value)), text).to.deep.equal(value)
    }
    // escaped quotes do not end a text: the second key belongs to the outer object
    expect(read('{"a":"\\\\","a":1}')).to.equal('repeated-key')
    expect(read('{"a":"\\\\\\",\\"a\\":1"}')).to.deep.equal({ a: '\\","a":1' })
    expect(read('{"\\u0061":1,"a":2}')).to.equal('repeated-key')
    for (const text of ['"', '"\\', '"\\"', '"\\\\\\', '{"a\\', '{"a\\"'])
      expect(read(text), text).to.equal('malformed-json')
  })

  it('finds a repeated key among few and among many, and in each object anew', () => {
    const keys = (count: number): string => Array.from({ length: count }, (_, at) => `"k${at}":{"k":1}`).join()
    for (const count of [2, 15, 16, 17, 18, 500]) {
      expect(read(`{${keys(count)}}`), String(count)).to.be.an('object')
      for (const at of [0, count - 1]) expect(read(`{${keys(count)},"k${at}":1}`), `${at}`).to.equal('repeated-key')
    }
    expect(read('[{"a":1},{"a":{"a":[{"a":2}]}}]')).to.deep.equal([{ a: 1 }, { a: { a: [{ a: 2 }] } }])
  })

  it('refuses numbers that a double cannot hold', () => {
    for (const number of ['-0', '9007199254740993', '1e400', '1e-400'])
      expect(read(number), number).to.equal('unsafe-number')
    for (const number of ['0', '-1', '-10', '123456789012345', '-12345678901234', '9007199254740991', '0.5', '-1e5'])
      expect(read(number), number).to.equal(Number(number))
  })
})
