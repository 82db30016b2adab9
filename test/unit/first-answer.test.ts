import { expect } from 'chai'
import { firstAnswer } from '../../src/redis/topology/first-answer.js'
import { rejection } from '../integration/fixtures.js'

const never = new Promise<string>(() => {})

describe('The first answer of several nodes', () => {
  it('is that of the first node, and no other one is asked', async () => {
    const asked: string[] = []
    const ask = async (node: string): Promise<string> => {
      asked.push(node)
      return node
    }
    expect(await firstAnswer(['a', 'b'], ask)).to.equal('a')
    expect(asked).to.deep.equal(['a'])
  })

  it('comes from the next node when one fails, and from one beside it when it is silent', async () => {
    const answers: Record<string, () => Promise<string>> = {
      fails: () => Promise.reject(new Error('refused')),
      silent: () => never,
      answers: () => Promise.resolve('here'),
    }
    expect(await firstAnswer(Object.keys(answers), (node) => answers[node]!())).to.equal('here')
  })

  it('of a slow node counts, although the others failed meanwhile', async () => {
    let answer: (text: string) => void = () => {}
    const slow = new Promise<string>((resolve) => (answer = resolve))
    const ask = (node: string): Promise<string> => {
      if (node === 'slow') return slow
      setImmediate(() => answer('late'))
      return Promise.reject(new Error('refused'))
    }
    expect(await firstAnswer(['slow', 'other'], ask)).to.equal('late')
  })

  it('is the last error when all fail, and an error without nodes', async () => {
    const refuse = (node: string): Promise<string> => Promise.reject(new Error(node))
    expect((await rejection(firstAnswer(['a', 'b'], refuse))).message).to.equal('b')
    expect((await rejection(firstAnswer([], refuse))).message).to.equal('there is no node to ask')
  })
})
