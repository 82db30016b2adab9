import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { ConnectionOptions as TlsOptions, SecureVersion } from 'node:tls'
import { InvalidArgumentError, UnsupportedOperationError, inQuotes, inWords } from '../../errors.js'
import type { Section } from './section.js'

export const TLS_SETTINGS = [
  'sslVerificationMode',
  'sslEnableEndpointIdentification',
  'sslProtocols',
  'sslCiphers',
  'sslTruststore',
  'sslTruststorePassword',
  'sslKeystore',
  'sslKeystoreType',
  'sslKeystorePassword',
] as const
const VERSIONS: readonly string[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']
/** The first bytes of a Java key store of the old type, which only Java reads. */
const JKS_MAGIC = 0xfeedfeed

const VERIFICATION: ReadonlyMap<string, TlsOptions> = new Map([
  ['STRICT', {}],
  ['CA_ONLY', { checkServerIdentity: () => undefined }],
  ['NONE', { rejectUnauthorized: false }],
])

/** Java's TLS settings in Node's terms, those of the mode before those at the top; `given` in code replaces all of them. */
export function tlsOptions(sections: readonly Section[], given: TlsOptions | undefined): TlsOptions {
  if (given !== undefined) {
    for (const section of sections) for (const name of TLS_SETTINGS) section.take(name)
    return given
  }
  const others = sections.map((section) => ({
    ...versions(section),
    ...trusted(section),
    ...identity(section),
    ...ciphers(section),
  }))
  return Object.assign({}, ...others.reverse(), verification(sections)) as TlsOptions
}

/** The verification mode, which Redisson 4 writes in two places even if only one was set; different values are refused. */
function verification(sections: readonly Section[]): TlsOptions {
  const modes = new Set(sections.map(modeOf).filter((mode) => mode !== undefined))
  const [mode = 'STRICT', other] = modes
  if (other !== undefined) {
    const path = sections.map((section) => section.at('sslVerificationMode')).join(' and ')
    throw new InvalidArgumentError(path, 'the same, or one of them only', inWords(`${mode} and ${other}`))
  }
  return VERIFICATION.get(mode) ?? {}
}

function modeOf(section: Section): string | undefined {
  const identified = section.flag('sslEnableEndpointIdentification')
  const mode = section.text('sslVerificationMode') ?? (identified === false ? 'CA_ONLY' : undefined)
  if (mode === undefined || VERIFICATION.has(mode)) return mode
  throw new InvalidArgumentError(section.at('sslVerificationMode'), [...VERIFICATION.keys()].join(', '), mode)
}

function versions(config: Section): TlsOptions {
  const wanted = config.list('sslProtocols')
  if (wanted === undefined || wanted.length === 0) return {}
  const indexes = wanted.map((version) => VERSIONS.indexOf(version)).sort((a, b) => a - b)
  const [lowest = -1] = indexes
  if (lowest < 0) throw new InvalidArgumentError(config.at('sslProtocols'), VERSIONS.join(', '), wanted)
  return {
    minVersion: VERSIONS[lowest] as SecureVersion,
    maxVersion: VERSIONS[indexes.at(-1) ?? lowest] as SecureVersion,
  }
}

function ciphers(config: Section): TlsOptions {
  if (!config.has('sslCiphers')) return {}
  throw inCode(config, 'sslCiphers', 'Java and OpenSSL name ciphers differently', '{ ciphers }')
}

function trusted(config: Section): TlsOptions {
  config.take('sslTruststorePassword')
  if (!config.has('sslTruststore')) return {}
  const bytes = fileAt(config, 'sslTruststore')
  if (bytes.includes('-----BEGIN CERTIFICATE-----')) return { ca: bytes }
  const command = 'keytool -exportcert -rfc -keystore … -alias … > ca.pem'
  throw inCode(
    config,
    'sslTruststore',
    `only certificates in PEM can be read (${command})`,
    "{ ca: readFileSync('ca.pem') }",
  )
}

function identity(config: Section): TlsOptions {
  config.take('sslKeystoreType')
  const passphrase = config.text('sslKeystorePassword')
  if (!config.has('sslKeystore')) return {}
  const pfx = fileAt(config, 'sslKeystore')
  if (pfx.length >= 4 && pfx.readUInt32BE(0) === JKS_MAGIC) {
    const command = 'keytool -importkeystore -srckeystore … -destkeystore key.p12 -deststoretype PKCS12'
    throw inCode(
      config,
      'sslKeystore',
      `JKS cannot be read; convert it (${command})`,
      "{ pfx: readFileSync('key.p12') }",
    )
  }
  return passphrase === undefined ? { pfx } : { pfx, passphrase }
}

/** The stores are URLs; class path URLs point into a jar and are refused. */
function fileAt(config: Section, name: string): Buffer {
  const url = config.required(name)
  const path = config.at(name)
  const found = /^file:(.*)$/s.exec(url)
  if (found === null) throw new InvalidArgumentError(path, 'a URL file:…', inWords('something else'))
  try {
    return readFileSync(found[1]?.startsWith('//') === true ? fileURLToPath(url) : (found[1] ?? ''))
  } catch (cause) {
    throw new InvalidArgumentError(path, 'a file that can be read', inQuotes(url), { cause })
  }
}

function inCode(config: Section, name: string, why: string, how: string): UnsupportedOperationError {
  return new UnsupportedOperationError(`${config.at(name)}: ${why}, or give the TLS options in code: { tls: ${how} }`)
}
