import { expect } from 'chai'
import { spawn } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../../scripts/redis.js'
import { eventually, once } from '../support/events.js'
import { FakeClock } from '../support/fake-clock.js'
import { expectWarning } from '../support/hooks.js'
import { requireServerBin, startRedis } from '../support/redis-server.js'
import { startProxy, type TcpProxy } from '../support/tcp-proxy.js'

describe('test support', () => {
  describe('startServer', () => {
    it('refuses the server of another process on its port', async function () {
      requireServerBin(this)
      const other = await startRedis()
      const dir = mkdtempSync(join(tmpdir(), 'redelayed-no-server-'))
      try {
        const bin = join(dir, 'no-server')
        writeFileSync(bin, '#!/bin/sh\nexec sleep 600\n', { mode: 0o755 })
        const thrown: unknown = await startServer({ bin, port: other.port }).catch((error: unknown) => error)
        expect(String(thrown)).to.include('address already in use')
      } finally {
        rmSync(dir, { recursive: true })
        await other.stop()
      }
    })
  })

  describe('FakeClock', () => {
    it('runs due timers in order, each at its own time', async () => {
      const clock = new FakeClock(1000.5)
      const ran: [string, number][] = []
      const note = (what: string) => () => void ran.push([what, clock.now()])
      clock.setTimeout(note('late'), 30)
      clock.setTimeout(note('early'), 10)
      clock.setTimeout(note('same'), 10)
      clock.setTimeout(note('later'), 100)

      expect(clock.pending).to.deep.equal([10, 10, 30, 100])
      await clock.advance(30)

      expect(ran).to.deep.equal([
        ['early', 1010.5],
        ['same', 1010.5],
        ['late', 1030.5],
      ])
      expect(clock.pending).to.deep.equal([70])
      expect(clock.now()).to.equal(1030.5)
    })

    it('lets promises settle between timers, and runs timers set meanwhile', async () => {
      const clock = new FakeClock()
      const ran: string[] = []
      const loop = async () => {
        await new Promise<void>((resolve) => clock.setTimeout(resolve, 10))
        await Promise.resolve()
        ran.push(`loop ${clock.now()}`)
        if (ran.length < 5) await loop()
      }
      const done = loop()
      clock.setTimeout(() => ran.push(`timer ${clock.now()}`), 25)

      await clock.advance(40)
      await done

      expect(ran).to.deep.equal(['loop 10', 'loop 20', 'timer 25', 'loop 30', 'loop 40'])
    })

    it('forgets a cleared timer', async () => {
      const clock = new FakeClock()
      const handle = clock.setTimeout(() => expect.fail('it was cleared'), 10)
      clock.clearTimeout(handle)
      clock.clearTimeout(undefined)
      await clock.advance(20)
      expect(clock.pending).to.deep.equal([])
    })

    it('fires at once beyond 2^31-1 ms, as Node does', () => {
      const clock = new FakeClock()
      clock.setTimeout(() => {}, 2 ** 31)
      clock.setTimeout(() => {}, 2 ** 31 - 1)
      expect(clock.pending).to.deep.equal([1, 2 ** 31 - 1])
    })

    it('runs late timers after a jump', async () => {
      const clock = new FakeClock()
      let at = 0
      clock.setTimeout(() => (at = clock.now()), 10)
      clock.jump(500)
      expect(at).to.equal(0)
      await clock.advance(0)
      expect(at).to.equal(500)
    })
  })

  describe('once and eventually', () => {
    it('once skips events that do not match', async () => {
      const emitter = new EventEmitter()
      const second = once<number>(emitter, 'n', (n) => n > 1)
      emitter.emit('n', 1)
      emitter.emit('n', 2)
      expect(await second).to.equal(2)
      expect(emitter.listenerCount('n')).to.equal(0)
    })

    it('once gives up, and says what came instead', async () => {
      const emitter = new EventEmitter()
      const failure = once<number>(emitter, 'n', (n) => n > 1, 20).catch((error: Error) => error.message)
      emitter.emit('n', 1)
      expect(await failure).to.equal('no matching "n" event within 20 ms; 1 others came, the last 1')
      expect(emitter.listenerCount('n')).to.equal(0)
    })

    it('eventually repeats until it holds', async () => {
      let calls = 0
      expect(await eventually(() => (expect(++calls).to.equal(3), 'done'))).to.equal('done')
    })

    it('eventually throws the last error', async () => {
      const failure = eventually(() => expect(1).to.equal(2), 20).catch((error: Error) => error)
      expect(await failure)
        .to.be.an.instanceOf(Error)
        .with.property('message', 'expected 1 to equal 2')
    })
  })

  describe('startProxy', () => {
    let echo: Server
    let echoSockets: Socket[]
    let proxy: TcpProxy
    let clients: Client[]

    class Client {
      received = ''
      closed = false
      readonly socket: Socket

      constructor() {
        clients.push(this)
        this.socket = connect(proxy.port, '127.0.0.1')
        this.socket.on('data', (bytes) => (this.received += bytes.toString()))
        this.socket.on('error', () => {})
        this.socket.on('close', () => (this.closed = true))
      }

      async echoes(text: string): Promise<void> {
        const before = this.received
        this.socket.write(text)
        await eventually(() => expect(this.received).to.equal(before + text))
      }
    }

    beforeEach(async () => {
      clients = []
      echoSockets = []
      echo = createServer((socket) => {
        echoSockets.push(socket)
        socket.on('error', () => {})
        socket.on('data', (bytes) => socket.write(bytes))
      })
      await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve))
      proxy = await startProxy({ targetPort: (echo.address() as AddressInfo).port })
    })

    afterEach(async () => {
      for (const { socket } of clients) socket.destroy()
      await proxy.stop()
      for (const socket of echoSockets) socket.destroy()
      await new Promise((resolve) => echo.close(resolve))
    })

    it('forwards both ways and counts connections', async () => {
      const one = new Client()
      const two = new Client()
      await one.echoes('hello')
      await two.echoes('world')
      expect(proxy.connections).to.equal(2)
      one.socket.end()
      await eventually(() => expect(proxy.connections).to.equal(1))
      expect(proxy.accepted).to.equal(2)
    })

    it('cut resets open connections and lets new ones in', async () => {
      const old = new Client()
      await old.echoes('a')
      proxy.cut()
      await eventually(() => expect(old.closed).to.equal(true))
      await new Client().echoes('b')
    })

    it('refuse turns new connections away and keeps old ones', async () => {
      const old = new Client()
      await old.echoes('a')
      proxy.refuse(true)
      const turnedAway = new Client()
      await eventually(() => expect(turnedAway.closed).to.equal(true))
      await old.echoes('b')
      proxy.refuse(false)
      await new Client().echoes('c')
    })

    it('blackhole drops everything and closes nothing, not even when a side goes', async () => {
      const client = new Client()
      await client.echoes('a')
      proxy.blackhole(true)
      client.socket.write('lost')
      const newer = new Client()
      newer.socket.write('lost too')
      await eventually(() => expect(echoSockets).to.have.lengthOf(2))
      echoSockets[0]!.destroy()
      newer.socket.destroy()

      // Nothing must happen, so there is no event to wait for: long enough for a loopback close to be seen many times.
      await new Promise((resolve) => setTimeout(resolve, 50))
      expect(client).to.include({ received: 'a', closed: false })
      expect(echoSockets[1]!.closed).to.equal(false)

      proxy.blackhole(false)
      await eventually(() => expect(client.closed).to.equal(true))
      await new Client().echoes('b')
    })

    it('delay holds back one direction, in order', async () => {
      const client = new Client()
      await client.echoes('a')
      proxy.delay({ toServer: 60 })
      const start = performance.now()
      await client.echoes('bc')
      expect(performance.now() - start).to.be.within(55, 500)
      proxy.delay({ toServer: 40 })
      const held = once(proxy.events, 'piece')
      client.socket.write('1')
      await held
      proxy.delay(0)
      client.socket.write('2')
      await eventually(() => expect(client.received).to.equal('abc12'))
    })
  })

  describe('hooks', function () {
    // each test starts a mocha of its own
    this.timeout(120_000)
    let dir: string
    beforeEach(() => {
      dir = mkdtempSync(join(import.meta.dirname, '.hooks-'))
    })
    afterEach(() => rmSync(dir, { recursive: true }))

    /** Runs a test file with the root hooks in a mocha of its own. */
    async function run(body: string): Promise<{ code: number | null; output: string }> {
      const file = join(dir, 'fixture.test.ts')
      writeFileSync(file, body)
      const hooks = join(import.meta.dirname, '../support/hooks.ts')
      const mocha = join(import.meta.dirname, '../../node_modules/mocha/bin/mocha.js')
      const { REDIS_URL: _, ...env } = process.env
      const child = spawn(
        process.execPath,
        [mocha, '--no-config', '--require', 'tsx', '--require', hooks, '--exit', file],
        { env, stdio: ['ignore', 'pipe', 'pipe'] },
      )
      let output = ''
      child.stdout.on('data', (bytes: Buffer) => (output += bytes.toString()))
      child.stderr.on('data', (bytes: Buffer) => (output += bytes.toString()))
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
      return { code, output }
    }

    it('lists every test that leaves something behind, and passes the others', async () => {
      const { code, output } = await run(`
        import { spawn } from 'node:child_process'
        import { createServer } from 'node:net'
        it('is clean', () => {})
        it('leaves a timer', () => { setTimeout(() => {}, 60_000) })
        it('leaves a server', (done) => { createServer().listen(0, '127.0.0.1', done) })
        it('leaves a child', () => { spawn(process.execPath, ['-e', 'setTimeout(() => {}, 9000)'], { stdio: 'ignore' }) })
        it('uses an unreferenced timer', () => { setTimeout(() => {}, 60_000).unref() })
      `)
      expect(code).to.equal(1)
      expect(output).to.include('5 passing')
      expect(output).to.include('"leaves a timer": left 1 Timeout open')
      expect(output).to.include('"leaves a server": left 1 TCPServerWrap open')
      expect(output).to.include('"leaves a child": left 1 ProcessWrap open')
      expect(output).to.not.include('"is clean": left')
      expect(output).to.not.include('"uses an unreferenced timer": left')
    })

    it('fails a test on a stray warning, on a missing one, and on an unhandled rejection', async () => {
      const { code, output } = await run(`
        import { expectWarning } from '../../support/hooks.js'
        const warn = (text: string) => process.emitWarning(text, { type: 'RedelayedWarning' })
        it('is warned', () => warn('stray'))
        it('expects it', async () => { const warning = expectWarning(/wanted/); warn('wanted'); await warning })
        it('misses one', () => { void expectWarning(/never/) })
        it('rejects unheard', async () => { void Promise.reject(new Error('it has no listener')); await new Promise((r) => setTimeout(r, 20)) })
      `)
      expect(code).to.be.greaterThan(0)
      expect(output).to.include('"is warned": stray warning: RedelayedWarning  stray')
      expect(output).to.include('"misses one": expected a warning like /never/, but none came')
      expect(output).to.include('"rejects unheard": unhandled rejection: Error: it has no listener')
      expect(output).to.not.include('"expects it": ')
    })

    it('share their state with the tests', async () => {
      const warning = expectWarning(/a redelayed warning for support\.test/)
      process.emitWarning('a redelayed warning for support.test')
      expect(await warning).to.be.an.instanceOf(Error)
    })
  })
})
