import { expect } from 'chai'
import type { Cluster } from 'ioredis'
import { askSideBySide } from '../../src/redis/topology/slot-requests.js'

type Callback = (error?: Error | null) => void

/** As ioredis goes through its nodes: to the next one when one has failed. */
class FakeCluster {
  isRefreshing = false
  readonly #count: number
  readonly #answer: (callback: Callback) => void

  constructor(count: number, answer: (callback: Callback) => void) {
    this.#count = count
    this.#answer = answer
  }

  on(): void {}

  nodes(): unknown[] {
    return Array.from({ length: this.#count })
  }

  getInfoFromNode(_: unknown, callback: Callback): void {
    this.#answer(callback)
  }

  refreshSlotsCache(callback: Callback = () => {}): void {
    this.isRefreshing = true
    const tryNode = (index: number): void => {
      if (index < this.#count) this.getInfoFromNode({}, (error) => (error ? tryNode(index + 1) : callback()))
      else callback(new Error('all failed'))
    }
    tryNode(0)
  }
}

function refreshed(cluster: FakeCluster): Promise<Error | undefined> {
  return new Promise((resolve) => cluster.refreshSlotsCache((error) => resolve(error ?? undefined)))
}

describe('requests for the slots', () => {
  it('are given up by a client that knows thousands of nodes', async () => {
    const cluster = new FakeCluster(20_000, () => {}) // silent
    const giveUp = askSideBySide(cluster as unknown as Cluster)
    const refreshing = refreshed(cluster)
    giveUp()
    expect((await refreshing)?.message).to.equal('all failed')
  })

  it('go to a part of the nodes where a table named thousands that are not there', async () => {
    let requests = 0
    const cluster = new FakeCluster(2_000, (callback) => {
      requests++
      setImmediate(callback, new Error('refused'))
    })
    askSideBySide(cluster as unknown as Cluster)
    expect((await refreshed(cluster))?.message).to.equal('all failed')
    expect(requests).to.be.at.most(100)
  })
})
