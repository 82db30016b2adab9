import { expect } from 'chai'
import { ServerAge } from '../../src/redis/connections/server-version.js'

const OLD = 'redis_version:6.0.20\r\n'
const NEW = 'redis_version:7.0.15\r\n'

describe('the age of a server', () => {
  it('is not asked again where it is new enough, or unknown', async () => {
    const age = new ServerAge(() => Promise.reject(new Error('asked')))
    for (const info of [undefined, NEW, 'redis_version:6.2.0']) {
      age.learn(info)
      expect([age.seemsTooOld, await age.isTooOld()]).to.deep.equal([false, false])
    }
  })

  it('is asked again before a refusal, at most once a second', async () => {
    let [asked, now] = [0, 5]
    const age = new ServerAge(
      () => Promise.resolve(++asked === 1 ? OLD : NEW),
      () => now,
    )
    age.learn(OLD)
    expect(await Promise.all([age.isTooOld(), age.isTooOld()])).to.deep.equal([true, true])
    now += 1_000
    expect(await age.isTooOld()).to.equal(true)
    now++
    expect([await age.isTooOld(), asked]).to.deep.equal([false, 2])
  })

  it('is not that of a server that answers after the one that took its place', async () => {
    let answer: (info: string) => void = () => undefined
    const age = new ServerAge(() => new Promise((resolve) => (answer = resolve)))
    age.learn(OLD)
    const asked = age.isTooOld()
    age.learn(NEW)
    answer(OLD)
    expect([await asked, age.seemsTooOld]).to.deep.equal([false, false])
  })

  it('is that of the last answer: of a server that was upgraded', async () => {
    const age = new ServerAge(() => Promise.resolve(NEW))
    age.learn(OLD)
    expect(await age.isTooOld()).to.equal(false)
    expect(age.seemsTooOld).to.equal(false)
  })

  for (const [how, ask] of [
    ['refuses to answer', () => Promise.resolve(undefined)],
    ['rejects', () => Promise.reject(new Error('down'))],
    ['never answers', () => new Promise<never>(() => undefined)],
  ] as const) {
    it(`stays what it was where the server ${how}`, async () => {
      const age = new ServerAge(ask)
      age.learn(OLD)
      expect(await age.isTooOld()).to.equal(true)
    })
  }
})
