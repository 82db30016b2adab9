import { InvalidArgumentError, inWords } from '../../errors.js'

export interface Address {
  readonly host: string
  readonly port: number | undefined
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
}

const SCHEME = /^(redis|valkey)(s?):\/\//

/** One of Redisson's addresses. It may contain a password, so errors do not quote it. */
export function parseAddress(path: string, text: string): Address {
  const scheme = SCHEME.exec(text)
  const expected = 'redis://host:port, rediss://, valkey:// or valkeys://'
  if (scheme === null) throw new InvalidArgumentError(path, expected, inWords('something else'))
  const port = /:\d+\/?$/.test(text) ? '' : ':6379'
  let url: URL
  try {
    url = new URL(text.replace(SCHEME, 'redis://').replace(/\/?$/, port))
  } catch {
    throw new InvalidArgumentError(path, expected, inWords('something else'))
  }
  if (url.hostname === '' || url.pathname.length > 1 || url.search !== '' || url.hash !== '') {
    throw new InvalidArgumentError(path, expected, inWords('something else'))
  }
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port),
    tls: scheme[2] === 's',
    username: decoded(url.username),
    password: decoded(url.password),
  }
}

function decoded(part: string): string | undefined {
  if (part === '') return undefined
  try {
    return decodeURIComponent(part)
  } catch {
    return part // Redisson's users write them without escapes
  }
}
