-- A part of reliable-poll.lua: lets a few claims that end later than any client can set end after the visibility timeout of the queue, as
-- if they were new. Another program has written them, or the clock was far ahead; they would hold their message, and a slot, for ever. A
-- consumer that has one can still end it. The clock of a caller can be far behind, so the later one counts. Returns whether there can be
-- more.
local function shortenFar()
  local most, latest = 16, math.max(now, math.floor(started / 1000))
  local far, isCut = namesOf(most, function(many, from)
    return redis.call('ZRANGEBYSCORE', inFlight, string.format('(%.0f', latest + LONGEST_VISIBILITY + 60000), '+inf', 'LIMIT', from, many)
  end)
  local at = latest + (setting(settings.visibilityTimeout, 1, LONGEST_VISIBILITY) or 30000)
  for _, member in ipairs(far) do redis.call('ZADD', inFlight, string.format('%.0f', at), member) end
  changed = changed + #far
  return isCut or #far == most
end
