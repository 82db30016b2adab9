import { expect } from 'chai'
import { splitDoc } from '../../scripts/reference/options.js'

describe('the tables of options', () => {
  const docs: [doc: string, name: string, type: string, cells: ReturnType<typeof splitDoc>][] = [
    [
      'How often it is pinged. 100 to 3,600,000; default 10,000.',
      'pingInterval',
      'number',
      { text: 'How often it is pinged.', byDefault: '10,000', range: '100 to 3,600,000 ms' },
    ],
    [
      "The largest value, in bytes. 1 to 536,870,912 (512 MiB, Redis's own limit); default 16 MiB.",
      'maxPayloadBytes',
      'number',
      {
        text: 'The largest value, in bytes.',
        byDefault: '16 MiB',
        range: "1 to 536,870,912 (512 MiB, Redis's own limit)",
      },
    ],
    [
      "`'redis'` (default) compares in Redis. `'local'` sends the time.",
      'clock',
      "'redis' | 'local'",
      { text: "`'redis'` (default) compares in Redis. `'local'` sends the time.", byDefault: "`'redis'`", range: '' },
    ],
    [
      "For how many milliseconds it is held. At least 1; default: the queue's, else 30,000.",
      'visibilityTimeout',
      'number',
      { text: 'For how many milliseconds it is held.', byDefault: "the queue's, else 30,000", range: 'At least 1 ms' },
    ],
    ['Ends the wait.', 'signal', 'AbortSignal', { text: 'Ends the wait.', byDefault: '', range: '' }],
    [
      'Where it looks. Default: `REDIS_URL`, else `redis://127.0.0.1:6379`.',
      'url',
      'string',
      { text: 'Where it looks.', byDefault: '`REDIS_URL`, else `redis://127.0.0.1:6379`', range: '' },
    ],
  ]
  for (const [doc, name, type, cells] of docs) {
    it(`take default, range and unit of "${doc}"`, () => {
      expect(splitDoc(doc, name, type)).to.deep.equal(cells)
    })
  }
})
