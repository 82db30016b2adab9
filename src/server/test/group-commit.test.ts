import { expect } from 'chai'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { GroupCommit } from '../journal/group-commit.js'
import { eventually } from './support/eventually.js'

describe('a group commit', () => {
  const LINGER_MS = 200

  /** Commits that go on when the test says so. */
  function commits(lingerMs = LINGER_MS) {
    const groups: string[][] = []
    const goOn: (() => void)[] = []
    const all = new GroupCommit<string>(
      (jobs) => {
        groups.push([...jobs])
        return new Promise((resolve) => goOn.push(resolve))
      },
      { lingerMs, most: 100 },
    )
    return { all, groups, goOn }
  }

  it('has the jobs that come within a moment of the first one', async () => {
    const { all, groups, goOn } = commits()
    const ended = [all.submit('a')]
    await turn() // without the linger time it would be committed after this one
    await turn()
    expect(groups, 'it waits for others').to.deep.equal([])
    ended.push(all.submit('b'))
    await eventually(() => expect(groups).to.deep.equal([['a', 'b']]))
    goOn[0]?.()
    await Promise.all(ended)
  })

  it('has the jobs of one turn of the event loop even without a linger time', async () => {
    const { all, groups, goOn } = commits(0)
    const ended = [all.submit('a'), all.submit('b')]
    await eventually(() => expect(groups).to.deep.equal([['a', 'b']]))
    goOn[0]?.()
    await Promise.all(ended)
  })

  it('does not delay jobs that came while another commit was under way', async () => {
    const { all, groups, goOn } = commits()
    const ended = [all.submit('a')]
    await eventually(() => expect(groups).to.deep.equal([['a']]))
    ended.push(all.submit('b'), all.submit('c'))
    await pause(LINGER_MS + 5) // the commit takes as long as the linger time
    goOn[0]?.()
    await ended[0]
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    expect(groups, 'the next one begins in the same turn').to.deep.equal([['a'], ['b', 'c']])
    goOn[1]?.()
    await Promise.all(ended)
  })
})
