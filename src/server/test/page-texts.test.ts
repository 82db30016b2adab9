import { expect } from 'chai'
import { ago, bytes, duration, fromLocalInput, iso, localInput, short } from '../ui/lib/format.js'
import { visible, visibleLine } from '../ui/lib/visible-text.js'
import { sinceOf } from '../ui/screens/dead-letters/since.js'

describe('texts of the page', () => {
  it('writes out characters that a reader would not see', () => {
    expect(visibleLine('a\u202eb\u200bc\u0000d\u001b[31m\u2028e\u{e0041}f\ud800g\u00adh')).to.equal(
      String.raw`a\u202eb\u200bc\u0000d\u001b[31m\u2028e\u{e0041}f\ud800g\u00adh`,
    )
    expect(visibleLine('a\tb\nc\r')).to.equal(String.raw`a\tb\nc\r`)
    expect(visibleLine('Grüße, 世界, שלום, 😀 <script>')).to.equal('Grüße, 世界, שלום, 😀 <script>')
  })

  it('keeps tabs and line feeds in a block, and marks the characters that it has written out', () => {
    expect(visible('a\n\tb\u202ec', 100, true)).to.deep.equal({
      parts: [
        { text: 'a\n\tb', isEscape: false },
        { text: String.raw`\u202e`, isEscape: true },
        { text: 'c', isEscape: false },
      ],
      cut: 0,
    })
  })

  it('cuts a text of any length, and makes few parts of any text', () => {
    expect(visible('x'.repeat(1_000_000), 200)).to.deep.equal({
      parts: [{ text: 'x'.repeat(200), isEscape: false }],
      cut: 999_800,
    })
    const { parts } = visible('\u202e'.repeat(60_000), 65_536)
    expect(parts.length).to.equal(1)
    expect(parts[0]?.text.slice(0, 12)).to.equal(String.raw`\u202e\u202e`)
  })

  it('writes durations, sizes and counts in short', () => {
    expect([0, 999, 1_500, 12_000, 200_000, 3_600_000, 187_200_000].map(duration)).to.deep.equal([
      '0 ms',
      '999 ms',
      '1.5 s',
      '12 s',
      '3 m 20 s',
      '1 h',
      '2 d 4 h',
    ])
    expect([0, 1_023, 1_536, 16_777_216].map(bytes)).to.deep.equal(['0 B', '1023 B', '1.5 KiB', '16 MiB'])
    expect([9_999, 12_345, 1_284_201].map(short)).to.deep.equal(['9,999', '12.3 k', '1.3 M'])
    expect([ago(5_000, 0), ago(0, 5_000), ago(100, 0)]).to.deep.equal(['in 5 s', '5 s ago', 'now'])
  })

  it('gives the instant of a time that was typed in the zone of the reader', () => {
    const at = new Date(2026, 10, 24, 7, 5, 9).getTime()
    expect(localInput(at)).to.equal('2026-11-24T07:05:09')
    expect(fromLocalInput('2026-11-24T07:05:09')).to.equal(at)
    expect([fromLocalInput(''), fromLocalInput('no time')]).to.deep.equal([undefined, undefined])
    expect([iso(0), iso(Number.NaN), iso(9e15)]).to.deep.equal(['1970-01-01T00:00:00.000Z', '', ''])
  })

  it('begins "since yesterday" at its midnight in the zone of the reader', () => {
    const now = new Date(2026, 10, 24, 7, 5, 9).getTime()
    expect(sinceOf('yesterday', now)).to.equal(new Date(2026, 10, 23).getTime())
    expect(sinceOf('today', now)).to.equal(new Date(2026, 10, 24).getTime())
    expect([sinceOf('', now), sinceOf('x', now), sinceOf('-1', now), sinceOf('5', now)]).to.deep.equal([
      undefined,
      undefined,
      undefined,
      5,
    ])
  })
})
