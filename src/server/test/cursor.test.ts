import { expect } from 'chai'
import { cursorText, readCursor, type CursorPart } from '../topics/cursor.js'
import { TopicError } from '../topics/errors.js'

const code = (text: string, parts: readonly CursorPart[]): string => {
  try {
    return JSON.stringify(readCursor(text, parts))
  } catch (thrown) {
    return thrown instanceof TopicError ? thrown.code : String(thrown)
  }
}
const textOf = (place: string): string => Buffer.from(place, 'latin1').toString('base64url')

describe('a cursor', () => {
  it('is a place that comes back as it was, also with ids of any characters', () => {
    for (const [place, parts] of [
      [[0], ['number']],
      [
        [255, 1_000_000],
        [{ most: 255 }, 'number'],
      ],
      [
        ['', Number.MAX_SAFE_INTEGER],
        ['string', 'number'],
      ],
      [
        ['t'.repeat(128), '\u0001"\\;:'.repeat(100)],
        ['string', 'string'],
      ],
      [
        ['orders', 'ü'.repeat(288)],
        ['string', 'string'],
      ],
      [
        [7, 'a', 9],
        ['number', 'string', 'number'],
      ],
    ] as const) {
      const text = cursorText(place)
      expect(text).to.match(/^[A-Za-z0-9_-]{1,1334}$/)
      expect(readCursor(text, parts)).to.deep.equal(place)
    }
  })

  it('is refused if the listing cannot have returned it', () => {
    for (const [text, parts] of [
      ['', ['number']],
      ['x', ['number']],
      ['!', ['number']],
      [`${cursorText([1])}=`, ['number']],
      [`${cursorText([1])} `, ['number']],
      [cursorText([1]), ['string']],
      [cursorText(['1']), ['number']],
      [cursorText([1, 2]), ['number']],
      [cursorText([1]), ['number', 'number']],
      [cursorText([256]), [{ most: 255 }]],
      [cursorText([2 ** 53]), ['number']],
      [cursorText([1e300]), ['number']],
      [cursorText([-1]), ['number']],
      [cursorText([1.5]), ['number']],
      [textOf('01;'), ['number']],
      [textOf('1'), ['number']],
      [textOf('9:abc'), ['string']],
      [textOf('2:abc'), ['string']],
      [textOf('1:\xff'), ['string']],
      [textOf('1:\xc3\xa9'), ['string']],
      [cursorText(['x'.repeat(1_000)]), ['string']],
      ['A'.repeat(10_000), ['string']],
    ] as const)
      expect(code(text, parts), text).to.equal('ERR_CURSOR')
  })
})
