/** What is pending looks the same from both sides, and each can take back what the other has offered. */
import { expect } from 'chai'
import { rawClient } from '../../support/redis.js'
import { keysOf } from '../../support/redis.js'
import type { DelayedQueue } from '../../../src/index.js'
import type { JavaQueue } from '../support/jvm.js'
import { LATER, both, expectConsistent, s, scenario, strings, type Side } from '../support/side.js'
import { java as j } from '../support/values.js'

export function pendingScenarios(side: Side): void {
  scenario(side, 'both see the same size, readAll, contains and peek after offers of both', async () => {
    const { java, delayed, name } = both(side)
    await java.hold()
    const node = delayed()
    // delays that fall, so that offer order and due order differ
    await node.offer('first, of Node', LATER + 4)
    await java.offer(s('second, of Java'), LATER + 3)
    await node.offer('third, of Node', LATER + 2)
    await java.offer(s('fourth, of Java'), LATER + 1)
    await expectSameView(node, java, ['first, of Node', 'second, of Java', 'third, of Node', 'fourth, of Java'])
    await expectConsistent(name)
  })

  scenario(side, 'each removes and polls what the other has offered', async () => {
    const { java, delayed, name } = both(side)
    await java.hold()
    const node = delayed()
    for (const i of [1, 2, 3]) {
      await node.offer(`node ${i}`, LATER)
      await java.offer(s(`java ${i}`), LATER)
    }
    expect(await java.remove(s('node 2'))).to.equal(true)
    expect(await node.remove('java 2')).to.equal(true)
    expect(await java.remove(s('node 2'))).to.equal(false)
    expect(await node.remove('java 2')).to.equal(false)
    await expectSameView(node, java, ['node 1', 'java 1', 'node 3', 'java 3'])
    expect(await java.pollPending()).to.deep.equal(s('node 1'))
    expect(await node.poll()).to.equal('java 1')
    await expectSameView(node, java, ['node 3', 'java 3'])
    await expectConsistent(name)
    expect(await node.poll(9)).to.deep.equal(['node 3', 'java 3'])
    expect(await java.pollPending()).to.deep.equal(j.nothing)
    expect(await rawClient().exists(...keysOf(name))).to.equal(0)
  })

  scenario(side, 'both see the same while both write', async () => {
    const { java, delayed, name } = both(side)
    await java.hold()
    const node = delayed()
    const numbers = Array.from({ length: 150 }, (_, i) => i)
    const views: string[][] = []
    const write = Promise.all([
      ...numbers.map((i) => node.offer(`node ${i}`, LATER - i)),
      ...numbers.map((i) => java.offer(s(`java ${i}`), LATER - i)),
    ])
    let writing = true
    void write.finally(() => (writing = false))
    while (writing) {
      views.push(await node.readAll())
      views.push((await java.readAll()).map(({ v }) => String(v)))
    }
    await write
    const all = await node.readAll()
    expect([...all].sort()).to.deep.equal(numbers.flatMap((i) => [`node ${i}`, `java ${i}`]).sort())
    await expectSameView(node, java, all, 3)
    // only the end grows, so every earlier view is a beginning of the last, whoever looked
    for (const view of views) expect(view).to.deep.equal(all.slice(0, view.length))
    await expectConsistent(name)
  })

  scenario(side, "Node sees, removes and polls Java's pending messages", async () => {
    const { java, delayed, name } = both(side)
    await java.hold()
    const node = delayed({ deliver: false })
    for (const value of ['a', 'b', 'c', 'd']) await java.offer(s(value), LATER)
    await expectSameView(node, java, ['a', 'b', 'c', 'd'])
    expect(await node.remove('b')).to.equal(true)
    expect(await node.poll()).to.equal('a')
    await expectSameView(node, java, ['c', 'd'])
    expect(await java.remove(s('c'))).to.equal(true)
    await expectSameView(node, java, ['d'])
    await expectConsistent(name)
  })
}

async function expectSameView(
  node: DelayedQueue<string>,
  java: JavaQueue,
  values: readonly string[],
  looked = values.length,
): Promise<void> {
  expect(await node.readAll()).to.deep.equal(values)
  expect(await java.readAll()).to.deep.equal(strings(values))
  expect([await node.size(), await java.size()]).to.deep.equal([values.length, values.length])
  expect([await node.peek(), await java.peek()]).to.deep.equal([values[0], s(values[0]!)])
  for (const value of values.slice(0, looked)) {
    expect([await node.contains(value), await java.contains(s(value))]).to.deep.equal([true, true])
  }
  expect([await node.contains('stranger'), await java.contains(s('stranger'))]).to.deep.equal([false, false])
}
