import { expect } from 'chai'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { EgressPolicy } from '../delivery/egress-policy.js'
import { resolverLookup } from '../delivery/guarded-connect.js'
import { isPublic } from '../delivery/public-address.js'
import { Sender } from '../delivery/sender.js'

/** Literal addresses in every notation that a URL parser or the system may take for one, and other ways out. */
const HOSTILE = [
  'http://127.0.0.1/',
  'http://127.1/',
  'http://127.0.1/',
  'http://2130706433/',
  'http://0x7f000001/',
  'http://0x7f.1/',
  'http://0177.0.0.1/',
  'http://017700000001/',
  'http://127.0.0.1./',
  'http://①②⑦.⓪.⓪.①/',
  'http://0/',
  'http://0.0.0.0/',
  'http://[::]/',
  'http://[::1]/',
  'http://[0:0:0:0:0:0:0:1]/',
  'http://[::127.0.0.1]/',
  'http://[::7f00:1]/',
  'http://[::ffff:127.0.0.1]/',
  'http://[::ffff:7f00:1]/',
  'http://[0:0:0:0:0:ffff:7f00:0001]/',
  'http://[64:ff9b::7f00:1]/',
  'http://[64:ff9b:1::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2001:0:7f00:1::]/',
  'http://[fe80::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/latest/meta-data/',
  'http://[ff02::1]/',
  'http://[2001:db8::1]/',
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/latest/meta-data/',
  'http://0xa9fea9fe/',
  'http://[::ffff:169.254.169.254]/',
  'http://100.100.100.200/latest/meta-data/',
  'http://168.63.129.16/machine/?comp=goalstate',
  'http://192.0.0.192/opc/v1/',
  'http://10.0.0.1/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://192.168.1.1/',
  'http://100.64.0.1/',
  'http://198.18.0.1/',
  'http://224.0.0.1/',
  'http://255.255.255.255/',
  'http://user:password@example.com/',
  'http://example.com@127.0.0.1/',
  'http://example.com:22/',
  'http://example.com:6379/',
  'https://example.com:8443/',
  'file:///etc/passwd',
  'ftp://example.com/',
  'gopher://127.0.0.1:6379/_INFO',
  'redis://127.0.0.1:6379/',
  'unix:/var/run/docker.sock',
  'data:text/plain,x',
  'javascript:alert(1)',
  'ws://example.com/',
  '//example.com/',
  'example.com',
  '',
]

/** Names that lead to private addresses, with these addresses. */
const NAMES: Record<string, readonly string[]> = {
  localhost: ['127.0.0.1', '::1'],
  'localhost.': ['127.0.0.1'],
  'metadata.google.internal': ['169.254.169.254'],
  'one-inside.example': ['93.184.216.34', '10.0.0.7'],
  'mapped.example': ['::ffff:10.0.0.7'],
  'zone.example': ['fe80::1%eth0'],
  'empty.example': [],
}

describe('where webhooks go', () => {
  let sockets = 0
  const onSocket = () => void sockets++
  before(() => {
    subscribe('net.client.socket', onSocket)
  })
  after(() => {
    unsubscribe('net.client.socket', onSocket)
  })
  beforeEach(() => {
    sockets = 0
  })

  it('has at least fifty hostile URLs to refuse', () => {
    expect(HOSTILE.length).to.be.at.least(50)
  })

  for (const url of HOSTILE) {
    it(`is not ${url === '' ? 'nowhere' : url}: no endpoint can have it, and nothing is connected`, async () => {
      const policy = new EgressPolicy()
      expect(() => policy.readUrl(url)).to.throw('url: expected')
      if (!URL.canParse(url) || !/^https?:/.test(url)) return
      const target = new URL(url)
      // the second wall alone: the policy of the first may have been another one; ports and user info are known to the first only
      if (/example\.com/.test(target.hostname)) return
      const sender = new Sender(policy)
      const answer = await sender.post(target, {}, Buffer.from('x'))
      await sender.close()
      expect(answer.is).to.equal('none')
      expect(answer).to.have.property('reason').that.includes('not public')
      expect(sockets).to.equal(0)
    })
  }

  for (const [name, addresses] of Object.entries(NAMES)) {
    it(`is not ${name} with the addresses ${addresses.join(' and ') || 'of nothing'}: nothing is connected`, async () => {
      const sender = new Sender(new EgressPolicy(), { lookup: async () => addresses })
      const answer = await sender.post(new URL(`http://${name}/`), {}, Buffer.from('x'))
      await sender.close()
      expect(answer)
        .to.have.property('reason')
        .that.matches(/not public|no address/)
      expect(sockets).to.equal(0)
    })
  }

  it('is every network that the operator allows, and no other', () => {
    const policy = new EgressPolicy({ allowNetworks: ['10.1.0.0/16', 'fd00::/8', '192.168.7.7'] })
    for (const address of ['10.1.2.3', 'fd12::1', '192.168.7.7']) expect(policy.allows(address), address).to.equal(true)
    for (const address of ['10.2.0.1', 'fe80::1', '192.168.7.8', '127.0.0.1', '::ffff:10.2.0.1'])
      expect(policy.allows(address), address).to.equal(false)
    for (const range of ['10.1.0.0/33', 'x', '10.1/16', '', 'fd00::/129'])
      expect(() => new EgressPolicy({ allowNetworks: [range] })).to.throw('network: expected')
  })

  it('is the internet', () => {
    for (const address of ['1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '2a00:1450::1'])
      expect(isPublic(address), address).to.equal(true)
    for (const address of ['', 'x', '1.1.1', '1.1.1.1.1', '::']) expect(isPublic(address), address).to.equal(false)
  })

  describe('over real sockets', () => {
    let server: Server
    let port: number
    let heard: string[]
    const allowed = () => new EgressPolicy({ allowNetworks: ['127.0.0.1'], ports: [port] })
    beforeEach((done) => {
      heard = []
      server = createServer((request, response) => {
        heard.push(`${request.method} ${request.headers.host} ${request.url}`)
        if (request.url === '/away') response.writeHead(302, { location: `http://localhost:${port}/secret` })
        response.end('here')
      }).listen(0, '127.0.0.1', done)
      port = (server.address() as AddressInfo)?.port
    })
    beforeEach(() => {
      port = (server.address() as AddressInfo).port
    })
    afterEach((done) => {
      server.close(done)
      server.closeAllConnections()
    })

    it('is the address that was checked, however the name answers afterwards', async () => {
      const answers = [['127.0.0.1'], ['127.0.0.2']]
      let asked = 0
      const sender = new Sender(allowed(), { lookup: async () => answers[asked++] ?? [] })
      const url = new URL(`http://hooks.example:${port}/in`)
      const first = await sender.post(url, {}, Buffer.from('1'))
      expect(first).to.deep.include({ is: 'answer', status: 200, body: Buffer.from('here') })
      expect([asked, sockets]).to.deep.equal([1, 1])

      server.closeAllConnections()
      const second = await sender.post(url, {}, Buffer.from('2'))
      await sender.close()
      expect(second).to.have.property('reason').that.includes('not public')
      expect([asked, sockets]).to.deep.equal([2, 1])
      expect(heard).to.deep.equal([`POST hooks.example:${port} /in`])
    })

    it('is another address of the name, where one does not answer; all were checked before', async () => {
      const policy = new EgressPolicy({ allowNetworks: ['127.0.0.0/8'], ports: [port] })
      const url = new URL(`http://hooks.example:${port}/in`)
      // nothing listens there
      const sender = new Sender(policy, { lookup: async () => ['127.0.0.2', '127.0.0.3', '127.0.0.1'] })
      expect(await sender.post(url, {}, Buffer.from('1'))).to.include({ is: 'answer', status: 200 })
      await sender.close()
      expect([sockets, heard.length]).to.deep.equal([3, 1])

      const none = new Sender(policy, { lookup: async () => ['127.0.0.2', '127.0.0.3'] })
      expect(await none.post(url, {}, Buffer.from('2'))).to.deep.include({ is: 'none', reason: 'ECONNREFUSED' })
      await none.close()
      const inside = new Sender(policy, { lookup: async () => ['127.0.0.1', '10.0.0.1'] })
      expect(await inside.post(url, {}, Buffer.from('3')))
        .to.have.property('reason')
        .that.includes('not public')
      await inside.close()
      expect([sockets, heard.length]).to.deep.equal([5, 1])
    })

    it('is never where an answer redirects to', async () => {
      const sender = new Sender(allowed(), { lookup: async () => ['127.0.0.1'] })
      const answer = await sender.post(new URL(`http://hooks.example:${port}/away`), {}, Buffer.from('1'))
      await sender.close()
      expect(answer).to.include({ is: 'answer', status: 302 })
      expect(heard).to.have.length(1)
    })
  })

  describe('the name of an endpoint', () => {
    const none = () => Promise.reject(new Error('none'))

    it('is asked of the name servers in both families; one of them is enough', async () => {
      const both = resolverLookup({ resolve4: async () => ['93.184.216.34'], resolve6: async () => ['2606:2800::1'] })
      expect(await both('a.example')).to.deep.equal(['93.184.216.34', '2606:2800::1'])
      const one = resolverLookup({ resolve4: none, resolve6: async () => ['2606:2800::1'] })
      expect(await one('a.example')).to.deep.equal(['2606:2800::1'])
      const error: unknown = await resolverLookup({ resolve4: none, resolve6: none })('a.example').catch(
        (e: unknown) => e,
      )
      expect(error).to.have.property('message', 'none')
    })

    it('asks no name server where it is localhost', async () => {
      const lookup = resolverLookup({ resolve4: none, resolve6: none })
      for (const name of ['localhost', 'a.localhost', 'LOCALHOST.'])
        expect(await lookup(name), name).to.deep.equal(['127.0.0.1', '::1'])
    })
  })
})
