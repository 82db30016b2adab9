import { expect } from 'chai'
import { isSlotTable } from '../../src/redis/topology/cluster-nodes.js'

const NODE = ['127.0.0.1', 7000, 'an id', []]

describe('isSlotTable', () => {
  const right: Readonly<Record<string, unknown>> = {
    'a master and its replicas': [[0, 16_383, NODE, ['host.example', 7001, 'another id']]],
    'slots that no node has': [
      [0, 5, NODE],
      [7, 16_383, NODE],
    ],
    'a node that has many ranges': Array.from({ length: 8_192 }, (_, i) => [2 * i, 2 * i, NODE]),
    'two thousand nodes': nodes(2_000),
    'a replica without a known address': [[0, 16_383, NODE, ['', 0], [null, 7001]]],
    'a node that does not know its address': [[0, 16_383, ['', 7000, 'an id', []]]],
    'nodes that announce no address': [[0, 16_383, [null, 7000], [null, 7001]]],
    'numbers as texts, from a client with `stringNumbers`': [['0', '16383', ['127.0.0.1', '7000', 'an id']]],
  }
  for (const [what, table] of Object.entries(right)) {
    it(`accepts ${what}`, () => expect(isSlotTable(table)).to.equal(true))
  }

  const wrong: Readonly<Record<string, unknown>> = {
    'an empty table, from a node that has left its cluster': [],
    'ranges without nodes': [[0, 16_383]],
    'masters without a host and a port only': [[0, 16_383, ['', 0]]],
    'a port without a host that is none': [[0, 16_383, ['', 99_999]]],
    'a host that is no text': [[0, 16_383, [[1], 7000]]],
    'a port that is none': [[0, 16_383, ['127.0.0.1', 99_999]]],
    'a port that is a text': [[0, 16_383, ['127.0.0.1', 'abc']]],
    'slots that are none': [[0, 999_999_999, NODE]],
    'more nodes than any cluster has': nodes(2_001),
    'a node with thousands of replicas': [[0, 16_383, ...nodes(3_000).map(([, , node]) => node)]],
    'ranges that overlap': Array.from({ length: 16_384 }, () => [0, 16_383, NODE]),
    'a host that is longer than any': [[0, 16_383, ['a'.repeat(256), 7000]]],
    'a range from its end': [[5, 4, NODE]],
    nil: null,
  }
  for (const [what, table] of Object.entries(wrong)) {
    it(`refuses ${what}`, () => expect(isSlotTable(table)).to.equal(false))
  }
})

function nodes(count: number): [number, number, unknown][] {
  return Array.from({ length: count }, (_, i) => [i, i, [`10.0.${i >> 8}.${i & 255}`, 7000, `${i}`, []]])
}
