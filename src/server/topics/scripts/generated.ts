// Generated from the .lua files in this folder by scripts/generate-lua.ts. Do not edit: run `npm run generate`.

export const keepLock = {
  name: "keep-lock",
  sha1: "dfdb72ed6be4510d2a8dfeb15969181d7ac252bf",
  keys: ["lock"],
  args: { token: "text", lockMs: "integer" },
  source: "-- Renew the lock of an instance, unless another instance has it by now.\n--\n-- KEYS[1] lock  string  the token of the instance that has the lock\n--\n-- ARGV[1] token   text     the token of this instance\n-- ARGV[2] lockMs  integer  how long the lock lasts from now\n--\n-- returns 1 if this instance has the lock, else 0\nif redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[2])\n",
} as const

export const leaseWorker = {
  name: "lease-worker",
  sha1: "47f83ee2e195528235beda21ad56207ee8bab3d3",
  keys: ["workers"],
  args: { token: "text", held: "integer", start: "integer", leaseMs: "integer", count: "integer" },
  source: "-- Lease a worker number to an instance, or renew its lease. No two instances have the same number at once, and a later instance draws ids of later\n-- times: a number is free when the clock of Redis has passed the time up to which its ids reach.\n--\n-- KEYS[1] workers  any  a hash: number -> the time up to which its ids reach, epoch ms, and the token of its instance; first: where numbers without a field begin\n--\n-- ARGV[1] token    text     the token of the instance\n-- ARGV[2] held     integer  the number that it has; -1 for none\n-- ARGV[3] start    integer  where the search for a free one begins\n-- ARGV[4] leaseMs  integer  how long it is leased\n-- ARGV[5] count    integer  the count of numbers\n--\n-- returns the number, the times from which and up to which it has ids, and the time; the number is -1 when none is free\nlocal workers, token = KEYS[1], ARGV[1]\nlocal held, start, leaseMs, count = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\n\n-- Another program can have written them. No time of an instance is so far ahead, whatever was done to the clock of Redis.\nlocal latest = now + 31622400000\n\n-- A Redis without numbers may have lost them, and instances may still have them for one lease: ids begin after that.\nlocal stored = redis.pcall('HGET', workers, 'first')\nif type(stored) == 'table' then redis.call('UNLINK', workers) end\nlocal first = type(stored) == 'string' and tonumber(stored)\nif not first or not (first >= 0 and first <= latest) then\n  first = now + leaseMs + 1\n  redis.call('HSET', workers, 'first', string.format('%.0f', first))\nend\n\nlocal function read(number)\n  local stored = redis.call('HGET', workers, number)\n  local upTo, owner = string.match(stored or '', '^(%d+) (.*)$')\n  upTo = tonumber(upTo)\n  if not upTo or upTo > latest then\n    return nil, nil\n  end\n  return upTo, owner\nend\n\n-- The clock of Redis can have gone back: the ids reach as far as they did.\nlocal function take(number, from, reach)\n  local upTo = math.max(now + leaseMs, from + leaseMs, reach)\n  redis.call('HSET', workers, number, string.format('%.0f %s', upTo, token))\n  return { number, from, upTo, now }\nend\n\nif held >= 0 then\n  local reach, owner = read(held)\n  if not reach or owner == token then\n    return take(held, 0, reach or 0)\n  end\nend\nlocal ahead\nfor step = 0, count - 1 do\n  local number = (start + step) % count\n  local reach = read(number)\n  if not reach then\n    return take(number, first, 0)\n  end\n  if now > reach then\n    return take(number, reach + 1, 0)\n  end\n  if reach > now + 2 * leaseMs and (not ahead or reach < read(ahead)) then\n    ahead = number\n  end\nend\n-- All are leased, but no lease is that long: the clock was set back, or another program wrote it. An instance that still has the number draws no ids\n-- beyond its times, and gets another number when it renews its lease.\nif ahead then\n  return take(ahead, read(ahead) + 1, 0)\nend\nreturn { -1, 0, 0, now }\n",
} as const

export const limitLock = {
  name: "limit-lock",
  sha1: "466df6efeed273e7a59ebb97d8b10656f91c9b55",
  keys: ["lock"],
  args: { most: "integer" },
  source: "-- Limit the time of a lock that lasts longer than any instance's: another program has written it.\n--\n-- KEYS[1] lock  any  the token of the instance that has the lock\n--\n-- ARGV[1] most  integer  the longest time, ms\n--\n-- returns 1 if it was longer, else 0\nlocal left = redis.call('PTTL', KEYS[1])\nif left ~= -1 and left <= tonumber(ARGV[1]) then\n  return 0\nend\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[1])\n",
} as const

export const releaseLock = {
  name: "release-lock",
  sha1: "6c6a89b42c3bf87669b8684cdd89ba6b768c36d8",
  keys: ["lock"],
  args: { token: "text" },
  source: "-- Release the lock of an instance, unless another instance has it by now.\n--\n-- KEYS[1] lock  string  the token of the instance that has the lock\n--\n-- ARGV[1] token  text  the token of this instance\n--\n-- returns 1 if this instance had the lock, else 0\nif redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\nreturn redis.call('DEL', KEYS[1])\n",
} as const

export const releaseWorker = {
  name: "release-worker",
  sha1: "e404ff5e296f39705fef30bb2bf8daa1390bdbfc",
  keys: ["workers"],
  args: { token: "text", number: "integer", reach: "integer" },
  source: "-- Give back a worker number, with the time up to which its ids reached.\n--\n-- KEYS[1] workers  hash  as in lease-worker.lua\n--\n-- ARGV[1] token   text     the token of the instance\n-- ARGV[2] number  integer  the number that it has\n-- ARGV[3] reach   integer  the time of the last id that it has drawn, epoch ms\n--\n-- returns 1 if the instance had it, else 0\nlocal stored = redis.call('HGET', KEYS[1], ARGV[2])\nif not stored or string.match(stored, '^%d+ (.*)$') ~= ARGV[1] then\n  return 0\nend\nredis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ' ')\nreturn 1\n",
} as const
