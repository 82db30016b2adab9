-- Record how a webhook ended. If `share` or more of at least `least` webhooks in a minute have failed, the breaker opens; a delivery closes it, and so
-- does a refusal because of the message, as the endpoint answers.
--
-- KEYS[1] endpoint  any  a hash: since, total, failed: the counts of a minute; failingSince, pausedUntil, openUntil: epoch ms
--
-- ARGV[1] ended      integer  0: it failed; 1: it was delivered; 2: it was refused because of its message
-- ARGV[2] pauseMs    integer  the pause that the endpoint asks for; 0 for none
-- ARGV[3] least      integer  the least webhooks of a minute that can open the breaker
-- ARGV[4] share      number   the share of failures that opens the breaker, 0 to 1
-- ARGV[5] openMs     integer  how long the breaker stays open before one webhook tries again
--
-- returns whether the breaker has just opened (1) or not (0), and for how many ms no webhook has been delivered: 0 after a delivery
local endpoint = KEYS.endpoint
local delivered, refused, pauseMs = ARGV.ended == '1', ARGV.ended == '2', tonumber(ARGV.pauseMs)
local least, share, openMs = tonumber(ARGV.least), tonumber(ARGV.share), tonumber(ARGV.openMs)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- include shared/stored-times.lua

local stored = storedOf(endpoint, 'since', 'total', 'failed', 'failingSince', 'openUntil', 'pausedUntil')
local since, total, failed = timeOf(stored[1], now), tonumber(stored[2]) or 0, tonumber(stored[3]) or 0
local failingSince, openUntil, pausedUntil = timeOf(stored[4], now), timeOf(stored[5], now), timeOf(stored[6], now)
if failingSince == 0 then failingSince = nil end
if not (now - since < 60000 and since <= now and total >= failed and failed >= 0 and total < 1e9) then
  since, total, failed = now, 0, 0
end

total = total + 1
local opens = false
if (delivered or refused) and openUntil > 0 then
  total, failed = 0, 0
end
if delivered then
  redis.call('HDEL', endpoint, 'failingSince', 'openUntil')
  failingSince = now
elseif refused then
  redis.call('HDEL', endpoint, 'openUntil')
  failingSince = failingSince or now -- nothing was delivered
  redis.call('HSET', endpoint, 'failingSince', failingSince)
else
  failed = failed + 1
  failingSince = failingSince or now
  redis.call('HSET', endpoint, 'failingSince', failingSince)
  opens = openUntil <= now and (openUntil > 0 or (total >= least and failed >= share * total))
  if opens then
    redis.call('HSET', endpoint, 'openUntil', now + openMs)
    since, total, failed = now, 0, 0
  end
end
if pauseMs > 0 then
  redis.call('HSET', endpoint, 'pausedUntil', math.max(pausedUntil, now + pauseMs))
end
redis.call('HSET', endpoint, 'since', since, 'total', total, 'failed', failed)
redis.call('PEXPIRE', endpoint, 864000000)
return { opens and openUntil == 0 and 1 or 0, math.max(0, now - failingSince) }
