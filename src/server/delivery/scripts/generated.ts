// Generated from the .lua files in this folder by scripts/generate-lua.ts. Do not edit: run `npm run generate`.

export const endpointEnter = {
  name: "endpoint-enter",
  sha1: "e6e1442bb2f1cc0bd8f320458fa5fe63a23414ea",
  keys: ["endpoint"],
  args: { perSecond: "number", probeMs: "integer" },
  source: "-- Ask whether a webhook may go to its endpoint now. All instances of the service ask here, so that an endpoint that is down, overloaded or\n-- limited is so for all of them.\n--\n-- KEYS[1] endpoint  hash  pausedUntil, openUntil: epoch ms; nextAt: epoch ms with fractions, of the rate limit\n--\n-- ARGV[1] perSecond  number   the most webhooks a second; 0 for no limit\n-- ARGV[2] probeMs    integer  while the breaker is open, one webhook goes through after each of these times\n--\n-- returns 0: it may go; else the milliseconds after which to ask again\nlocal endpoint = KEYS[1]\nlocal perSecond, probeMs = tonumber(ARGV[1]), tonumber(ARGV[2])\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\n\nlocal stored = redis.call('HMGET', endpoint, 'pausedUntil', 'openUntil', 'nextAt')\nlocal pausedUntil, openUntil, nextAt = tonumber(stored[1]) or 0, tonumber(stored[2]) or 0, tonumber(stored[3]) or 0\n\nlocal wait = math.max(pausedUntil, openUntil) - now\nif wait > 0 then\n  return math.ceil(wait)\nend\n\n-- The limit is spaced evenly: a second's worth may go at once after a pause, no more.\nif perSecond > 0 then\n  local spacing = 1000 / perSecond\n  nextAt = math.max(nextAt, now - math.max(0, 1000 - spacing))\n  if nextAt > now then\n    return math.ceil(nextAt - now)\n  end\n  redis.call('HSET', endpoint, 'nextAt', string.format('%.3f', nextAt + spacing))\n  redis.call('PEXPIRE', endpoint, 864000000)\nend\n\nif openUntil > 0 then\n  redis.call('HSET', endpoint, 'openUntil', now + probeMs)\nend\nreturn 0\n",
} as const

export const endpointHeld = {
  name: "endpoint-held",
  sha1: "1103b9e016ba8216f11e0f7e5abb95a390a35db3",
  keys: ["endpoint"],
  args: {},
  source: "-- Ask for how long nothing goes to an endpoint, without sending anything there.\n--\n-- KEYS[1] endpoint  hash  pausedUntil, openUntil: epoch ms\n--\n-- returns the milliseconds; 0 where a webhook may ask to go\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\nlocal stored = redis.call('HMGET', KEYS[1], 'pausedUntil', 'openUntil')\nreturn math.max(0, math.ceil(math.max(tonumber(stored[1]) or 0, tonumber(stored[2]) or 0) - now))\n",
} as const

export const endpointLeave = {
  name: "endpoint-leave",
  sha1: "e09c6d8fd6141379369d96633018508d9e331f9c",
  keys: ["endpoint"],
  args: { delivered: "flag", pauseMs: "integer", least: "integer", share: "number", openMs: "integer" },
  source: "-- Note how a webhook ended. Of at least `least` in a minute, if `share` or more have failed, the breaker opens; what is delivered closes it.\n--\n-- KEYS[1] endpoint  hash  since, total, failed: the counts of a minute; failingSince, pausedUntil, openUntil: epoch ms\n--\n-- ARGV[1] delivered  flag     whether it was delivered\n-- ARGV[2] pauseMs    integer  the endpoint asks for a pause of so long; 0 for none\n-- ARGV[3] least      integer  below so many nothing is concluded\n-- ARGV[4] share      number   of failures, 0 to 1\n-- ARGV[5] openMs     integer  how long the breaker stays open before one webhook tries again\n--\n-- returns whether the breaker has just opened (1) or not (0), and for how many ms nothing has been delivered: 0 after a delivery\nlocal endpoint = KEYS[1]\nlocal delivered, pauseMs = ARGV[1] == '1', tonumber(ARGV[2])\nlocal least, share, openMs = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\nlocal time = redis.call('TIME')\nlocal now = time[1] * 1000 + math.floor(time[2] / 1000)\n\nlocal stored = redis.call('HMGET', endpoint, 'since', 'total', 'failed', 'failingSince', 'openUntil', 'pausedUntil')\nlocal since, total, failed = tonumber(stored[1]) or now, tonumber(stored[2]) or 0, tonumber(stored[3]) or 0\nlocal failingSince, openUntil, pausedUntil = tonumber(stored[4]), tonumber(stored[5]) or 0, tonumber(stored[6]) or 0\nif now - since >= 60000 or since > now then\n  since, total, failed = now, 0, 0\nend\n\ntotal = total + 1\nlocal opens = false\nif delivered then\n  if openUntil > 0 then\n    total, failed = 0, 0\n  end\n  redis.call('HDEL', endpoint, 'failingSince', 'openUntil')\n  failingSince = now\nelse\n  failed = failed + 1\n  failingSince = failingSince or now\n  redis.call('HSET', endpoint, 'failingSince', failingSince)\n  opens = openUntil <= now and (openUntil > 0 or (total >= least and failed >= share * total))\n  if opens then\n    redis.call('HSET', endpoint, 'openUntil', now + openMs)\n    since, total, failed = now, 0, 0\n  end\nend\nif pauseMs > 0 then\n  redis.call('HSET', endpoint, 'pausedUntil', math.max(pausedUntil, now + pauseMs))\nend\nredis.call('HSET', endpoint, 'since', since, 'total', total, 'failed', failed)\nredis.call('PEXPIRE', endpoint, 864000000)\nreturn { opens and openUntil == 0 and 1 or 0, math.max(0, now - failingSince) }\n",
} as const

export const endpointRelease = {
  name: "endpoint-release",
  sha1: "eb00211169857c6ad0c4fb1b6a5223e268c01d51",
  keys: ["lock"],
  args: { token: "text" },
  source: "-- End a time in which one instance alone changed an endpoint, unless another one has begun its own.\n--\n-- KEYS[1] lock  string  who changes the endpoint\n--\n-- ARGV[1] token  text  of the instance\n--\n-- returns 1 when it was this instance's, else 0\nif redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\nreturn redis.call('DEL', KEYS[1])\n",
} as const
