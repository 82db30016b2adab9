// Tasks by name with three priorities in one queue: the highest is always first. What is low waits as long as there is
// something higher; where it must not, see weighted-queues.ts.
import assert from 'node:assert/strict'
import { createClient } from 'redelayed'
import { log, uniqueName, until, url } from './support.js'

interface Mail {
  to: string
}

const HIGH = 9
const NORMAL = 5
const LOW = 0

const client = createClient({ url })
const mails = client.getReliableQueue<Mail>(uniqueName('three-priorities'))
const sent: string[] = []

function send(what: string, { to }: Mail): void {
  log(`${what} to ${to}`)
  sent.push(`${what} ${to}`)
}

try {
  await mails.addTask('newsletter', { to: 'ada' }, { priority: LOW })
  await mails.addTask('newsletter', { to: 'bob' }, { priority: LOW })
  await mails.addTask('confirmation', { to: 'ada' }, { priority: NORMAL })
  await mails.addTask('password', { to: 'ada' }, { priority: HIGH })
  await mails.addTask('password', { to: 'bob' }, { priority: HIGH })
  log('five tasks are waiting, the least important ones first')

  const worker = client.createWorker(mails, {
    password: (mail) => send('password', mail),
    async confirmation(mail) {
      send('confirmation', mail)
      // whatever is more urgent goes before all that is waiting
      await mails.addTask('password', { to: 'eve' }, { priority: HIGH })
    },
    newsletter: (mail) => send('newsletter', mail),
  })
  await until(worker, () => worker.counts.completed === 6)

  assert.deepEqual(sent, [
    'password ada', // within one priority in the order in which they were added
    'password bob',
    'confirmation ada',
    'password eve',
    'newsletter ada',
    'newsletter bob',
  ])
  assert.equal(await mails.size(), 0)
} finally {
  await mails.clear()
  await client.shutdown()
}
