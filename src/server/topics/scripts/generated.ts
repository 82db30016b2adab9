// Generated from the .lua files in this folder by scripts/generate-lua.ts. Do not edit: run `npm run generate`.

export const keepLock = {
  name: "keep-lock",
  sha1: "cf167c473d422e9857b3d5807a09d12e56b63b66",
  keys: ["lock"],
  args: { token: "text", lockMs: "integer" },
  source: "-- Go on being the one instance that changes something, unless another one has begun.\n--\n-- KEYS[1] lock  string  who changes it\n--\n-- ARGV[1] token   text     of the instance\n-- ARGV[2] lockMs  integer  for so long from now\n--\n-- returns 1 when it is this instance's, else 0\nif redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[2])\n",
} as const

export const leaseWorker = {
  name: "lease-worker",
  sha1: "e28afa90828de6a194a41eae13c260cfd02956eb",
  keys: ["workers"],
  args: { token: "text", held: "integer", start: "integer", leaseMs: "integer", count: "integer" },
  source: "-- Lease a worker number for an instance, or lease the one that it has for longer. No two instances have the same one at once, and the ids of a\n-- later one are of later times: a number is free when Redis has passed the time up to which its ids reach.\n--\n-- KEYS[1] workers  any  a hash: number -> the time up to which its ids reach, epoch ms, and the token of its instance; first: where numbers without a field begin\n--\n-- ARGV[1] token    text     of the instance\n-- ARGV[2] held     integer  the number that it has; -1 for none\n-- ARGV[3] start    integer  where the search for a free one begins\n-- ARGV[4] leaseMs  integer  for how long it is leased\n-- ARGV[5] count    integer  how many numbers there are\n--\n-- returns the number, the times from which and up to which it has ids, and the time; the number is -1 when none is free\nlocal workers, token = KEYS[1], ARGV[1]\nlocal held, start, leaseMs, count = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\n\n-- Any client of the server can have written them. Nothing of an instance is so far ahead, whatever was done to the clock of Redis.\nlocal latest = now + 31622400000\n\n-- Where this Redis knows of no numbers it may have lost them, and instances may have them for one more lease: ids begin behind those.\nlocal stored = redis.pcall('HGET', workers, 'first')\nif type(stored) == 'table' then redis.call('UNLINK', workers) end\nlocal first = type(stored) == 'string' and tonumber(stored)\nif not first or not (first >= 0 and first <= latest) then\n  first = now + leaseMs + 1\n  redis.call('HSET', workers, 'first', string.format('%.0f', first))\nend\n\nlocal function read(number)\n  local stored = redis.call('HGET', workers, number)\n  local upTo, owner = string.match(stored or '', '^(%d+) (.*)$')\n  upTo = tonumber(upTo)\n  if not upTo or upTo > latest then\n    return nil, nil\n  end\n  return upTo, owner\nend\n\n-- The clock of Redis can have gone back: the ids reach as far as they did.\nlocal function take(number, from, reach)\n  local upTo = math.max(now + leaseMs, from + leaseMs, reach)\n  redis.call('HSET', workers, number, string.format('%.0f %s', upTo, token))\n  return { number, from, upTo, now }\nend\n\nif held >= 0 then\n  local reach, owner = read(held)\n  if not reach or owner == token then\n    return take(held, 0, reach or 0)\n  end\nend\nlocal ahead\nfor step = 0, count - 1 do\n  local number = (start + step) % count\n  local reach = read(number)\n  if not reach then\n    return take(number, first, 0)\n  end\n  if now > reach then\n    return take(number, reach + 1, 0)\n  end\n  if reach > now + 2 * leaseMs and (not ahead or reach < read(ahead)) then\n    ahead = number\n  end\nend\n-- All are taken, but no lease is that long: the clock was set back, or a stranger wrote it. An instance that has the number all the same draws no\n-- ids behind its times, and gets another one when it leases it for longer.\nif ahead then\n  return take(ahead, read(ahead) + 1, 0)\nend\nreturn { -1, 0, 0, now }\n",
} as const

export const limitLock = {
  name: "limit-lock",
  sha1: "7dc693db2114d09e91758238b50acb53cd89cb54",
  keys: ["lock"],
  args: { most: "integer" },
  source: "-- Have a time in which one instance alone changes something end, where it lasts longer than any: only a stranger can have begun it.\n--\n-- KEYS[1] lock  any  who changes it\n--\n-- ARGV[1] most  integer  the longest time, ms\n--\n-- returns 1 when it was longer, else 0\nlocal left = redis.call('PTTL', KEYS[1])\nif left ~= -1 and left <= tonumber(ARGV[1]) then\n  return 0\nend\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[1])\n",
} as const

export const releaseLock = {
  name: "release-lock",
  sha1: "b22567c48a8a57d4a02c9c13e4657ec5a9454f1b",
  keys: ["lock"],
  args: { token: "text" },
  source: "-- End a time in which one instance alone changed something, unless another one has begun its own.\n--\n-- KEYS[1] lock  string  who changes it\n--\n-- ARGV[1] token  text  of the instance\n--\n-- returns 1 when it was this instance's, else 0\nif redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\nreturn redis.call('DEL', KEYS[1])\n",
} as const

export const releaseWorker = {
  name: "release-worker",
  sha1: "7aaaf95c3400ec6dfb44fd31d8b600191112058a",
  keys: ["workers"],
  args: { token: "text", number: "integer", reach: "integer" },
  source: "-- Give back a worker number, with the time up to which its ids reached.\n--\n-- KEYS[1] workers  hash  as in lease-worker.lua\n--\n-- ARGV[1] token   text     of the instance\n-- ARGV[2] number  integer  the number that it has\n-- ARGV[3] reach   integer  the time of the last id that it has drawn, epoch ms\n--\n-- returns 1 when it was the instance's, else 0\nlocal stored = redis.call('HGET', KEYS[1], ARGV[2])\nif not stored or string.match(stored, '^%d+ (.*)$') ~= ARGV[1] then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ' ')\nreturn 1\n",
} as const
