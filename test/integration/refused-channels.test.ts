/** A user who has the right to some of the channels of this client's queues. */
import { expect } from 'chai'
import type { RedelayedError } from '../../src/index.js'
import { eventually } from '../support/events.js'
import { rawClient, redisUrl, uniqueName } from '../support/redis.js'
import { cleanUp, forgetReliable, makeClient, onCleanup } from './fixtures.js'

describe('a channel to which the user has no right', () => {
  afterEach(cleanUp)

  for (const [what, isFirst] of [
    ['when the connection is made', true],
    ['while others are subscribed', false],
  ] as const) {
    it(`keeps no other queue from its announcements: asked for ${what}`, async () => {
      const [name, other] = [uniqueName('refused'), uniqueName('refused')]
      for (const each of [name, other]) forgetReliable(each)
      const user = uniqueName('user')
      const rights = ['resetchannels', '&redelayed:reliable:channel:*']
      await rawClient().call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '+@all', ...rights)
      onCleanup(() => rawClient().call('ACL', 'DELUSER', user))
      const everybody = makeClient()
      await everybody.getReliableQueue(name).setConfig({ keepCompleted: 10 })
      const { id } = await everybody.getReliableQueue(name).add('x', { delay: '1h' })

      const url = Object.assign(new URL(redisUrl()), { username: user, password: 'secret' })
      const client = makeClient({ url: url.href, sweepInterval: 3_600_000 })
      const errors: RedelayedError[] = []
      const reconnecting: unknown[] = []
      client.on('error', (error) => errors.push(error))
      client.on('reconnecting', (event) => reconnecting.push(event))
      const subscribed = new Promise<void>((resolve) => {
        client.on('subscribed', ({ queue }) => void (queue === other && resolve()))
      })
      const wait = (): void =>
        void client
          .getReliableQueue(name)
          .waitUntilFinished(id)
          .catch(() => undefined)
      if (isFirst) wait()
      const polled = client.getReliableQueue(other).poll({ timeout: 20_000 })
      await subscribed
      if (!isFirst) wait()
      await eventually(() => expect(errors.map(({ code, queue }) => [code, queue])).to.deep.equal([['ERR_AUTH', name]]))
      await everybody.getReliableQueue(other).add('y')
      expect((await polled)?.payload).to.equal('y')
      expect(reconnecting).to.deep.equal([])
    })
  }
})
