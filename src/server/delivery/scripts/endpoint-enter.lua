-- Ask whether a webhook may go to its endpoint now. All instances of the service ask here, so that an endpoint is down, overloaded or limited for all of
-- them.
--
-- KEYS[1] endpoint  any  a hash: pausedUntil, openUntil: epoch ms; nextAt: epoch ms with fractions, of the rate limit
--
-- ARGV[1] perSecond  number   the most webhooks a second; 0 for no limit
-- ARGV[2] probeMs    integer  while the breaker is open, one webhook goes through after each of these times
--
-- returns 0: it may go; otherwise the milliseconds after which to ask again
local endpoint = KEYS.endpoint
local perSecond, probeMs = tonumber(ARGV.perSecond), tonumber(ARGV.probeMs)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- include shared/stored-times.lua

local KEPT = 864000000 -- ms for which the key outlives the last webhook: no limit is slower than one in that time
local spacing = math.min(KEPT, 1000 / perSecond)

local stored = storedOf(endpoint, 'pausedUntil', 'openUntil', 'nextAt')
local pausedUntil, openUntil = timeOf(stored[1], now), timeOf(stored[2], now)
local nextAt = timeOf(stored[3], now, spacing + 1) -- it is rounded

local wait = math.max(pausedUntil, openUntil) - now
if wait > 0 then
  return math.ceil(wait)
end

-- The limit is spaced evenly: a second's worth may go at once after a pause, no more.
if perSecond > 0 then
  nextAt = math.max(nextAt, now - math.max(0, 1000 - spacing))
  if nextAt > now then
    return math.ceil(nextAt - now)
  end
  redis.call('HSET', endpoint, 'nextAt', string.format('%.3f', nextAt + spacing))
  redis.call('PEXPIRE', endpoint, KEPT + 1000)
end

if openUntil > 0 then
  redis.call('HSET', endpoint, 'openUntil', now + probeMs)
end
return 0
