/** Small messages that ask for much: each by the name of the codec of `allCodecs` that reads it. */
const MIB = 1024 * 1024

const repeated = (unit: Buffer | string, size: number): Buffer => {
  const bytes = Buffer.from(unit as string)
  if (bytes.length === 0) return bytes
  return Buffer.alloc(Math.floor(size / bytes.length) * bytes.length, bytes)
}
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
const kryoName = (name: string): Buffer => {
  const bytes = Buffer.from(name)
  bytes[bytes.length - 1]! |= 0x80
  return Buffer.concat([hex('01 00'), bytes])
}

/** A length as Kryo writes it, with a flag. */
function flagged(flag: boolean, value: number): Buffer {
  const bytes = [(value & 0x3f) | 0x40 | (flag ? 0x80 : 0)]
  for (let rest = value >>> 6; ; rest >>>= 7) {
    if (rest < 128) return Buffer.from([...bytes, rest])
    bytes.push((rest & 0x7f) | 0x80)
  }
}

/** A list of `count` values that are all `item`, each with its class. */
export function kryoList(item: Buffer | string, count: number, references = false): Buffer {
  const bytes = typeof item === 'string' ? hex(item) : item
  return Buffer.concat([
    kryoName('java.util.ArrayList'),
    hex(references ? '01' : ''),
    flagged(false, count + 1),
    repeated(bytes, bytes.length * count),
  ])
}

/** A list of `count` values of one class, which is there once. */
export function kryoListOf(name: string, item: string, count: number): Buffer {
  const class1 = Buffer.from(name)
  class1[class1.length - 1]! |= 0x80
  const head = [kryoName('java.util.ArrayList'), flagged(true, count + 1), hex('01 01'), class1, hex('00')]
  return Buffer.concat([...head, repeated(hex(item), hex(item).length * count)])
}

function counted(tag: number, count: number, item: string): Buffer {
  const head = Buffer.alloc(5)
  head[0] = tag
  head.writeUInt32BE(count, 1)
  return Buffer.concat([head, repeated(hex(item), hex(item).length * count)])
}

const json = (item: string, size: number): Buffer => {
  const body = repeated(Buffer.from(item), size)
  return Buffer.concat([Buffer.from('['), body.subarray(0, body.length - 1), Buffer.from(']')])
}

export interface Bomb {
  readonly what: string
  readonly codec: string
  readonly bytes: () => Buffer
}

/** The limit of a payload is twice that; half of it makes the point sooner. */
const FULL = 8 * MIB - 64
const bomb = (codec: string, what: string, bytes: () => Buffer): Bomb => ({ codec, what: `${codec}: ${what}`, bytes })

const msgpackItems: [what: string, item: string][] = [
  ['empty maps', '80'],
  ['empty arrays', '90'],
  ['small integers', '05'],
  ['empty binaries', 'c400'],
  ['timestamps', 'd6ff00000001'],
  ['empty texts', 'a0'],
  ['objects of one property', '81a16101'],
]
const cborItems: [what: string, item: string][] = [
  ['empty maps', 'a0'],
  ['empty arrays', '80'],
  ['open arrays', '9fff'],
  ['empty byte strings', '40'],
  ['big numbers', 'c24101'],
]
const kryoItems: [what: string, name: string, item: string][] = [
  ['empty sets', 'java.util.HashSet', '01'],
  ['empty maps', 'java.util.HashMap', '01'],
  ['empty lists', 'java.util.LinkedList', '01'],
  ['empty byte arrays', '[B', '01'],
  ['dates', 'java.util.Date', '01'],
  ['objects of no fields', 'V$Empty', ''],
]

export const bombs: readonly Bomb[] = [
  ...['msgpack', 'msgpackJackson'].flatMap((codec) =>
    msgpackItems.map(([what, item]) =>
      bomb(codec, what, () => counted(0xdd, Math.floor(FULL / (item.length / 2)), item)),
    ),
  ),
  ...cborItems.map(([what, item]) =>
    bomb('cborJackson', what, () => counted(0x9a, Math.floor(FULL / (item.length / 2)), item)),
  ),
  bomb('cborJackson', 'an open array', () => Buffer.concat([hex('9f'), repeated(hex('a0'), FULL), hex('ff')])),
  bomb('cborJackson', 'an open map', () => Buffer.concat([hex('bf'), repeated(hex('00a0'), FULL), hex('ff')])),
  bomb('cborJackson', 'a byte string of empty parts', () =>
    Buffer.concat([hex('5f'), repeated(hex('40'), FULL), hex('ff')]),
  ),
  bomb('cborJackson', 'a text of empty parts', () => Buffer.concat([hex('7f'), repeated(hex('60'), FULL), hex('ff')])),
  ...['json', 'jsonJackson', 'typedJsonJackson', 'jsonJackson, exact', 'composite'].flatMap((codec) =>
    ['{},', '[],', '1,', '{"a":1},'].map((item) => bomb(codec, `a list of ${item}`, () => json(item, FULL))),
  ),
  bomb('jsonJackson', 'a list of sets', () => json('["java.util.HashSet",[]],', FULL)),
  bomb('jsonJackson', 'a list of bytes', () => json('["[B",""],', FULL)),
  bomb('jsonJackson', 'a list of longs', () => json('["java.lang.Long",9007199254740993],', 2 * FULL)),
  ...['kryo5', 'kryo5, references', 'kryo5, exact'].map((codec) =>
    bomb(codec, 'nulls', () => kryoList('00', FULL, codec === 'kryo5, references')),
  ),
  ...kryoItems.map(([what, name, item]) =>
    bomb('kryo5', what, () => kryoListOf(name, item, item === '' ? 8_000_000 : FULL / (item.length / 2))),
  ),
  bomb('kryo5, exact', 'bytes in Java values', () => kryoListOf('java.lang.Byte', '05', FULL)),
  bomb('lz4 of kryo5', 'nulls', () => kryoList('00', FULL)),
  bomb('lz4 of kryo5', 'empty sets', () => kryoListOf('java.util.HashSet', '01', FULL)),
  bomb('lz4V2 of json', 'objects', () => json('{},', FULL)),
  bomb('snappyV2 of cborJackson', 'empty maps', () => counted(0x9a, FULL, 'a0')),
  bomb('lz4 of lz4 of msgpack', 'empty maps', () => counted(0xdd, FULL, '80')),
]

/** As much as a message may hold: these are read, by a process of limited memory too. */
export const largest: readonly Bomb[] = [
  bomb('msgpack', '999,999 empty maps', () => counted(0xdd, 999_999, '80')),
  bomb('cborJackson', '999,999 empty arrays', () => counted(0x9a, 999_999, '80')),
  bomb('json', '499,000 objects', () => json('{},', 499_000 * 3)),
  bomb('kryo5', '999,999 nulls', () => kryoList('00', 999_999)),
  bomb('kryo5', '200,000 sets', () => kryoListOf('java.util.HashSet', '01', 200_000)),
  bomb('kryo5, exact', '900,000 bytes in Java values', () => kryoListOf('java.lang.Byte', '05', 900_000)),
  bomb('lz4 of kryo5', '999,999 empty maps', () => kryoListOf('java.util.HashMap', '01', 999_999)),
]
