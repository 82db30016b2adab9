/** The number of slots of a Redis Cluster. */
export const SLOTS = 16_384

/** CRC16/XMODEM, one entry per byte. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})

/** The cluster slot of a key, as `CLUSTER KEYSLOT` computes it. */
export function keySlot(key: string): number {
  const open = key.indexOf('{')
  const close = open === -1 ? -1 : key.indexOf('}', open)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  return crc16(hashed) % SLOTS
}

/** The checksum for slots; `crc`: the checksum of a text before this one. */
export function crc16(text: string, crc = 0): number {
  for (const byte of Buffer.from(text)) crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] ?? 0)
  return crc
}
