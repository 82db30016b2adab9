import { expect } from 'chai'
import type { ReconnectingEvent } from '../../src/index.js'
import { ReconnectingConnection } from '../../src/redis/connections/reconnecting-connection.js'
import { ClientEndedError, NodeGoneError } from '../../src/redis/topology/topology.js'

describe('ReconnectingConnection', () => {
  function linkThat(open: () => never, onReconnecting: (event: ReconnectingEvent) => void = () => {}) {
    const emit = (name: string, event: unknown): void => {
      if (name === 'reconnecting') onReconnecting(event as ReconnectingEvent)
    }
    return new ReconnectingConnection({ role: 'blocking', address: 'nowhere', open, connectTimeout: 5_000, emit })
  }

  it('does not search for a node that is gone until a caller asks again', async () => {
    let opened = 0
    const link = linkThat(
      () => {
        opened++
        throw new NodeGoneError('127.0.0.1:1')
      },
      () => expect.fail('it goes on'),
    )
    for (const attempt of [1, 2]) {
      expect(await link.get().catch((error: unknown) => error)).to.be.instanceOf(NodeGoneError)
      expect(opened).to.equal(attempt)
    }
    await link.close()
  })

  it('rejects at once where the client of the user has ended', async () => {
    const link = linkThat(() => {
      throw new ClientEndedError(undefined)
    })
    const began = performance.now()
    expect(await link.get().catch((error: unknown) => error)).to.be.instanceOf(ClientEndedError)
    expect(performance.now() - began).to.be.below(4_000) // of five seconds
    await link.close()
  })

  it('can be closed by the listener of its retry', async () => {
    let closing: Promise<void> | undefined
    const link = linkThat(
      () => {
        throw new Error('no server is there')
      },
      () => {
        closing = link.close()
      },
    )
    await link.get().catch(() => undefined)
    // the first pause is longer than this, also on a machine that is late with both
    let timer: NodeJS.Timeout | undefined
    const pause = new Promise((resolve) => (timer = setTimeout(resolve, 10, 'it still waits')))
    expect(await Promise.race([closing, pause])).to.equal(undefined)
    clearTimeout(timer)
  })
})
