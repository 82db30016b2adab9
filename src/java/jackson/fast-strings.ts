/** Enough accesses for V8 to record them. */
const ACCESSES = 1000

/**
 * A class that extends String, and ioredis has one, leaves `String.prototype` in a slow form, until a property of it has been
 * accessed through an object that inherits from it a few times: on Node 20 that makes encoding three times faster, here and
 * in msgpackr. Takes microseconds, and changes nothing that a program can see.
 */
export function speedUpStrings(): boolean {
  const heir = Object.create(String.prototype) as string
  let found = 0
  for (let i = 0; i < ACCESSES; i++) if (typeof heir.charCodeAt === 'function') found++
  return found === ACCESSES
}
