import { javaCodecs } from '../../src/java/index.js'
import { expect } from 'chai'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { codecs } from '../../src/codecs/index.js'
import { InvalidArgumentError, RedelayedError, UnsupportedOperationError } from '../../src/errors.js'
import {
  readRedissonYaml,
  type RedissonConfig,
  type RedissonYamlOptions,
} from '../../src/java/redisson-yaml/redisson-yaml.js'

const TUNING = ['commandTimeout', 'sweepInterval']

/** Reads a text, and collects what it warns of. */
function read(text: string, options: RedissonYamlOptions = {}): RedissonConfig & { warnings: string[] } {
  const warnings: string[] = []
  const config = readRedissonYaml(
    text,
    { variables: {}, onWarning: (warning) => warnings.push(warning), ...options },
    TUNING,
  )
  return { ...config, warnings }
}

function failure(text: string, options: RedissonYamlOptions = {}): RedelayedError {
  try {
    read(text, options)
  } catch (error) {
    if (error instanceof RedelayedError) return error
    throw error
  }
  throw new Error('it was accepted')
}

const single = (settings = '', top = ''): string =>
  `singleServerConfig:\n  address: "redis://r1:6380"\n${settings}\n${top}\n`

describe('Redisson YAML', () => {
  describe('modes', () => {
    it('single server', () => {
      const config = read(`
singleServerConfig:
  address: "redis://redis.internal:6380"
  username: app
  password: "s:e#c'r\\"et"
  database: 3
  clientName: orders
  connectTimeout: 2000
  timeout: 1500
  pingConnectionInterval: 20000
`)
      expect(config).to.include({
        host: 'redis.internal',
        port: 6380,
        username: 'app',
        password: 's:e#c\'r"et',
        db: 3,
        connectTimeout: 2000,
        commandTimeout: 1500,
        pingInterval: 20000,
      })
      expect(config.ioredis).to.deep.equal({ connectionName: 'orders' })
      expect(config.codec.name).to.equal('kryo5')
      expect(config.nameMapper.map('x')).to.equal('x')
      expect(config.warnings).to.deep.equal([])
    })

    it('sentinel, with the password for the sentinels too unless they have their own', () => {
      const text = (more: string) => `
sentinelServersConfig:
  sentinelAddresses: ["redis://s1:26379", "redis://s2:26380"]
  masterName: mymaster
  password: one
  ${more}
`
      expect(read(text('database: 1'))).to.deep.include({
        sentinels: [
          { host: 's1', port: 26379 },
          { host: 's2', port: 26380 },
        ],
        name: 'mymaster',
        password: 'one',
        sentinelPassword: 'one',
        db: 1,
      })
      expect(read(text('sentinelPassword: two\n  sentinelUsername: watcher'))).to.include({
        password: 'one',
        sentinelPassword: 'two',
        sentinelUsername: 'watcher',
      })
    })

    it('cluster, and how its nodes are reached from outside', () => {
      const config = read(`
clusterServersConfig:
  nodeAddresses:
  - "redis://127.0.0.1:7001"
  - "valkey://[::1]:7002"
  natMapper: !<org.redisson.config.HostPortNatMapper>
    hostsPortMap:
      "172.18.0.2:7001": "127.0.0.1:17001"
`)
      expect(config.cluster).to.deep.equal([
        { host: '127.0.0.1', port: 7001 },
        { host: '::1', port: 7002 },
      ])
      const natMap = config.ioredis?.['natMap'] as (address: string) => unknown
      expect(natMap('172.18.0.2:7001')).to.deep.equal({ host: '127.0.0.1', port: 17001 })
      expect(natMap('172.18.0.3:7001')).to.equal(null)
    })

    it('a NAT map by host only keeps the port', () => {
      const config = read(`
clusterServersConfig:
  nodeAddresses: "redis://10.0.0.1:7001"
  natMapper: !<org.redisson.api.HostNatMapper> { hostsMap: { "172.18.0.2": "10.0.0.9" } }
`)
      const natMap = config.ioredis?.['natMap'] as (address: string) => unknown
      expect(natMap('172.18.0.2:7003')).to.deep.equal({ host: '10.0.0.9', port: 7003 })
      expect(natMap('172.18.0.4:7003')).to.equal(null)
      expect(natMap(':7003'), 'the address of a node that does not know its own one yet').to.equal(null)
    })

    it('replicated', () => {
      const config = read('replicatedServersConfig: { nodeAddresses: ["redis://a:1", "redis://b:2"], database: 2 }')
      expect(config).to.deep.include({
        replicated: [
          { host: 'a', port: 1 },
          { host: 'b', port: 2 },
        ],
        db: 2,
      })
    })

    it('master and slaves: the master', () => {
      const config = read('masterSlaveServersConfig: { masterAddress: "redis://m:1", slaveAddresses: ["redis://s:2"] }')
      expect(config).to.include({ host: 'm', port: 1 })
      expect(config.warnings).to.have.length(1)
      expect(config.warnings[0]).to.match(/^masterSlaveServersConfig\.slaveAddresses is ignored/)
    })

    it('exactly one of them', () => {
      expect(failure('threads: 16').message).to.match(/one of singleServerConfig, .*got none/)
      expect(failure(`${single()}\nclusterServersConfig: { nodeAddresses: [] }`).message).to.include('2 of them')
    })

    it('JSON, which is YAML too', () => {
      const config = read(
        '{"singleServerConfig": {"address": "redis://h:1"}, "codec": {"class": "org.redisson.codec.JsonJacksonCodec"}}',
      )
      expect(config).to.include({ host: 'h', port: 1 })
      expect(config.codec.name).to.equal('jsonJackson')
    })
  })

  describe('what Redisson writes itself (`Config.toYAML`, every setting that has a default; see fixtures/redisson-yaml/Gen.java)', () => {
    const pair = [
      { host: '127.0.0.1', port: 6379 },
      { host: '127.0.0.1', port: 6380 },
    ]
    for (const version of ['3.20.1', '3.52.0', '4.7.0']) {
      for (const [mode, expected] of Object.entries({
        single: { host: '127.0.0.1', port: 6379, db: 2 },
        masterSlave: { host: '127.0.0.1', port: 6379, db: 0 },
        replicated: { replicated: pair, db: 0 },
        cluster: { cluster: pair.map((node, index) => ({ ...node, port: 7000 + index })) },
        sentinel: { sentinels: pair.map((node, index) => ({ ...node, port: 26379 + index })), name: 'mymaster', db: 0 },
      })) {
        it(`${version}, ${mode}`, () => {
          const path = fileURLToPath(new URL(`fixtures/redisson-yaml/${version}/${mode}.yaml`, import.meta.url))
          const config = read(path)
          expect(config).to.deep.include({
            ...expected,
            connectTimeout: 10_000,
            commandTimeout: 3_000,
          })
          expect(config, "Redisson's default of 30 s was not chosen by anybody").not.to.have.property('pingInterval')
          expect(config.ioredis).to.deep.include({ noDelay: true })
          expect(config.codec.name).to.equal('kryo5')
          expect(new Set(config.warnings).size).to.equal(config.warnings.length)
        })
      }
    }
  })

  describe('addresses', () => {
    it('may hold user and password, and need no port', () => {
      expect(read('singleServerConfig: { address: "redis://me:p%40ss@host" }')).to.include({
        host: 'host',
        port: 6379,
        username: 'me',
        password: 'p@ss',
      })
    })

    for (const address of [
      'redis://user:12#34@host:6379',
      'host:6379',
      'http://host:1',
      'redis://',
      'redis+uds:///tmp/sock',
      'redis://h:1/2',
      '6379',
    ]) {
      it(`refuses ${address}`, () => {
        expect(failure(`singleServerConfig: { address: "${address}" }`)).to.be.instanceOf(InvalidArgumentError)
      })
    }

    it('are not repeated in errors: they may hold a password', () => {
      expect(failure('singleServerConfig: { address: "redis://u:geheim@:x" }').message).not.to.include('geheim')
      expect(failure('singleServerConfig: { address: "u:geheim@host" }').message).not.to.include('geheim')
    })
  })

  describe('users and passwords', () => {
    it('come from the code, then from the address, then from the settings, each for itself', () => {
      const text = 'singleServerConfig: { address: "redis://url-user@h:1", username: file, password: file-pw }'
      expect(read(text)).to.include({ username: 'url-user', password: 'file-pw' })
      expect(read(text, { password: 'code-pw' })).to.include({ username: 'url-user', password: 'code-pw' })
      expect(read(text, { username: 'code' })).to.include({ username: 'code', password: 'file-pw' })
      const both = 'singleServerConfig: { address: "redis://u:url-pw@h:1", password: file-pw }'
      expect(read(both)).to.include({ username: 'u', password: 'url-pw' })
    })
    it('must be the same in all addresses', () => {
      const text = 'clusterServersConfig: { nodeAddresses: ["redis://:a@h:1", "redis://:b@h:2"] }'
      expect(failure(text).message).to.include('same user and password')
    })
    it('of sentinels, and NAT maps, are taken where they have a meaning', () => {
      expect(failure(single('  sentinelPassword: x')).message).to.include('"sentinelPassword"')
      expect(failure(single('  natMap: { a: b }')).message).to.include('"natMap"')
      const text =
        'replicatedServersConfig: { nodeAddresses: ["redis://a:1"], natMapper: !<org.redisson.config.HostNatMapper> {} }'
      expect(failure(text)).to.be.instanceOf(UnsupportedOperationError)
    })
  })

  describe('settings at the top, as from Redisson 4 on', () => {
    it('are used where the mode has none', () => {
      expect(read(single('', 'password: top\nusername: me'))).to.include({ password: 'top', username: 'me' })
      expect(read(single('  password: inner', 'password: top'))).to.include({ password: 'inner' })
    })
  })

  describe('codecs', () => {
    for (const [javaClass, name] of [
      ['org.redisson.client.codec.StringCodec', 'string'],
      ['org.redisson.client.codec.LongCodec', 'long'],
      ['org.redisson.client.codec.IntegerCodec', 'integer'],
      ['org.redisson.client.codec.DoubleCodec', 'double'],
      ['org.redisson.client.codec.ByteArrayCodec', javaCodecs.byteArray().name],
      ['org.redisson.codec.JsonJacksonCodec', 'jsonJackson'],
      ['org.redisson.codec.MsgPackJacksonCodec', 'msgpackJackson'],
      ['org.redisson.codec.CborJacksonCodec', 'cborJackson'],
      ['org.redisson.codec.Kryo5Codec', 'kryo5'],
      ['org.redisson.codec.LZ4Codec', javaCodecs.lz4(javaCodecs.kryo5()).name],
      ['org.redisson.codec.LZ4CodecV2', javaCodecs.lz4V2(javaCodecs.kryo5()).name],
      ['org.redisson.codec.SnappyCodecV2', javaCodecs.snappyV2(javaCodecs.kryo5()).name],
    ] as const) {
      it(javaClass, () => {
        expect(read(single('', `codec: !<${javaClass}> {}`)).codec.name).to.equal(name)
        expect(read(single('', `codec: !<${javaClass}>`)).codec.name).to.equal(name)
      })
    }

    it('those given in code come first', () => {
      const codec = javaCodecs.kryo5({ references: true })
      const config = read(single('', 'codec: !<org.redisson.codec.Kryo5Codec> {}'), {
        codecs: { 'org.redisson.codec.Kryo5Codec': codec },
      })
      expect(config.codec).to.equal(codec)
      const own = codecs.json()
      expect(
        read(single('', 'codec: !<com.acme.OurCodec> { level: 3 }'), { codecs: { 'com.acme.OurCodec': own } }).codec,
      ).to.equal(own)
    })

    it('the default can be replaced too', () => {
      const codec = javaCodecs.kryo5()
      expect(read(single(), { codecs: { 'org.redisson.codec.Kryo5Codec': codec } }).codec).to.equal(codec)
    })

    for (const codec of [
      '!<org.redisson.codec.MarshallingCodec> {}',
      '!<org.redisson.codec.SmileJacksonCodec> {}',
      '!<org.redisson.codec.Kryo5Codec> { useReferences: true }',
      '!<constructor> {}',
      '{}',
      'org.redisson.codec.Kryo5Codec',
    ]) {
      it(`refuses ${codec}`, () => {
        expect(failure(single('', `codec: ${codec}`)))
          .to.be.instanceOf(RedelayedError)
          .and.have.property('message')
          .that.includes('codec')
      })
    }
  })

  describe('name mapper', () => {
    const text = single('  nameMapper: !<com.acme.TenantMapper> {}')
    it('is the one given in code for the class', () => {
      const mapper = { map: (name: string) => `t:${name}`, unmap: (name: string) => name.slice(2) }
      expect(read(text, { nameMappers: { 'com.acme.TenantMapper': mapper } }).nameMapper).to.equal(mapper)
    })
    it('is missed when there is none', () => {
      const error = failure(text)
      expect(error).to.be.instanceOf(UnsupportedOperationError)
      expect(error.message).to.include('nameMappers: { "com.acme.TenantMapper"')
    })
    it('of two, the one that is not the default: Redisson 4 writes both', () => {
      const mapper = { map: (name: string) => `t:${name}`, unmap: (name: string) => name.slice(2) }
      const [own, other] = ['nameMapper: !<com.acme.M> {}', 'nameMapper: !<org.redisson.config.DefaultNameMapper> {}']
      for (const both of [single(`  ${own}`, other), single(`  ${other}`, own)]) {
        expect(read(both, { nameMappers: { 'com.acme.M': mapper } }).nameMapper).to.equal(mapper)
        expect(failure(both).message).to.include('com.acme.M')
      }
      expect(read(single('  tcpNoDelay: true', 'tcpNoDelay: false')).ioredis).to.deep.equal({ noDelay: false })
    })
    it("Redisson's default maps nothing", () => {
      expect(read(single('  nameMapper: !<org.redisson.api.DefaultNameMapper> {}')).nameMapper.map('a')).to.equal('a')
    })
  })

  describe('TLS', () => {
    const secure = (settings = ''): string => `singleServerConfig:\n  address: "rediss://r:1"\n${settings}`
    it('follows the scheme', () => {
      expect(read(secure()).tls).to.deep.equal({})
      expect(read(single()).tls).to.equal(undefined)
      expect(failure('clusterServersConfig: { nodeAddresses: ["rediss://a:1", "redis://b:1"] }').message).to.include(
        'rediss',
      )
    })
    it('takes over how the server is verified', () => {
      expect(read(secure('  sslVerificationMode: NONE')).tls).to.deep.equal({ rejectUnauthorized: false })
      for (const lax of ['  sslVerificationMode: CA_ONLY', '  sslEnableEndpointIdentification: false']) {
        const { tls } = read(secure(lax))
        expect(tls).to.have.property('checkServerIdentity')
        expect(tls).not.to.have.property('rejectUnauthorized')
      }
      expect(read(secure('  sslVerificationMode: STRICT')).tls).to.deep.equal({})
      expect(failure(secure('  sslVerificationMode: MAYBE')).message).to.include('STRICT, CA_ONLY, NONE')
    })
    it('is refused where two places say different things about the certificate', () => {
      const two = `sslVerificationMode: NONE\n${secure('  sslVerificationMode: STRICT')}`
      expect(failure(two).message).to.include('singleServerConfig.sslVerificationMode and sslVerificationMode')
      expect(read(`sslVerificationMode: NONE\n${secure()}`).tls).to.deep.equal({ rejectUnauthorized: false })
      expect(read(two, { tls: { rejectUnauthorized: true } }).tls).to.deep.equal({ rejectUnauthorized: true })
    })
    it('takes over the protocols', () => {
      expect(read(secure('  sslProtocols: [TLSv1.3, TLSv1.2]')).tls).to.deep.equal({
        minVersion: 'TLSv1.2',
        maxVersion: 'TLSv1.3',
      })
      expect(failure(secure('  sslProtocols: [SSLv3]'))).to.be.instanceOf(InvalidArgumentError)
    })
    it('is that of the sentinels as well', () => {
      const config = read(
        'sentinelServersConfig: { sentinelAddresses: ["rediss://s:1"], masterName: m, sslVerificationMode: NONE }',
      )
      expect(config.ioredis).to.deep.equal({
        enableTLSForSentinelMode: true,
        sentinelTLS: { rejectUnauthorized: false },
      })
    })
    it('is not read without rediss://, and a warning reports it', () => {
      const config = read(single('  sslVerificationMode: NONE'))
      expect(config.tls).to.equal(undefined)
      expect(config.warnings).to.deep.equal([
        'singleServerConfig.sslVerificationMode is ignored: the addresses are not rediss://',
      ])
    })

    describe('stores', () => {
      let folder: string
      before(() => (folder = mkdtempSync(join(tmpdir(), 'redelayed-stores-'))))
      after(() => rmSync(folder, { recursive: true }))
      const store = (name: string, content: Buffer): string => {
        writeFileSync(join(folder, name), content)
        return pathToFileURL(join(folder, name)).href
      }

      it('PEM and PKCS12 are read', () => {
        const pem = Buffer.from('-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n')
        const p12 = Buffer.from([0x30, 0x82, 1, 2])
        store('key.p12', p12)
        const settings = [`sslTruststore: "${store('ca.pem', pem)}"`, `sslKeystore: "file:${join(folder, 'key.p12')}"`]
        const { tls } = read(secure([...settings, 'sslKeystorePassword: pw'].map((line) => `  ${line}`).join('\n')))
        expect(tls).to.deep.equal({ ca: pem, pfx: p12, passphrase: 'pw' })
      })
      it('those of Java are refused, with the command that converts them', () => {
        const jks = store('key.jks', Buffer.from([0xfe, 0xed, 0xfe, 0xed, 0, 0]))
        expect(failure(secure(`  sslKeystore: "${jks}"\n  sslKeystorePassword: geheim`)).message)
          .to.include('keytool -importkeystore')
          .and.not.include('geheim')
        expect(failure(secure(`  sslTruststore: "${jks}"`)).message).to.include('keytool -exportcert')
        expect(failure(secure('  sslTruststore: "file:/does/not/exist"'))).to.be.instanceOf(InvalidArgumentError)
        expect(failure(secure('  sslTruststore: "classpath:trust.jks"'))).to.be.instanceOf(InvalidArgumentError)
        expect(failure(secure('  sslCiphers: [TLS_AES_128_GCM_SHA256]'))).to.be.instanceOf(UnsupportedOperationError)
      })
      it('options in code stand for all of it', () => {
        const given = { ca: 'x' }
        const config = read(secure('  sslTruststore: "file:/gone.jks"\n  sslCiphers: [A]'), { tls: given })
        expect(config.tls).to.deep.equal(given)
        expect(config.warnings).to.deep.equal([])
      })
    })
  })

  describe('variables', () => {
    it('have values, or defaults', () => {
      const text = single('  password: ${REDIS_PASSWORD}\n  database: ${REDIS_DB:-4}\n  clientName: "${A:-}x${B:-y}"')
      expect(read(text, { variables: { REDIS_PASSWORD: 'a: "b" # {c}' } })).to.include({
        password: 'a: "b" # {c}',
        db: 4,
      })
      expect(read(text, { variables: { REDIS_PASSWORD: 'p', REDIS_DB: '7', B: 'z' } })).to.deep.include({
        db: 7,
        ioredis: { connectionName: 'xz' },
      })
    })
    it('come from the environment', () => {
      process.env['REDELAYED_TEST_HOST'] = 'from-env'
      try {
        const config = readRedissonYaml('singleServerConfig: { address: "redis://${REDELAYED_TEST_HOST}:1" }', {}, [])
        expect(config.host).to.equal('from-env')
      } finally {
        delete process.env['REDELAYED_TEST_HOST']
      }
    })
    it('without either are refused by name', () => {
      const error = failure(single('  password: ${REDIS_PASSWORD}'))
      expect(error).to.be.instanceOf(InvalidArgumentError)
      expect(error.message).to.include('REDIS_PASSWORD').and.include('singleServerConfig.password')
      expect(failure(single('  password: ${constructor}')).message).to.include('constructor')
    })
  })

  describe('what has no meaning here', () => {
    it('is ignored with one warning each', () => {
      const { warnings } = read(single('  connectionPoolSize: 64\n  retryAttempts: 3', 'threads: 16\nnettyThreads: 32'))
      expect(warnings.map((warning) => warning.split(' ')[0])).to.deep.equal([
        'singleServerConfig.connectionPoolSize',
        'singleServerConfig.retryAttempts',
        'threads',
        'nettyThreads',
      ])
    })
    it('is reported as a warning of the process by default', async () => {
      const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
      readRedissonYaml(single('', 'threads: 16'), { variables: {} }, [])
      expect(await warned).to.include({ name: 'RedissonYamlWarning' })
    })
    it('does not hide a misspelt setting', () => {
      expect(failure(single('  adress: x')).message)
        .to.include('singleServerConfig')
        .and.include('"adress"')
      expect(failure(single('', 'codek: x')).message).to.include('"codek"')
    })
  })

  describe('what cannot be honoured', () => {
    for (const [what, text] of [
      ['a credentials resolver', single('  credentialsResolver: !<com.acme.Vault> {}')],
      ['renamed commands', single('  commandMapper: !<com.acme.Renamer> {}')],
      ['encrypted passwords', single('  password: "{aes}abc="')],
      ['their key', single('  secretKey: file:secret')],
      [
        'a NAT mapper in Java',
        'clusterServersConfig: { nodeAddresses: ["redis://a:1"], natMapper: !<com.acme.Nat> {} }',
      ],
    ] as const) {
      it(`refuses ${what}`, () => {
        expect(failure(text)).to.be.instanceOf(UnsupportedOperationError)
      })
    }
    it('a resolver is replaced by credentials in code', () => {
      const text = single('  credentialsResolver: !<com.acme.Vault> {}')
      expect(read(text, { username: 'u', password: 'p' })).to.include({ username: 'u', password: 'p' })
    })
  })

  describe('YAML that is none of ours', () => {
    for (const [what, text] of [
      ['a tag that makes something', single('  password: !!js/function "x"')],
      ['a Java class where text is expected', single('  password: !<javax.script.ScriptEngineManager> x')],
      ['a Java class as a setting', single('  clientName: !!javax.script.ScriptEngineManager [x]')],
      ['a binary', single('  password: !!binary aGk=')],
      ['a key twice', single('  address: "redis://x:1"')],
      ['broken syntax', single('  password: "geheim')],
      ['no map', '- a\n- b'],
      ['nothing', ' \n'],
      ['an unknown alias', single('  password: *gone')],
      ['levels without end', `a: &a { b: *a }\n${single()}`],
      ['a list as a name', single('  clientName: [a]')],
      ['a number where a list is expected', 'clusterServersConfig: { nodeAddresses: 3 }'],
      ['a fraction', single('  database: 1.5')],
      ['a negative number', single('  timeout: -1')],
      ['more than a file has', `${single()}# ${'x'.repeat(1_000_001)}`],
    ] as const) {
      it(`refuses ${what}`, () => {
        const error = failure(text)
        expect(error).to.be.instanceOf(InvalidArgumentError)
        expect(error.message).not.to.include('geheim')
      })
    }
    it('takes anchors and plain tags', () => {
      const text = 'singleServerConfig: { address: &a !!str "redis://h:1", clientName: *a }'
      expect(read(text)).to.deep.include({ host: 'h', ioredis: { connectionName: 'redis://h:1' } })
    })
    it('takes numbers and words as they are written, where text is expected', () => {
      for (const password of ['0123456', '1e5', '12345678901234567890', 'true', '0x1F']) {
        expect(read(single(`  password: ${password}`)).password).to.equal(password)
      }
      expect(read(single('  clientName: 007')).ioredis).to.deep.equal({ connectionName: '007' })
    })
    it('does not repeat what may be a password', () => {
      for (const text of ['  password: !hunter2', '  password: !hunter2.abc x', '  username: !!hunter2 x']) {
        expect(failure(single(text)).message).not.to.include('hunter2')
      }
      expect(failure('redis://:hunter2@host:6379').message).not.to.include('hunter2')
    })
    it('is not blown up by aliases', () => {
      const lists = Array.from(
        { length: 6 },
        (_, n) => `l${n + 1}: &l${n + 1} [${Array(20).fill(`*l${n}`).join(', ')}]`,
      )
      expect(failure(`l0: &l0 [x]\n${lists.join('\n')}\n${single()}`).message).to.match(/levels|values|aliases/)
    })
    it('survives a name that objects have', () => {
      for (const name of ['__proto__', 'constructor', 'toString']) {
        expect(failure(single(`  ${name}: { x: 1 }`)).message).to.include(JSON.stringify(name))
      }
      expect(({} as { x?: number }).x).to.equal(undefined)
    })
    it('refuses a path that is none', () => {
      expect(failure('/does/not/exist.yaml').message).to.include('/does/not/exist.yaml')
      expect(() => readRedissonYaml(7 as unknown as string, {}, [])).to.throw(InvalidArgumentError)
    })
  })

  it('is read from a path or a file URL', () => {
    const folder = mkdtempSync(join(tmpdir(), 'redelayed-yaml-'))
    try {
      const path = join(folder, 'redisson.yaml')
      writeFileSync(path, single())
      expect(readRedissonYaml(path, {}, [])).to.include({ host: 'r1' })
      expect(readRedissonYaml(pathToFileURL(path), {}, [])).to.include({ host: 'r1' })
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('takes the tuning of the client beside it', () => {
    const config = read(single('  timeout: 3000'), { commandTimeout: 700, sweepInterval: 900 })
    expect(config).to.include({ commandTimeout: 700, sweepInterval: 900 })
    expect(() => read(single(), { host: 'x' } as RedissonYamlOptions)).to.throw(InvalidArgumentError, 'options.host')
  })
})
