import { expect } from 'chai'
import { Assignment } from '../../src/workers/assignment.js'
import { InHand } from '../../src/workers/in-hand.js'

type Params = ConstructorParameters<typeof Assignment>
const assignment = (): Assignment => new Assignment(...([{ name: 'mails' }, {}] as unknown as Params))

describe('InHand', () => {
  it('holds what was added and not deleted, in any order', () => {
    const inHand = new InHand()
    const [a, b, c] = [assignment(), assignment(), assignment()]
    for (const each of [a, b, c]) inHand.add(each)
    inHand.delete(a)
    expect([...inHand]).to.have.members([b, c])
    expect([a, b, c].map((each) => inHand.has(each))).to.deep.equal([false, true, true])
    inHand.delete(c)
    inHand.add(a)
    inHand.delete(b)
    expect([...inHand]).to.deep.equal([a])
    inHand.delete(a)
    expect(inHand.size).to.equal(0)
  })

  it('ignores what it does not hold', () => {
    const inHand = new InHand()
    const [a, b] = [assignment(), assignment()]
    inHand.add(a)
    inHand.delete(b)
    expect([...inHand]).to.deep.equal([a])
  })

  it('lets a loop over it see each message, also when the loop deletes them', () => {
    const inHand = new InHand()
    const all = [assignment(), assignment(), assignment()]
    for (const each of all) inHand.add(each)
    const seen: Assignment[] = []
    for (const each of inHand) {
      seen.push(each)
      inHand.delete(each)
    }
    expect(seen).to.have.members(all)
    expect(inHand.size).to.equal(0)
  })
})
