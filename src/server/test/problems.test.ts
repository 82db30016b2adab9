import { expect } from 'chai'
import { problemsOfTopics } from '../console/problems.js'
import type { TopicSample } from '../console/sampler.js'

const MINUTE = 60_000
const topic = (name: string, more: Partial<TopicSample> = {}): TopicSample => ({
  ...{ topic: name, total: 5, visible: 3, delayed: 2, inFlight: 0, dead: 0, oldestMs: 0, paused: [], hasAside: false },
  ...{ behind: 0, behindSince: null },
  ...more,
})
const texts = (...topics: TopicSample[]): string[] => problemsOfTopics(topics).map(({ text }) => text)

describe('the problems of topics', () => {
  it('are due messages that wait for a minute, and how long the oldest waits', () => {
    expect(texts(topic('a', { oldestMs: MINUTE - 1 }))).to.deep.equal([])
    expect(texts(topic('a', { oldestMs: MINUTE, visible: 0 }))).to.deep.equal([])
    expect(texts(topic('a', { oldestMs: MINUTE, visible: 1 }))).to.deep.equal([
      'The topic a: 1 due message waits, the oldest for 1 minute, and no consumer has one',
    ])
    expect(texts(topic('a', { oldestMs: 3 * 60 * MINUTE, inFlight: 2 }))).to.deep.equal([
      'The topic a: 3 due messages wait, the oldest for 3 hours',
    ])
  })

  it('are one line for ten thousand topics, with the one that waits longest', () => {
    const many = Array.from({ length: 10_000 }, (_, at) => topic(`t${at}`, { oldestMs: MINUTE + ((at * 37) % 9_999) }))
    const [one, ...others] = problemsOfTopics([...many, topic('worst', { oldestMs: 50 * 60 * MINUTE })])
    expect(others).to.deep.equal([])
    expect(one).to.deep.equal({
      ...{ severity: 'warning', code: 'topic-waiting', topic: 'worst' },
      text: 'The topic worst: 3 due messages wait, the oldest for 2 days, and no consumer has one; 10000 more topics have such',
    })
  })

  it('do not say of a paused topic that its messages wait', () => {
    const problems = problemsOfTopics([topic('a', { oldestMs: 9 * MINUTE, paused: ['receive'] })])
    expect(problems.map(({ code }) => code)).to.deep.equal(['topic-paused'])
    const pushes = problemsOfTopics([topic('a', { oldestMs: 9 * MINUTE, paused: ['push'] })])
    expect(pushes.map(({ code }) => code)).to.deep.equal(['topic-paused', 'topic-waiting'])
  })
})
