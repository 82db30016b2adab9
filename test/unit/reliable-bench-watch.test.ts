import { expect } from 'chai'
import { codecs, type ReliableQueue } from '../../src/index.js'
import type { Entry, Payload } from '../faults/reliable/job.js'
import { watch } from '../faults/reliable/watch.js'

describe('the watch of the bench of reliable queues', () => {
  for (const isSuspect of [false, true]) {
    it(`notes the last message of a batch${isSuspect ? ', also of a suspect, whose payload is not decoded yet' : ''}`, async () => {
      const payload: Payload = { poison: false, long: false, last: 'batch 1', revision: 3 }
      const message = {
        ...{ id: 'x', delivery: '1 ~a', visibleAt: 1, polledAt: 2, visibleUntil: 3 },
        payload: isSuspect ? codecs.json<Payload>().encode(payload) : payload,
        ...{ acknowledge() {}, negativeAcknowledge() {}, extend() {} },
      }
      const call = (): void => undefined
      const queue = {
        ...{ name: 'q', pollMany: () => Promise.resolve([message]), pollFor: call, acknowledge: call },
        ...{ complete: call, negativeAcknowledge: call, extendSome: call },
      }
      const notes: Entry[] = []
      await watch(queue as unknown as ReliableQueue<Payload>, (entry) => notes.push(entry)).pollMany({ count: 1 })
      expect(notes).to.deep.equal([
        ['last', 'x', 'batch 1'],
        ['got', 'x', '1 ~a', 1, 2, 3, 'q', 3],
      ])
    })
  }
})
