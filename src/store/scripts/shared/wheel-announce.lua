-- Announces a due time, or the time of a promotion, if the clients would transfer later. Buckets with a time before the next possible
-- promotion do not count, because another program can have written these at any time, and no client may transfer for them.
local function announceWheel(timeouts, wheel, channel, at, horizon, now)
  local text = string.format('%.0f', at)
  -- both in any case: a key of another type fails here, before anything is written
  local earlier = redis.call('ZCOUNT', timeouts, oldestDue(now, at), text) + redis.call('ZCOUNT', wheel, string.format('%.0f', promotionOf(horizon + 1)), text)
  if earlier == 0 then redis.call('PUBLISH', channel, text) end
end
