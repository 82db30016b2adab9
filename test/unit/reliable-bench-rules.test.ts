import { expect } from 'chai'
import type { Answer, Delivery, History } from '../faults/reliable/history.js'
import { excessOf } from '../faults/reliable/rules.js'

describe('the count of deliveries beyond the limit, in the bench of reliable queues', () => {
  const delivery = (attempt: number, answers: Answer[], isBegun = true): Delivery => ({
    ...{ attempt, revision: 0, visibleAt: attempt, from: attempt, until: attempt + 1, unanswered: 0, answers },
    ...(isBegun && { handled: { long: true, at: attempt } }),
  })
  const killed = (attempt: number): Delivery => delivery(attempt, [])
  const failed = (attempt: number): Delivery =>
    delivery(attempt, [{ said: 'failed', sentAt: attempt, done: true, heardAt: attempt }])
  const tooLate = (attempt: number): Delivery =>
    delivery(attempt, [{ said: 'failed', sentAt: attempt, done: false, heardAt: attempt }])
  const unheard = (attempt: number): Delivery => delivery(attempt, [{ said: 'failed', sentAt: attempt }])
  const excess = (...deliveries: Delivery[]): number =>
    excessOf({
      ...{ state: 'added', addedAt: 0, asks: [], deliveries },
      plan: { at: 0, delay: 0, limit: 3, poison: true, priority: 8 },
    } as unknown as History)

  const cases: readonly (readonly [title: string, deliveries: Delivery[], expected: number])[] = [
    ['counts none within the limit', [failed(1), failed(2), failed(3)], 0],
    ['counts each one beyond it', [failed(1), failed(2), failed(3), failed(4), failed(5)], 2],
    [
      'counts none that no handler began',
      [delivery(1, [], false), delivery(1, [], false), failed(1), failed(2), failed(3)],
      0,
    ],
    ['does not count the first one whose process was killed', [killed(1), failed(1), failed(2), failed(3)], 0],
    ['counts a second one whose process was killed', [killed(1), killed(1), failed(1), failed(2), failed(3)], 1],
    ['does not count one more after each failure', [killed(1), tooLate(1), failed(2), killed(3), failed(3)], 0],
    [
      'counts each one whose failure was perhaps not heard, and which raised no attempt, but for the first',
      [unheard(1), unheard(1), unheard(1), unheard(1), unheard(1), failed(1), failed(2), failed(3)],
      4,
    ],
    [
      'counts the second of two more after a failure',
      [killed(1), failed(1), failed(2), killed(3), killed(3), failed(3)],
      1,
    ],
  ]
  for (const [title, deliveries, expected] of cases) {
    it(title, () => {
      expect(excess(...deliveries)).to.equal(expected)
    })
  }
})
