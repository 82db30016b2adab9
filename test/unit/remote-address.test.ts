import { expect } from 'chai'
import type { Redis } from 'ioredis'
import { elsewhereThan, remoteAddressOf } from '../../src/redis/connections/remote-address.js'

describe('The address of the server at the other end', () => {
  const at = (remoteAddress: string): Redis => ({ stream: { remoteAddress, remotePort: 6379 } }) as unknown as Redis

  for (const [named, remote] of [
    ['10.0.0.1', '10.0.0.1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['2001:DB8::00AB', '2001:db8::ab'],
    ['10.0.0.1', '::ffff:10.0.0.1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
  ] as const)
    it(`is the same for ${named} and a socket to ${remote}`, async () => {
      const isElsewhere = await elsewhereThan({ host: named, port: 6379 })
      const redis = at(remote)
      expect(isElsewhere(remoteAddressOf(redis), 0, redis)).to.equal(false)
      const other = at('10.0.0.2')
      expect(isElsewhere(remoteAddressOf(other), 0, other)).to.equal(true)
    })
})
