import { expect } from 'chai'
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import { pack, unpack, type Packed } from '../database/packed.js'

/** The values as another thread gets them. */
function sent(values: readonly unknown[]): unknown[] {
  const { port1, port2 } = new MessageChannel()
  const packed = pack(values)
  port1.postMessage(packed, [packed.buffer])
  const got = receiveMessageOnPort(port2) as { message: Packed }
  port1.close()
  return unpack(got.message)
}

describe('values on their way to another thread', () => {
  it('are the same there', () => {
    const [queue, empty] = [Buffer.from('orders'), Buffer.alloc(0)]
    const rows = [
      [],
      [null],
      ['a', 'b', 'a', '', 'ü€'],
      [0, -1, 0.5, -0, 2 ** 53 - 1, 8_640_000_000_000_000],
      [10n, true, false, 2n ** 63n],
      [queue, Buffer.from([1, 0, 255]), null, 'open', 1, queue, empty, queue, 'open', Buffer.from('orders')],
      [empty, queue, empty, queue],
    ]
    for (const row of rows) expect(sent(row)).to.deep.equal(row)
    expect(sent([new Uint8Array([7])])).to.deep.equal([Buffer.from([7])])
  })

  it('are many rows of one queue', () => {
    const queue = Buffer.from('orders')
    const rows = Array.from({ length: 5_000 }, (_, at) => [queue, Buffer.from(`id${at}`), 'accepted', at, null])
    expect(sent(rows.flat())).to.deep.equal(rows.flat())
  })
})
