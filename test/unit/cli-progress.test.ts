import { expect } from 'chai'
import { Progress } from '../../src/cli/progress.js'

describe('the progress line', () => {
  /** The output on a stderr that is a terminal, or not. */
  function written(isTTY: boolean, action: () => void): string {
    const { stderr } = process
    const before = { write: Object.getOwnPropertyDescriptor(stderr, 'write'), isTTY: stderr.isTTY }
    let text = ''
    try {
      stderr.isTTY = isTTY
      stderr.write = (part: string | Uint8Array) => Boolean((text += String(part)))
      action()
    } finally {
      stderr.isTTY = before.isTTY
      if (before.write) Object.defineProperty(stderr, 'write', before.write)
      else Reflect.deleteProperty(stderr, 'write')
    }
    return text
  }

  it('is overwritten and cleared on a terminal, without control characters of the text', () => {
    const text = written(true, () => {
      const progress = new Progress(0)
      progress.show('queue 1 of 2, a\x1b[31mb\nc')
      progress.show('too soon after the first')
      progress.clear()
      progress.clear()
    })
    expect(text).to.equal('\r\x1b[2Kqueue 1 of 2, a\\u001b[31mb c\r\x1b[2K')
  })

  it('is not there in the first moment, and never if the output is not a terminal', () => {
    const show = (quietMs?: number) => () => {
      const progress = new Progress(quietMs)
      progress.show('x')
      progress.clear()
    }
    expect(written(true, show())).to.equal('')
    expect(written(false, show(0))).to.equal('')
  })
})
