import { expect } from 'chai'
import type { Cluster, Redis } from 'ioredis'
import { StrangerWatch } from '../../src/redis/topology/stranger-watch.js'
import { FakeClock } from '../support/fake-clock.js'

const idOf = (letter: string): string => letter.repeat(40)
const OWN = new Set(['a', 'b'].map(idOf))

/** An id, or an error. */
type Answer = string | Error

function setUp() {
  const clock = new FakeClock()
  const found: number[] = []
  const left: string[][] = []
  let asked = 0
  const nodeWith = (port: number, first: Answer) => {
    const node = {
      status: 'ready',
      stream: { remoteAddress: '10.0.0.1', remotePort: port },
      answer: first,
      cluster: async (): Promise<string> => {
        asked++
        if (node.answer instanceof Error) throw node.answer
        return node.answer
      },
    }
    return node
  }
  const nodes: ReturnType<typeof nodeWith>[] = []
  const ids = new Set(OWN)
  const watch = new StrangerWatch({
    cluster: { nodes: () => nodes } as unknown as Cluster,
    ids: () => ids,
    onFound: () => found.push(clock.now()),
    onLeft: (own) => left.push([...own]),
    clock,
  })
  const add = async (port: number, answer: Answer) => {
    const node = nodeWith(port, answer)
    nodes.push(node)
    await watch.onReady(node as unknown as Redis)
    return node
  }
  const remove = (node: ReturnType<typeof nodeWith>): void => void nodes.splice(nodes.indexOf(node), 1)
  const advance = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 500) await clock.advance(500)
  }
  watch.begin()
  return { clock, watch, found, left, add, remove, advance, ids, asked: () => asked }
}

describe('the watch for nodes of another cluster', () => {
  it('asks own nodes once a minute, and reports nothing', async () => {
    const { found, left, add, advance, asked } = setUp()
    await add(1, idOf('a'))
    await add(2, idOf('b'))
    await advance(5_000)
    const before = asked()
    await advance(600_000)
    expect(asked() - before).to.equal(20)
    expect([found, left]).to.deep.equal([[], []])
  })

  it('asks for the slots when a node is a stranger, again after 5, 10, 20 and 40 seconds, and then each minute', async () => {
    const { found, add, advance } = setUp()
    await add(1, idOf('f'))
    await advance(200_000)
    expect(found).to.deep.equal([0, 5_000, 15_000, 35_000, 75_000, 135_000, 195_000])
  })

  it('says that the strangers are gone, with the addresses of own nodes', async () => {
    const { left, add, remove, advance } = setUp()
    const stranger = await add(9, idOf('f'))
    await advance(2_000)
    remove(stranger)
    await add(1, idOf('a'))
    await add(3, new Error('Connection is closed.'))
    await advance(1_500)
    expect(left).to.deep.equal([['10.0.0.1:1']])
    await advance(200_000)
    expect(left).to.have.length(1)
  })

  for (const [what, error] of [
    ['breaks', new Error('Connection is closed.')],
    [
      'answers LOADING',
      Object.assign(new Error('LOADING Redis is loading the dataset in memory'), { name: 'ReplyError' }),
    ],
  ] as const) {
    it(`stays in doubt when a stranger ${what}`, async () => {
      const { found, left, add, advance } = setUp()
      const stranger = await add(9, idOf('f'))
      stranger.answer = error
      await advance(60_000)
      expect(left).to.deep.equal([])
      stranger.answer = idOf('f')
      const before = found.length
      await advance(60_000)
      expect(found.length).to.be.greaterThan(before)
    })
  }

  it('asks nodes that refuse the command ever less often, at least once an hour', async () => {
    const { add, advance, asked } = setUp()
    await add(1, new Error("NOPERM User default has no permissions to run the 'cluster|myid' command"))
    await advance(200_000)
    expect(asked()).to.equal(3)
    await advance(12 * 3_600_000)
    expect(asked()).to.be.within(16, 20)
  })

  for (const refusal of [
    "NOPERM User default has no permissions to run the 'cluster|myid' command",
    "ERR unknown command 'CLUSTER'",
  ]) {
    it(`finds a stranger that answered "${refusal.slice(0, 11)}" for a while`, async () => {
      const { found, left, add, remove, advance } = setUp()
      const stranger = await add(9, new Error(refusal))
      await advance(30_000)
      stranger.answer = idOf('f')
      await advance(50_000)
      expect(found).to.have.length(1)
      remove(stranger)
      await add(1, idOf('a'))
      await advance(1_500)
      expect(left).to.have.length(1)
    })
  }

  it('says which nodes are own ones when one that never named itself is gone, once all others have', async () => {
    const { found, left, add, remove, advance } = setUp()
    const silent = await add(9, new Error('Connection is closed.'))
    await advance(10_000)
    remove(silent)
    await add(1, idOf('a'))
    const slow = await add(2, new Error('Connection is closed.'))
    await advance(100_000)
    expect(left).to.deep.equal([])
    slow.answer = idOf('b')
    await advance(60_000)
    expect(left).to.deep.equal([['10.0.0.1:1', '10.0.0.1:2']])
    await advance(200_000)
    expect(left).to.have.length(1)
    expect(found).to.deep.equal([])
  })

  it('says nothing when there was no table yet, and then does not wait for nodes without a connection', async () => {
    const { left, add, remove, advance, ids } = setUp()
    ids.clear()
    await add(1, idOf('a'))
    for (const id of OWN) ids.add(id)
    await advance(100_000)
    expect(left).to.deep.equal([])
    remove(await add(9, new Error('Connection is closed.')))
    const first = await add(2, idOf('b'))
    first.status = 'wait'
    await advance(200_000)
    expect(left).to.deep.equal([['10.0.0.1:1']])
  })

  it('goes on while nodes come more often than it compares', async () => {
    const { left, add, remove, advance } = setUp()
    remove(await add(9, idOf('f')))
    for (let port = 1; port < 10; port++) {
      await add(port, idOf('a'))
      await advance(500)
    }
    expect(left).to.have.length(1)
  })

  it('ends, and begins again', async () => {
    const { watch, add, advance, asked } = setUp()
    await add(1, idOf('a'))
    watch.end()
    await advance(200_000)
    expect(asked()).to.equal(1)
    await add(2, idOf('f'))
    expect(asked()).to.equal(1)
    watch.begin()
    await advance(5_000)
    expect(asked()).to.equal(3)
  })
})
